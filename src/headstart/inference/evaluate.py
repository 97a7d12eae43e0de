"""Evaluate a fine-tuned run on rows that chose neither its weights nor its settings."""

from typing import Any

from headstart.checksums import load_arrays
from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.run_folder import VALIDATION, Run
from headstart.tasks.run_network import run_network
from headstart.training.seen_rows import unseen_rows


def evaluate(run: Run, part: Any, *, progress: ProgressCallback | None = None) -> dict[str, Any]:
    """Evaluate a run on labelled rows.

    Parameters
    ----------
    run : a fine-tuned run.
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
    examples = run.task.encode(part, run.encoding)
    outputs = run_network(run.model, examples, progress=progress)
    path = run.folder / VALIDATION
    if not path.is_file():
        raise HeadstartError(
            "the run has no predictions for validation: its first epoch was not finished",
            where=run.folder,
            fix="continue it: headstart finetune --resume",
        )
    answers = run.task.join(outputs, examples)
    validation = load_arrays(path, fix="copy the run again, with all of its files")
    found = run.task.evaluation(answers, part, validation)
    if rows is not None:
        for mistake in found.get("mistakes", []):  # rows as in the file, not as in what is left
            mistake["row"] = int(rows[mistake["row"] - 1]) + 1
    return {"rows": len(part), "seen_rows": seen, **found, "cut": examples.cut}
