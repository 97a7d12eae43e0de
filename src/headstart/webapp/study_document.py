"""What the page is told about a study: one document, the same for every tab."""

import csv
from typing import Any

from headstart.webapp.arguments import arm_choices
from headstart.webapp.commands import CommandJobs
from headstart.webapp.plain_words import in_plain_words
from headstart.webapp.study_process import StudyProcesses
from headstart.webapp.workspace import INSPECTION, PLAN, AppStudy

PREVIEW = "preview.json"
JOBS = ("inspect", "plan", "predict")


def study_state(study: AppStudy, processes: StudyProcesses) -> tuple[str, dict[str, Any] | None]:
    """new, inspected, planned, running, stopping, stopped, failed or finished; and its error."""
    state, error = processes.state(study)
    if state == "new" and (study.folder / INSPECTION).is_file():
        state = "planned" if (study.folder / PLAN).is_file() else "inspected"
    return state, error


def short_document(study: AppStudy, processes: StudyProcesses) -> dict[str, Any]:
    """A study in the list of all."""
    state, _ = study_state(study, processes)
    return {
        "id": study.id,
        "name": study.name,
        "created": study.created,
        "state": state,
        "bytes": sum(file["bytes"] for file in study.files.values()),
        "files": {role: file["name"] for role, file in study.files.items()},
        "best": best_accuracy(study) if state == "finished" else None,
    }


def full_document(study: AppStudy, processes: StudyProcesses, jobs: CommandJobs) -> dict[str, Any]:
    """Everything but the live curves, which have a document of their own."""
    state, error = study_state(study, processes)
    inspection = study.saved(INSPECTION)
    if inspection is not None:
        warnings = inspection["warnings"]
        inspection = {**inspection, "warnings": [in_plain_words(words) for words in warnings]}
        inspection["found"] = [study.in_plain_names(line) for line in inspection["found"]]
    plan = study.saved(PLAN)
    if plan is not None:
        plan["warnings"] = [in_plain_words(study.in_plain_names(w)) for w in plan["warnings"]]
    return {
        **short_document(study, processes),
        "state": state,
        "error": plain_error(study, error),
        "reading": study.reading,
        "choices": study.choices,
        "preview": study.saved(PREVIEW),
        "inspection": inspection,
        "plan": plan,
        "arms": arm_choices(study.reading.get("task", "classification")),
        "jobs": {kind: _job(study, jobs, kind) for kind in JOBS},
        "classifier": (study.study_folder / "best").is_dir() and state == "finished",
    }


def plain_error(study: AppStudy, error: dict[str, Any] | None) -> dict[str, Any] | None:
    """An error in the words of the page: no path of ours, no options of the command line."""
    if error is None:
        return None
    return {
        part: in_plain_words(study.in_plain_names(words)) if words else None
        for part, words in error.items()
    }


def _job(study: AppStudy, jobs: CommandJobs, kind: str) -> dict[str, Any] | None:
    document = jobs.document(study.id, kind)
    if document is not None:
        document["error"] = plain_error(study, document["error"])
        document["progress"] = study.in_plain_names(document["progress"])
    return document


def best_accuracy(study: AppStudy) -> dict[str, Any] | None:
    """The best mean on the test part with the most labels, from the report's table."""
    path = study.study_folder / "tables" / "accuracy.csv"
    if not path.is_file():
        return None
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    most = max(int(row["labels"]) for row in rows)
    best = max((row for row in rows if int(row["labels"]) == most), key=lambda r: float(r["mean"]))
    return {"arm": best["arm"], "labels": most, "mean": float(best["mean"])}
