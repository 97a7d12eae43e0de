"""What the page is told about a study: one document, the same for every tab."""

import csv
import json
import re
from typing import Any

from headstart.webapp.arguments import arm_choices
from headstart.webapp.commands import CommandJobs
from headstart.webapp.study_process import StudyProcesses
from headstart.webapp.workspace import INSPECTION, PLAN, AppStudy

PREVIEW = "preview.json"
JOBS = ("inspect", "plan", "predict")

# What a person at the page can do about an error, by its code. Other errors keep their own fix.
FIXES = {
    "text-column": "choose the text column below",
    "label-column": "choose the label column below",
    "second-column": "choose both text columns below",
    "encoding": "save the file as UTF-8 and drop it again",
    "no-labels": "drop text without labels as the second file; the first one is a table with a "
    "text and a label column",
    "no-corpus": "add text without labels, or choose arms that are not pretrained",
    "does-not-fit": "give it more minutes, or choose fewer arms",
}
# The page's names of the options that other messages mention.
FIELDS = {
    "--labels": "the label budgets",
    "--seeds": "the number of seeds",
    "--minutes": "the minutes",
    "--arms": "the arms",
    "--corpus": "the text without labels",
}
# A remark about an option in brackets: the page has no command line.
REMARK = re.compile(r" \([^()]*--[a-z][^()]*\)")


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
        "best": recommended_score(study) if state == "finished" else None,
    }


def full_document(study: AppStudy, processes: StudyProcesses, jobs: CommandJobs) -> dict[str, Any]:
    """Everything but the live curves, which have a document of their own."""
    state, error = study_state(study, processes)
    inspection = study.saved(INSPECTION)
    if inspection is not None:
        warnings = [page_words(study, words) for words in inspection["warnings"]]
        inspection = {**inspection, "warnings": warnings}
        inspection["found"] = [study.in_plain_names(line) for line in inspection["found"]]
    plan = study.saved(PLAN)
    if plan is not None:
        plan["warnings"] = [page_words(study, words) for words in plan["warnings"]]
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


def page_words(study: AppStudy, message: str) -> str:
    """Return a message with the user's file names, the page's fields and no options."""
    message = REMARK.sub("", study.in_plain_names(message))
    for option, words in FIELDS.items():
        message = message.replace(option, words)
    return message


def plain_error(study: AppStudy, error: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an error's document with what a person at the page can do."""
    if error is None:
        return None
    shown = {name: page_words(study, words) if words else None for name, words in error.items()}
    fix = FIXES.get(error.get("code") or "")
    return shown if fix is None else {**shown, "fix": fix}


def _job(study: AppStudy, jobs: CommandJobs, kind: str) -> dict[str, Any] | None:
    document = jobs.document(study.id, kind)
    if document is not None:
        document["error"] = plain_error(study, document["error"])
        document["progress"] = study.in_plain_names(document["progress"])
    return document


def recommended_score(study: AppStudy) -> dict[str, Any] | None:
    """Return the test score of the recommended arm with the most labels."""
    path = study.study_folder / "tables" / "scores.csv"
    if not path.is_file():
        return None
    about = json.loads((study.study_folder / "study.json").read_text(encoding="utf-8"))
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if not row["seed"]]
    most = max(int(row["labels"]) for row in rows)
    taken = (about["best"].get("arm"), about["best"].get("objective"), str(most))
    for row in rows:
        if (row["arm"], row["objective"], row["labels"]) == taken:
            return {"arm": row["arm"], "labels": most, "mean": float(row["value"])}
    return None
