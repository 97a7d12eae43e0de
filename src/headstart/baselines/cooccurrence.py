"""The `cooccurrence` arm: how far do the counted vectors come by themselves?

A text is the mean and the maximum, column by column, of its tokens' vectors; a logistic regression
on these is the classifier. It needs seconds and knows nothing of word order.

Columns are centred, but not scaled one by one: the decomposition has sorted them, the first carry
most of what the corpus knows, and blowing the last ones up to the same size costs 4 to 8 points.
Mean and maximum get one scale each (docs/cooccurrence.md has the numbers).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headstart.baselines.regression import RegressionClassifier
from headstart.evaluation.calibration import Floats
from headstart.linear import MAXIMUM_SHARE, STRENGTHS
from headstart.text.cooccurrence import TokenIds


class CooccurrenceClassifier(RegressionClassifier):
    """Logistic regression on the mean and maximum of a text's vectors (vocab_size × width).

    Texts are arrays of token ids. Tokens with the zero vector (special or never seen in the corpus)
    are passed over.

    Parameters
    ----------
    vectors : array of shape (vocab_size, width)
    strengths : sequence of float
        Values of scikit-learn's C; the best on validation is taken.
    """

    def __init__(
        self, vectors: NDArray[np.float32], *, strengths: Sequence[float] = STRENGTHS
    ) -> None:
        self.vectors = vectors
        self.strengths = strengths

    def _fit_features(self, texts: Sequence[TokenIds]) -> Floats:
        features = mean_and_maximum(texts, self.vectors)
        self.center_ = features.mean(axis=0)
        mean, maximum = np.split(features - self.center_, 2, axis=1)
        scales = [_inverse(mean.std()), MAXIMUM_SHARE * _inverse(maximum.std())]
        self.scale_ = np.repeat(scales, self.vectors.shape[1])
        return (features - self.center_) * self.scale_

    def _features(self, texts: Sequence[TokenIds]) -> Floats:
        return (mean_and_maximum(texts, self.vectors) - self.center_) * self.scale_


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
