"""What stands beside a run's numbers: the answer without reading, and a linear model in seconds.

A metric says little alone: 90 % accuracy is nothing where 90 % of the rows are of one class. A task
says what is trivial (`Task.trivial`); `LINEAR` has its linear model: a function of the task, its
training rows and its validation rows that returns another one, which gives scores for rows. Fitting
takes seconds: at most `MOST_ROWS` rows and `MOST_CHARACTERS` of text, unless all are wanted.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.baselines.stack import over_all_classes
from headstart.baselines.tfidf import STRENGTHS, TfidfClassifier
from headstart.baselines.word_tagger import fit_tagger
from headstart.config import FinetuneConfig
from headstart.data.dataset import Dataset
from headstart.errors import HeadstartError
from headstart.linear import choose_strength
from headstart.run import seen_rows
from headstart.tasks.classification import CERTAIN, Classification, MultiLabel
from headstart.tasks.task import Task
from headstart.training.callbacks import Callback
from headstart.training.initialization import read_splits

MOST_ROWS = 5_000
MOST_CHARACTERS = 2_000_000
TIMES_EVALUATED = 5  # so many times the rows to be fitted are evaluated in as many seconds
FEW_LABELS = 8  # each chooses a strength of its own; more take the usual one
USUAL_STRENGTH = 4.0
SMALLEST = 1e-7
AnswerRows = Callable[[Any], Any]


@dataclass(frozen=True)
class Baseline:
    """One line beside a run's: what it is, and its metrics with their intervals."""

    name: str
    about: str
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)


def baselines_beside(
    task: Task[Any], train: Any, validation: Any, part: Any, *, all_rows: bool = False
) -> list[Baseline]:
    """The trivial baseline and, where the task has one, the linear one, on the rows of `part`.

    Parameters
    ----------
    task : Task
    train, validation : rows of the task
        What the run was trained on, and what chose its weights; here it chooses the strength.
    part : rows of the task
        Those that the run is evaluated on.
    all_rows : bool
        Fit and evaluate the linear model on all rows, however many there are.
    """
    found = []
    if (trivial := task.trivial(train, part)) is not None:
        words, answers = trivial
        name, _, about = words.partition(": ")
        found.append(Baseline(name, about, task.intervals(answers, part)))
    if task.name in LINEAR:
        choose = _every_row if all_rows else few_rows
        rows = choose(task.row_texts(train))
        said = [f"fitted to {len(rows):,} of {len(train):,} rows"] if len(rows) < len(train) else []
        fit = find_linear(task)
        few = task.pick(validation, choose(task.row_texts(validation)))
        try:
            answer = fit(task, task.pick(train, rows), few)
        except HeadstartError:  # one class only, say: then there is nothing to fit
            return found
        some = choose(task.row_texts(part), TIMES_EVALUATED)
        if len(some) < len(part):
            said.append(f"evaluated on {len(some):,} of {len(part):,}")
            part = task.pick(part, some)
        found.append(Baseline(fit.label, ", ".join(said), task.intervals(answer(part), part)))
    return found


def baselines_of_run(folder: Path, task: Task[Any], part: Any = None) -> list[Baseline]:
    """The same for a fine-tuned run, fitted to the rows that trained it.

    Parameters
    ----------
    folder : Path
        The run; its recipe says where its dataset is. Rows that it does not know are left out.
    task : Task
        The run's.
    part : rows of its task, optional
        Those that it is evaluated on; by default its validation rows.
    """
    splits = read_splits(FinetuneConfig.load(folder), Callback())
    parts = []
    for role, rows in (("train", splits.train), ("validation", splits.validation)):
        rows = task.match_labels(rows, str(folder))
        known = seen_rows(task, rows, folder, (role,))
        parts.append(rows if known is None else task.pick(rows, known.tolist()))
    if not all(map(len, parts)):
        raise HeadstartError("the rows that trained the run are not in its dataset any more")
    train, validation = parts
    return baselines_beside(task, train, validation, validation if part is None else part)


def few_rows(texts: Sequence[str], times: int = 1) -> list[int]:
    """So many rows, drawn at random, that a linear model needs seconds for them."""
    characters = max(1, sum(map(len, texts)))
    share = times * min(MOST_ROWS / max(1, len(texts)), MOST_CHARACTERS / characters)
    count = max(1, round(min(1.0, share) * len(texts)))
    drawn = np.random.default_rng(0).permutation(len(texts))[:count]
    return sorted(drawn.tolist())


def _every_row(texts: Sequence[str], times: int = 1) -> list[int]:
    return list(range(len(texts)))


def fit_tfidf(task: Classification, train: Dataset, validation: Dataset) -> AnswerRows:
    """TF-IDF and a logistic regression; the two texts of a pair are read as one."""
    held_out = (validation.texts, validation.labels)
    model = TfidfClassifier().fit(train.texts, train.labels, validation=held_out)

    def answer(part: Dataset) -> NDArray[np.float64]:
        found = model.predict_proba(part.texts)
        every = over_all_classes(found, model.classes_.tolist(), range(len(task.labels)))
        return np.asarray(np.log(np.maximum(every, SMALLEST)))

    return answer


class _Features(TfidfClassifier):
    """The features of the classifier, without its regression."""

    def fit_rows(self, texts: Sequence[str]) -> Any:
        return self._fit_features(texts, np.zeros(len(texts)))  # TF-IDF asks for no labels

    def rows(self, texts: Sequence[str]) -> Any:
        return self._features(texts)


def fit_one_vs_rest(task: MultiLabel, train: Dataset, validation: Dataset) -> AnswerRows:
    """TF-IDF and one logistic regression per label."""
    features = _Features()
    rows = features.fit_rows(train.texts)
    held_out = features.rows(validation.texts)
    wanted, checked = task.matrix(train), task.matrix(validation)
    strengths = STRENGTHS if len(task.labels) <= FEW_LABELS else [USUAL_STRENGTH]
    models = [
        choose_strength(rows, wanted[:, label], held_out, checked[:, label], strengths)
        if len(set(wanted[:, label].tolist())) == 2
        else None  # all rows have the label, or none
        for label in range(len(task.labels))
    ]

    def answer(part: Dataset) -> NDArray[np.float64]:
        seen = features.rows(part.texts)
        columns = [
            model.decision_function(seen)
            if model is not None
            else np.full(len(part), CERTAIN if wanted[0, label] else -CERTAIN)
            for label, model in enumerate(models)
        ]
        return np.stack(columns, axis=1)

    return answer


fit_tfidf.label = "TF-IDF"  # type: ignore[attr-defined]
fit_one_vs_rest.label = "TF-IDF, one label at a time"  # type: ignore[attr-defined]


def find_linear(task: Task[Any]) -> Any:
    """The function that fits the task's linear model: `task`, training and validation rows."""
    return LINEAR[task.name]


LINEAR: dict[str, Any] = {
    "classification": fit_tfidf,
    "pairs": fit_tfidf,
    "multi-label": fit_one_vs_rest,
    "tagging": fit_tagger,
}


def documents(found: Sequence[Baseline]) -> list[dict[str, Any]]:
    """The baselines as plain values."""
    return [asdict(one) for one in found]
