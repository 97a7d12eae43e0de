"""What a study needs of a task: its rows by budget, and what each test row adds to its metric.

Tasks with one class per row (classification, pairs) keep probabilities: a row is right or wrong.
The others keep one number per test row whose mean over rows is the task's metric (see
`RowScores.per_row`), so that the same statistics compare them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.data.dataset import Dataset
from headstart.data.splits import take_budget
from headstart.tasks import find_task
from headstart.tasks.classification import Classification, MultiLabel
from headstart.tasks.task import Task

HELD_BACK = 5  # of a budget, one row in so many chooses the epoch of a task without classes


def has_classes(task: Task[Any]) -> bool:
    """Whether each row has one class, so that it has a probability for each of them."""
    return isinstance(task, Classification) and not isinstance(task, MultiLabel)


def task_of(name: str, train: Any) -> Task[Any]:
    """The task with the labels of these training rows."""
    return find_task(name).from_rows(train)


def take_rows(task: Task[Any], part: Any, budget: str, seed: int) -> Any:
    """The rows of a label budget; stratified where rows have classes."""
    return take_budget(part, budget, seed)


def hold_back(task: Task[Any], part: Any) -> tuple[list[int], list[int]]:
    """Rows of a budget that train, and those that choose the epoch; rows come in a drawn order."""
    count = max(1, len(part) // HELD_BACK)
    return list(range(count, len(part))), list(range(count))


def row_scores(task: Task[Any], answers: Any, part: Any) -> NDArray[np.float64]:
    """What each row adds to the task's metric: (rows,), whose mean it is."""
    return task.row_scores(answers, part)[task.metric].per_row()


def gold_words(task: Task[Any], part: Any) -> list[str]:
    """The right answer of each row, for people."""
    if isinstance(part, Dataset):
        return [part.label_names[label] for label in part.labels]
    if hasattr(part, "answers"):
        return [answers[0][1] if answers else "" for answers in part.answers]
    return [" ".join(task.labels[tag] for tag in tags) for tags in getattr(part, "tags", [])]
