"""Evaluate a fine-tuned run on rows that chose neither its weights nor its settings."""

from typing import Any

from headstart.config import FinetuneConfig
from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.tasks.opened_run import OpenedRun
from headstart.tasks.task import Task
from headstart.text.reading.sources import has_parts
from headstart.training.callbacks import Callback
from headstart.training.initialization import read_splits
from headstart.training.seen_rows import unseen_rows


def evaluation_rows(
    recipe: FinetuneConfig,
    task: Task[Any],
    dataset: str | None,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
) -> tuple[Any, str]:
    """The rows to evaluate a run on, and what they are in words.

    The test part of a dataset that has parts (the run's own, a built-in one, one of the Hub,
    a folder of files called train and test); every row of any other file.
    """
    named = {"text_column": text_column, "label_column": label_column}
    recipe = recipe.replace(**{name: column for name, column in named.items() if column})
    is_own = dataset is None or [dataset] == recipe.dataset
    if dataset is None or is_own:
        splits, name = read_splits(recipe, Callback()), ", ".join(recipe.dataset)
    else:
        columns = ("text_column", "second_column", "label_column")
        how = {column: getattr(recipe, column) or None for column in columns}
        how |= {"encoding": recipe.encoding, "progress": None}
        if not has_parts(dataset):
            return task.read_all(dataset, **how), f"every row of {dataset}"
        splits, name = task.read([dataset], seed=recipe.split_seed, **how), dataset
    if splits.test is None:
        raise HeadstartError(
            "the dataset has no test part to evaluate on",
            where=name,
            fix="name a file with labelled texts that the run has not seen",
        )
    which = f"the test file {recipe.test}" if is_own and recipe.test else f"the test part of {name}"
    return task.fitted(splits.test, name), which


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
