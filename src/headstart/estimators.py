"""Scikit-learn estimators over lists of strings: `HeadstartClassifier` and `HeadstartEmbedder`."""

import inspect
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from headstart.config import DatasetSettings, FinetuneConfig, Pooling, check_new
from headstart.data.dataset import Dataset, Splits
from headstart.errors import HeadstartError
from headstart.folds import make_folds
from headstart.interop.onnx_run import OnnxRun
from headstart.model.config import POOLINGS
from headstart.predictions import check_inputs
from headstart.run import EXPORTED, NetworkRun, Run, write_summary
from headstart.tasks.classification import Classification
from headstart.training.finetune import finetune
from headstart.training.initialization import embedding_run, reading_length

FOLDS = 10  # one of them selects the epoch
# Settings of `headstart finetune` that are arguments of `fit`, or have another name here.
NOT_PARAMETERS = {one.name for one in DatasetSettings.settings()} | {
    "base",
    "class_weight",
    "labels",
    "save_seconds",
    "seed",
}
DEFAULTS = {
    **{
        one.name: one.default for one in FinetuneConfig.settings() if one.name not in NOT_PARAMETERS
    },
    "precision": "fp32",
}


class _TextEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator over texts whose pickle holds the files of its run."""

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__()}
        run = state.pop("run_", None)
        if run is not None and "files_" not in state:
            with tempfile.TemporaryDirectory() as folder:
                run.save(Path(folder))
                state["files_"] = _read_files(Path(folder))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "files_" in state:
            with tempfile.TemporaryDirectory() as folder:
                _write_files(state["files_"], Path(folder))
                state = {**state, "run_": Run.open(folder)}
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.non_deterministic = getattr(self, "random_state", 0) is None
        return tags


def _read_files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _write_files(files: dict[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        path = (folder / name).resolve()
        if folder.resolve() not in path.parents:
            raise HeadstartError(f"the pickle would write outside of its run: {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def as_texts(X: Any) -> list[str]:
    """Convert a list, array, series or table of one column to texts; an empty one is an error."""
    if isinstance(X, str):
        raise ValueError("a list of texts is expected, not one text")
    values = np.asarray(X if hasattr(X, "__len__") else list(X), dtype=object)
    if values.ndim == 2 and values.shape[1] != 1:
        raise ValueError(
            f"a table of one column of texts is expected; this has {values.shape[1]}. Choose one: "
            "X[['text']], or a ColumnTransformer"
        )
    texts: list[str] = values.ravel().tolist()
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"text {number} is not a string but a {type(text).__name__}")
    check_inputs(Classification(()), texts)
    return texts


class HeadstartClassifier(ClassifierMixin, _TextEstimator):  # type: ignore[misc]
    """A text classifier: a small Transformer, fine-tuned from a base or from scratch.

    Parameters
    ----------
    base : str or Path, optional
        The folder of a pretrained run, or `hf:NAME`; by default a network from scratch.
    class_weight : "balanced" or dict, optional
        Weights of the classes, as in scikit-learn.
    random_state : int, RandomState or None
        Seeds the network and the order of the texts.
    **settings
        The settings of `headstart finetune` (see the reference of settings): `preset`, `epochs`,
        `learning_rate`, `pooling`, `width`, … A preset with its own settings (`lab`)
        changes those that are at their defaults. `fit` checks them.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    run_ : Run
        The fine-tuned run.
    summary_ : dict
        The summary of the training.

    Examples
    --------
    >>> texts = ["a fine film", "fine acting", "so fine", "a dull film", "dull acting", "so dull"]
    >>> labels = ["good", "good", "good", "bad", "bad", "bad"]
    >>> tiny = {"width": 32, "layers": 1, "heads": 2, "vocab_size": 300, "threads": 1}
    >>> model = HeadstartClassifier(epochs=15, learning_rate=1e-2, random_state=0, **tiny)
    >>> model.fit(texts, labels).predict(["fine", "dull"])
    array(['good', 'bad'], dtype='<U4')
    >>> model.predict_proba(["fine"]).shape
    (1, 2)
    """

    def __init__(self, *args: Any, **parameters: Any) -> None:
        bound = inspect.signature(type(self)).bind(*args, **parameters)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "HeadstartClassifier":
        """Learn from texts and their labels, of any type; a tenth of them selects the best epoch.

        X is a list, array, series or table of one column. A text of weight 0 is dropped; only the
        proportions of weights matter.
        """
        texts, y = as_texts(X), np.asarray(y)
        if y.ndim != 1 or len(texts) != len(y) or not texts:
            raise ValueError(f"{len(texts)} texts need one label per text, not labels of {y.shape}")
        check_classification_targets(y)
        weights = self._row_weights(sample_weight, y)
        used = np.flatnonzero(weights)
        encoder = LabelEncoder()
        numbers = encoder.fit_transform(y[used])
        self.classes_ = encoder.classes_
        if len(self.classes_) < 2:
            raise ValueError(f"the labels have {len(self.classes_)} class: two are needed")
        config = self._config(int(check_random_state(self.random_state).randint(2**31 - 1)))
        names = tuple(map(str, self.classes_))
        rows = Dataset("texts", [texts[row] for row in used], numbers.tolist(), names)
        if (weights[used] != 1).any():
            rows = replace(rows, weights=weights[used].tolist())
        splits = Splits(rows, rows, None)  # so few that nothing can select
        for fold in make_folds(numbers, FOLDS)[:1]:
            splits = Splits(rows.pick(fold.train.tolist()), rows.pick(fold.held.tolist()), None)
        with tempfile.TemporaryDirectory() as folder:
            finetune(config, Path(folder) / "run", splits=splits)
            self._open(Path(folder) / "run")
        return self

    @classmethod
    def from_run(cls, folder: str | Path) -> "HeadstartClassifier":
        """Open a run for classification as a fitted estimator: the best of a study, for example."""
        made = cls()
        made._open(Path(folder).expanduser())
        if made.run_.task is None or made.run_.task.name != "classification":
            raise HeadstartError(
                "this run does not classify texts", where=folder, fix="open it with headstart.load"
            )
        made.classes_ = np.asarray(made.run_.task.labels)
        return made

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`: (texts, classes)."""
        check_is_fitted(self)
        return self.run_.predict_proba(as_texts(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each text."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def save(self, folder: str | Path) -> None:
        """Write the run, for `headstart predict` and `headstart.load`."""
        check_is_fitted(self)
        check_new(Path(folder))
        _write_files(self.files_, Path(folder))
        if self.summary_:
            write_summary({**self.summary_, "run": str(folder)}, Path(folder))

    def _config(self, seed: int) -> FinetuneConfig:
        values = {name: getattr(self, name) for name in DEFAULTS}
        given = {name: value for name, value in values.items() if value != DEFAULTS[name]}
        usual = {
            "dataset": ["texts"],
            "base": None if self.base is None else str(self.base),
            "seed": seed,
            "threads": torch.get_num_threads(),  # as the caller has set it
            "precision": "fp32",
        }
        return FinetuneConfig.create(**usual | given)

    def _open(self, folder: Path) -> None:
        """Open a run and read all of its files: the folder may be removed afterwards."""
        self.run_ = Run.open(folder)
        self.summary_ = self.run_.summary
        self.files_ = _read_files(folder)

    def _row_weights(self, sample_weight: ArrayLike | None, y: NDArray[Any]) -> NDArray[np.float64]:
        """Join the weights of rows and classes to weights with a mean of 1."""
        given = np.ones(len(y)) if sample_weight is None else sample_weight
        weights = np.asarray(given, dtype=np.float64)
        positive = np.isfinite(weights).all() and (weights >= 0).all() and weights.any()
        if weights.shape != y.shape or not positive:
            raise ValueError("sample weights must be one per text, finite, not negative, not all 0")
        weights = weights * compute_sample_weight(self.class_weight, y)
        return np.asarray(weights * (np.count_nonzero(weights) / weights.sum()))


def _signature() -> inspect.Signature:
    """Make the signature of `HeadstartClassifier` from the settings of `headstart finetune`."""
    either, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    more = {**DEFAULTS, "class_weight": None, "random_state": None}
    return inspect.Signature(
        [
            inspect.Parameter("self", either),
            inspect.Parameter("base", either, default=None),
            *(inspect.Parameter(name, keyword, default=value) for name, value in more.items()),
        ]
    )


HeadstartClassifier.__init__.__signature__ = _signature()  # type: ignore[attr-defined]


class HeadstartEmbedder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    _TextEstimator,
):
    """Vectors of texts: the pooled hidden states of a base, or of a fine-tuned run.

    Long texts are read in windows; the states of all windows are pooled.

    Parameters
    ----------
    run : str or Path
        The folder of a run, or `hf:NAME`; or a base exported to ONNX.
    pooling : str, optional
        `mean+max` (twice as wide as the base), `mean`, `max`, `first` or `last`; by default the
        run's, or that of its preset.

    Attributes
    ----------
    run_ : the opened run.

    Examples
    --------
    >>> import tempfile
    >>> tiny = {"width": 16, "layers": 1, "heads": 2, "vocab_size": 300, "threads": 1}
    >>> model = HeadstartClassifier(epochs=1, random_state=0, **tiny)
    >>> folder = tempfile.mkdtemp()
    >>> model.fit(["yes", "oh yes", "no", "oh no"], [1, 1, 0, 0]).save(folder)
    >>> HeadstartEmbedder(folder, pooling="mean").fit_transform(["oh yes", "no"]).shape
    (2, 16)
    """

    def __init__(self, run: str | Path, *, pooling: str | None = None) -> None:
        self.run = run
        self.pooling = pooling

    def fit(self, X: Any = None, y: Any = None) -> "HeadstartEmbedder":
        """Open the run; nothing is learned from the texts."""
        if self.pooling is not None and self.pooling not in POOLINGS:
            raise ValueError(f"pooling is {self.pooling!r}; it is one of {', '.join(POOLINGS)}")
        if not (Path(self.run) / EXPORTED).is_file():
            opened = NetworkRun.open(self.run)
            self.run_: NetworkRun | OnnxRun = opened
            self.length_ = reading_length(opened)
            return self
        self.run_ = OnnxRun.open(self.run)
        if self.run_.task is not None or self.pooling:
            raise HeadstartError(
                "only an ONNX export of a base has vectors, and it has the pooling of that base",
                where=self.run,
                fix="export a base, and omit pooling",
            )
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the vector of each text: (texts, features)."""
        check_is_fitted(self)
        texts = as_texts(X)
        if not texts:
            return np.zeros((0, self._n_features_out), dtype=np.float32)
        return self._vectors(texts)

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        run, pooling = self.run_, cast("Pooling | None", self.pooling)
        if isinstance(run, NetworkRun):
            run = embedding_run(run, pooling, self.length_)
        task = Classification(())
        return np.asarray(run.outputs(task.encode(task.unlabelled(texts), run.encoding)))

    @property
    def _n_features_out(self) -> int:
        return self._vectors(["one text"]).shape[1]
