"""A base as a scikit-learn transformer, texts in and vectors out: `HeadstartEmbedder`."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from headstart.estimator_parts import TextEstimator, texts_of
from headstart.model.config import POOLINGS, ClassificationConfig
from headstart.model.heads import ClassificationHead
from headstart.model.model import Model
from headstart.model.presets import preset_of
from headstart.run import NetworkRun
from headstart.tasks.classification import Classification
from headstart.tasks.examples import TextEncoding
from headstart.tasks.run_network import run_network
from headstart.training.finetune_prepare import reading_length


class HeadstartEmbedder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    TextEstimator,
):
    """Vectors of texts: the pooled hidden states of a base, or of a fine-tuned run.

    Long texts are read in windows and pooled whole. A text of white space is a vector of zeros.

    Parameters
    ----------
    run : str or Path
        The folder of a run, or `hf:PATH`.
    pooling : str, optional
        `mean+max` (twice as wide as the base), `mean`, `max`, `first` or `last`; by default as the
        run itself pools, or as its preset usually does.
    length : int, optional
        Tokens of a window; by default as many as the run was trained on.

    Attributes
    ----------
    run_ : the opened run.

    Example
    -------
    >>> import tempfile
    >>> from headstart import HeadstartClassifier
    >>> tiny = {"width": 16, "layers": 1, "heads": 2, "vocab_size": 300, "threads": 1}
    >>> arm = HeadstartClassifier(epochs=1, settings=tiny, random_state=0)
    >>> folder = tempfile.mkdtemp()
    >>> arm.fit(["yes", "oh yes", "no", "oh no"], [1, 1, 0, 0]).save(folder)
    >>> HeadstartEmbedder(folder, pooling="mean").fit_transform(["oh yes", "no"]).shape
    (2, 16)
    """

    def __init__(
        self, run: str | Path, *, pooling: str | None = None, length: int | None = None
    ) -> None:
        self.run = run
        self.pooling = pooling
        self.length = length

    def fit(self, X: Any = None, y: Any = None) -> "HeadstartEmbedder":
        """Open the run; nothing is learned from the texts."""
        if self.pooling is not None and self.pooling not in POOLINGS:
            raise ValueError(f"pooling is {self.pooling!r}; it is one of {', '.join(POOLINGS)}")
        if self.length is not None and self.length < 1:
            raise ValueError(f"length is {self.length}; it must be at least 1")
        self.run_ = NetworkRun.open(Path(self.run))
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The vector of each text: (texts, features)."""
        check_is_fitted(self)
        rows = texts_of(X)
        found = np.zeros((len(rows), self._n_features_out), dtype=np.float32)
        filled = [number for number, text in enumerate(rows) if text.strip()]
        if filled:
            texts = [rows[number] for number in filled]
            found[filled] = np.stack(run_network(self._network(), self._examples(texts)))
        return found

    @property
    def _n_features_out(self) -> int:
        width = self.run_.model.base.config.width
        return 2 * width if self._pooling == "mean+max" else width

    @property
    def _pooling(self) -> Any:
        head = self.run_.model.head_config
        usual = (
            head.pooling
            if isinstance(head, ClassificationConfig)
            else preset_of(self.run_.model.base.config).pooling
        )
        return self.pooling or usual

    def _network(self) -> Model:
        """The base with a head that returns what it is given."""
        base = self.run_.model.base
        head = ClassificationHead(
            base.config, ClassificationConfig(classes=2, pooling=self._pooling)
        )
        head.output = nn.Identity()  # type: ignore[assignment]
        return Model(base, head).eval()

    def _examples(self, texts: list[str]) -> Any:
        length = self.length or reading_length(self.run_, str(self.run))
        task = Classification(("no", "yes"))
        encoding = TextEncoding(self.run_.tokenizer, length, "windows")
        return task.encode(task.unlabelled(texts), encoding)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = True
        return tags
