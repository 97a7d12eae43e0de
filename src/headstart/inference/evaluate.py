"""Evaluate a fine-tuned run on rows that chose neither its weights nor its settings."""

from typing import Any

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.tasks.opened_run import OpenedRun
from headstart.training.seen_rows import unseen_rows


def evaluate(
    run: OpenedRun, part: Any, *, progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """Evaluate a run on labelled rows.

    Parameters
    ----------
    run : a run that predicts, of any kind.
    part : rows of the run's task. Those that trained the run, or chose its weights, are left out.

    Returns
    -------
    The task's numbers for the `rows` that are left; `seen_rows` says how many are not (`None`
    where the run does not know).
    """
    assert run.task is not None
    rows = unseen_rows(run.task, part, run.folder)
    seen = None if rows is None else len(part) - len(rows)
    if rows is not None and seen:
        if not len(rows):
            raise HeadstartError(
                f"the run has seen all of these {seen:,} {run.task.row_name}: they trained it or "
                "chose its weights",
                where=run.folder,
                fix="name a file with labelled texts that the run has not seen",
            )
        part = run.task.pick(part, rows.tolist())
    answers = run.answers(part, progress=progress)
    found = run.task.evaluation(answers.scores, part, temperature=run.temperature)
    if rows is not None:
        for mistake in found.get("mistakes", []):  # rows as in the file, not as in what is left
            mistake["row"] = int(rows[mistake["row"] - 1]) + 1
    return {"rows": len(part), "seen_rows": seen, **found, "cut": answers.cut}
