"""What an export answers on the test part, beside its run: the metric's difference, an interval."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import HeadstartError
from headstart.evaluation.metrics import Interval
from headstart.interop.onnx.exported_run import open_export
from headstart.run_folder import Run
from headstart.tasks.task import Task
from headstart.training.finetune_prepare import evaluation_rows
from headstart.training.recipe import read_finetune_recipe
from headstart.training.recipe_file import FILE

MOST_ROWS = 2_000  # of a large test part: what both would take is minutes
DRAWS = 200
QUANTILE = 1.96  # of a normal distribution, for 95 %


def measure_export(run: Run, folder: Path) -> list[str]:
    """The test metric of run and export in words; nothing where no test part is at hand."""
    assert run.task is not None
    if not (run.folder / FILE).is_file():
        return []
    try:
        part, which = evaluation_rows(read_finetune_recipe(run.folder), run.task, None)
    except HeadstartError:  # the dataset has no test part, or is not here any more
        return []
    if len(part) > MOST_ROWS:
        rows = np.random.default_rng(0).permutation(len(part))[:MOST_ROWS]
        part = run.task.pick(part, sorted(rows.tolist()))
    ours, theirs = run.answers(part).scores, open_export(folder).answers(part).scores
    return [describe_difference(run.task, ours, theirs, part, which)]


def describe_difference(task: Task[Any], ours: Any, theirs: Any, part: Any, which: str) -> str:
    """The metric of both, and the difference with its interval."""
    before, after = (task.metrics(answers, part)[task.metric] for answers in (ours, theirs))
    if task.name in ("classification", "pairs"):
        labels = np.asarray(part.labels)
        right = [np.asarray(answers).argmax(axis=1) == labels for answers in (ours, theirs)]
        interval = paired_share_difference(*right)
    else:
        interval = _bootstrap(task, ours, theirs, part)
    return (
        f"{task.metric} on {len(part):,} rows of {which}: {after:.2%}, the run's {before:.2%}; "
        f"difference {100 * (after - before):+.2f} points "
        f"(95 %: {100 * interval.low:+.2f} to {100 * interval.high:+.2f})"
    )


def paired_share_difference(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Interval:
    """How much larger the second share of the same rows is (Bonett and Price 2012).

    Half a row more in each kind of disagreement: also rows without one say only so much.
    """
    rows = len(first) + 2
    gained = (int((second & ~first).sum()) + 0.5) / rows
    lost = (int((first & ~second).sum()) + 0.5) / rows
    half = QUANTILE * math.sqrt((gained + lost - (gained - lost) ** 2) / rows)
    value = float(second.mean() - first.mean())
    return Interval(value, gained - lost - half, gained - lost + half)


def _bootstrap(task: Task[Any], ours: Any, theirs: Any, part: Any) -> Interval:
    """Rows drawn with replacement; both metrics of the same rows."""
    random = np.random.default_rng(0)
    differences = []
    for _ in range(DRAWS):
        rows = random.integers(len(part), size=len(part)).tolist()
        drawn = task.pick(part, rows)
        values = [
            task.metrics(_picked(answers, rows), drawn)[task.metric] for answers in (ours, theirs)
        ]
        differences.append(values[1] - values[0])
    low, high = np.quantile(differences, [0.025, 0.975])
    return Interval(float(np.mean(differences)), float(low), float(high))


def _picked(answers: Any, rows: list[int]) -> Any:
    if isinstance(answers, np.ndarray):
        return answers[rows]
    return [answers[row] for row in rows]
