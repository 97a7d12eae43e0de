"""Fine-tuning as a scikit-learn estimator over lists of strings: `HeadstartClassifier`."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from headstart.baselines.finetune_arm import finetune_arm
from headstart.errors import HeadstartError
from headstart.estimator_parts import TextEstimator, texts_of
from headstart.model_card import CARD, VALIDATION
from headstart.run import ROWS, SUMMARY, Run, name_place
from headstart.tasks.classification import Classification
from headstart.text.reading.dataset import Dataset, Splits
from headstart.training.metrics import METRICS
from headstart.training.recipe import NETWORK, NONE, make_recipe
from headstart.training.recipe_file import FILE

VALIDATION_SHARE = 0.1
NOTES = (FILE, SUMMARY, METRICS, VALIDATION, ROWS, CARD)
GIVEN = ("preset", "epochs", "batch_size", "learning_rate", "strategy", "pooling", "length")


class HeadstartClassifier(ClassifierMixin, TextEstimator):  # type: ignore[misc]
    """A text classifier: a small Transformer, fine-tuned from a base or from scratch.

    `base` is the folder of a pretrained run, `hf:PATH`, or `None` for a network from scratch. The
    other parameters are settings of the recipe (`None` is its default); `settings` takes any more
    of them by name (`{"arm": "tfidf"}` trains a classifier without a network). A tenth of the rows,
    or those given to `fit`, are for validation: they select the best epoch.

    >>> texts = ["a fine film", "fine acting", "so fine", "a dull film", "dull acting", "so dull"]
    >>> labels = ["good", "good", "good", "bad", "bad", "bad"]
    >>> tiny = {"width": 32, "layers": 1, "heads": 2, "vocab_size": 300, "threads": 1}
    >>> arm = HeadstartClassifier(epochs=15, learning_rate=1e-2, settings=tiny, random_state=0)
    >>> arm.fit(texts, labels).predict(["fine", "dull"])
    array(['good', 'bad'], dtype='<U4')
    >>> arm.predict_proba(["fine"]).shape
    (1, 2)
    """

    def __init__(
        self,
        base: str | Path | None = None,
        *,
        preset: str | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        strategy: str | None = None,
        pooling: str | None = None,
        length: int | None = None,
        settings: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.base = base
        self.preset = preset
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.strategy = strategy
        self.pooling = pooling
        self.length = length
        self.settings = settings
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        validation: tuple[Any, ArrayLike] | None = None,
    ) -> "HeadstartClassifier":
        """Learn from texts and their labels.

        Parameters
        ----------
        X : list, array, series or table of one column
            The texts.
        y : array-like of shape (texts,)
            Their labels, of any kind.
        sample_weight : array-like of shape (texts,), optional
            How much each text counts in training; one of weight 0 is left out. Only their
            proportions matter.
        validation : (X, y), optional
            Rows that select the best epoch; by default a tenth of the others.
        """
        rows, y = texts_of(X), np.asarray(y)
        if y.ndim != 1 or len(rows) != len(y):
            raise ValueError(
                f"{len(rows)} texts and labels of shape {y.shape}: one label per text is needed"
            )
        weights = None
        if sample_weight is not None:
            scaled = _weights(sample_weight, len(rows))
            kept = np.flatnonzero(scaled)
            rows, y, weights = [rows[row] for row in kept], y[kept], scaled[kept].tolist()
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        self.class_prior_ = np.bincount(numbers, minlength=len(self.classes_)) / max(1, len(y))
        if len(self.classes_) < 2:
            raise ValueError(f"the labels have {len(self.classes_)} class: two are needed")
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))
        names = tuple(map(str, self.classes_))
        whole = Dataset("texts", rows, numbers.tolist(), names, weights=weights)
        splits = _split(whole, random)
        if validation is not None:
            checks = texts_of(validation[0])
            splits = Splits(
                whole, Dataset("texts", checks, self._numbers(validation[1]), names), None
            )
        given = {name: getattr(self, name) for name in GIVEN}
        chosen = {name: value for name, value in given.items() if value is not None}
        base = NONE if self.base is None else str(self.base)
        recipe = make_recipe(
            **{
                "dataset": ["texts"],
                "base": base,
                "seed": seed,
                "threads": torch.get_num_threads(),  # as the caller has it
                **chosen,
                **(self.settings or {}),
            }
        )
        if weights is not None and recipe.arm != NETWORK:
            raise ValueError(f"sample_weight is for networks; the arm {recipe.arm} takes none")
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            self.summary_ = finetune_arm(recipe, run, splits=splits)
            self.run_ = Run.open(run)
            notes = [name for name in NOTES if (run / name).is_file()]
            self.notes_ = {name: (run / name).read_bytes() for name in notes}
        return self

    @classmethod
    def from_run(cls, folder: str | Path) -> "HeadstartClassifier":
        """A run of any kind as an estimator that is fitted already: the best of a study, say.

        Parameters
        ----------
        folder : the run's folder; its task must be to find the class of a text.
        """
        made = cls()
        made.run_ = Run.open(Path(folder).expanduser())
        if not isinstance(made.run_.task, Classification):
            raise HeadstartError(
                "this run does not predict the class of a text", where=folder, fix="name another"
            )
        made.classes_ = np.asarray(made.run_.labels)
        made.class_prior_ = np.full(len(made.classes_), 1 / len(made.classes_))
        made.notes_ = {
            name: (made.run_.folder / name).read_bytes()
            for name in NOTES
            if (made.run_.folder / name).is_file()
        }
        return made

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, in the order of `classes_`: (texts, classes).

        About a text of white space nothing is known but how frequent the classes are.
        """
        check_is_fitted(self)
        rows = texts_of(X)
        found = np.tile(self.class_prior_, (len(rows), 1))
        filled = [number for number, text in enumerate(rows) if text.strip()]
        found[filled] = self.run_.predict_proba([rows[number] for number in filled])
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each text."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def save(self, folder: str | Path) -> None:
        """Write the run, for `headstart predict` and `headstart.load`."""
        check_is_fitted(self)
        self.run_.save(Path(folder))
        for name, content in self.notes_.items():
            (Path(folder) / name).write_bytes(content)
        name_place(Path(folder), Path(folder))

    def _numbers(self, labels: ArrayLike) -> list[int]:
        y = np.asarray(labels)
        if unknown := set(np.unique(y).tolist()) - set(self.classes_.tolist()):
            raise ValueError(f"validation has classes that training does not: {sorted(unknown)}")
        return np.searchsorted(self.classes_, y).tolist()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags


def _weights(sample_weight: ArrayLike, rows: int) -> NDArray[np.float64]:
    """Weights with a mean of 1: their size must not change how strongly the head is fitted."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,):
        raise ValueError(
            f"{rows} texts and weights of shape {weights.shape}: one per text is needed"
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("sample weights are finite, not negative, and not all 0")
    return weights * (np.count_nonzero(weights) / weights.sum())


def _split(whole: Dataset, random: np.random.RandomState) -> Splits:
    """A tenth of each class for validation; a class of one row is learned from."""
    held_out: list[int] = []
    labels = np.asarray(whole.labels)
    for number in range(len(whole.label_names)):
        members = random.permutation(np.flatnonzero(labels == number))
        if len(members) > 1:
            held_out += members[: max(1, round(VALIDATION_SHARE * len(members)))].tolist()
    chosen = set(held_out)
    train = [row for row in range(len(whole)) if row not in chosen]
    validation = sorted(held_out) or train  # one row per class: there is nothing to choose by
    return Splits(whole.pick(train), whole.pick(validation), None)
