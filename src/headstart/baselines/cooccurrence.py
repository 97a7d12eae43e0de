"""The `cooccurrence` arm: how far do the counted vectors come by themselves?

A text is the mean and the maximum, column by column, of its tokens' vectors; a logistic regression
on these is the classifier. It needs seconds and knows nothing of word order.

Columns are centred, but not scaled one by one: the decomposition has sorted them, the first carry
most of what the corpus knows, and blowing the last ones up to the same size costs 4 to 8 points.
Mean and maximum get one scale each (research/cooccurrence.md has the numbers).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.baselines.arrays import check_shape
from headstart.baselines.regression import RegressionClassifier
from headstart.data.cooccurrence import TokenIds
from headstart.data.tokenizers import Tokenizer, load_tokenizer
from headstart.evaluation.calibration import Floats
from headstart.linear import MAXIMUM_SHARE, STRENGTHS


class CooccurrenceClassifier(RegressionClassifier):
    """Logistic regression on the mean and maximum of a text's vectors (vocab_size × width).

    Texts are arrays of token ids, or strings where there is a tokenizer. Tokens with the zero
    vector (special or never seen in the corpus) are passed over.

    Parameters
    ----------
    vectors : array of shape (vocab_size, width)
    strengths : sequence of float
        Values of scikit-learn's C; the best on validation is taken.
    tokenizer : Tokenizer, optional
        Makes ids of strings; a classifier that is to be saved needs one.
    """

    kind = "cooccurrence"

    def __init__(
        self,
        vectors: NDArray[np.float32],
        *,
        strengths: Sequence[float] = STRENGTHS,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.vectors = vectors
        self.strengths = strengths
        self.tokenizer = tokenizer

    def _fit_features(
        self, texts: Sequence[TokenIds] | Sequence[str], labels: NDArray[Any]
    ) -> Floats:
        features = mean_and_maximum(self._ids(texts), self.vectors)
        self.center_ = features.mean(axis=0)
        mean, maximum = np.split(features - self.center_, 2, axis=1)
        scales = [_inverse(mean.std()), MAXIMUM_SHARE * _inverse(maximum.std())]
        self.scale_ = np.repeat(scales, self.vectors.shape[1])
        return (features - self.center_) * self.scale_

    def _features(self, texts: Sequence[TokenIds] | Sequence[str]) -> Floats:
        return (mean_and_maximum(self._ids(texts), self.vectors) - self.center_) * self.scale_

    def _ids(self, texts: Sequence[Any]) -> Sequence[TokenIds]:
        if self.tokenizer is not None and len(texts) and isinstance(texts[0], str):
            return self.tokenizer.encode_arrays(texts)
        return texts

    def _parts(self, folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any], list[Path]]:
        if self.tokenizer is None:
            raise ValueError("without its tokenizer the classifier could not read a text again")
        arrays = {"vectors": self.vectors, "center": self.center_, "scale": self.scale_}
        return arrays, {}, [self.tokenizer.save(folder)]

    @classmethod
    def _from_parts(
        cls, arrays: dict[str, NDArray[Any]], settings: dict[str, Any], folder: Path
    ) -> tuple[Self, int]:
        vectors, tokenizer = arrays["vectors"], load_tokenizer(folder)
        features = 2 * vectors.shape[1]
        check_shape("vectors", vectors, tokenizer.vocab_size, vectors.shape[1])
        made = cls(vectors, tokenizer=tokenizer)
        made.center_ = check_shape("center", arrays["center"], features)
        made.scale_ = check_shape("scale", arrays["scale"], features)
        return made, features


def mean_and_maximum(texts: Sequence[TokenIds], vectors: NDArray[np.float32]) -> Floats:
    """One row per text, twice as wide as the vectors; zeros for a text without a known token."""
    known = np.asarray(vectors.any(axis=1))
    width = vectors.shape[1]
    features = np.zeros((len(texts), 2 * width))
    for row, text in enumerate(texts):
        tokens = np.asarray(text, dtype=np.int64)
        found = vectors[tokens[known[tokens]]]
        if len(found):
            features[row, :width] = found.mean(axis=0)
            features[row, width:] = found.max(axis=0)
    return features


def _inverse(scale: float) -> float:
    return 1 / scale if scale > 0 else 0.0
