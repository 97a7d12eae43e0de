"""Linear text classifiers as scikit-learn estimators: features and a logistic regression.

`TfidfClassifier` is what any text model must beat. `NaiveBayesClassifier` is strong on short texts
with few labels. `CooccurrenceClassifier` reads PPMI-SVD vectors of the corpus. `WordTagger` is the
linear model of tagging. To add one, compute its features in a subclass and add an entry to
`arms.py`.
"""

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.utils.validation import check_is_fitted

from headstart.data.cooccurrence import TokenIds
from headstart.data.dataset import as_text
from headstart.data.tokenizers import Tokenizer, load_tokenizer
from headstart.errors import HeadstartError
from headstart.folds import Fold, make_folds
from headstart.linear import (
    POOLED_CS,
    FoldFeatures,
    RowSpace,
    fit_regression,
    pooled_scale,
    select_C,
)
from headstart.run import over_all_labels
from headstart.tasks.classification import CERTAIN

MAX_FEATURES = 200_000  # words and pairs of words, and as many character n-grams
Floats = NDArray[np.float64]
Words = Sequence[Sequence[str]]


class LinearTextClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Logistic regression on features of texts; a subclass computes the features.

    A text is a string, or a tuple of two for pairs. Labels are class numbers or names, or an
    indicator matrix (rows, labels) for texts with several labels: one regression per label.

    C, the inverse of the regularisation, is the best of eight values, by the log-loss of held-out
    rows. `C_` lists one, or one per label. Of two classes, `coef_` (classes, features) and
    `intercept_` have one row, for the second. `oof_scores_` are the scores of each fold's held-out
    rows, by a model that was not trained on them.
    """

    kind: ClassVar[str]  # in saved runs; the name of the arm
    Cs: ClassVar[Sequence[float]]
    arrays: ClassVar[tuple[str, ...]]  # attributes of the features

    def fit(
        self,
        texts: Sequence[Any],
        labels: Any,
        *,
        validation: tuple[Sequence[Any], Any] | None = None,
        folds: Sequence[Fold] | None = None,
    ) -> Self:
        """Select C and fit all training rows.

        C is selected on `validation` (texts and labels) if it is given, otherwise in `folds`, by
        default those of `make_folds`, with features fitted in each. Without both, C is the middle
        value.
        """
        outputs = self._targets(labels)
        if len(texts) != len(labels):
            raise ValueError(f"{len(texts)} texts and {len(labels)} labels")
        if len(outputs) == 1 and len(np.unique(outputs[0])) < 2:
            raise HeadstartError(
                f"the {len(texts):,} training rows do not have two classes",
                fix="a classifier needs rows of at least two classes",
            )
        if validation is not None:
            splits = [(texts, labels, *validation)]
        else:
            splits = [
                (*_pick(texts, labels, fold.train), *_pick(texts, labels, fold.held))
                for fold in (make_folds(labels) if folds is None else folds)
            ]
        parts = []  # features and targets that train, and those that are held out
        for train, y, held, held_y in [*splits, (texts, labels, texts[:1], labels[:1])]:
            features, held_features = self._fit_features(train, y), self._features(held)
            space = self._row_space(features, y)
            if space is not None:
                features, held_features = map(space.coordinates, (features, held_features))
            parts.append((features, self._targets(y), held_features, self._targets(held_y)))
        features = parts.pop()[0]  # of all rows, as is what the features have learned
        values = self.Cs if len(outputs) <= 8 else [3.0]  # each of many labels selecting is slow
        self.C_, models, fold_models = [], [], []
        for number, y in enumerate(outputs):
            C, fitted = values[len(values) // 2], list[Any]()
            if parts:
                one = [FoldFeatures(x, t[number], held, h[number]) for x, t, held, h in parts]
                C, fitted = select_C(one, values, self._fit_model)
            self.C_.append(float(C))
            models.append(self._fit_model(features, y, C))
            fold_models.append(fitted)
        self.classes_, self.coef_, self.intercept_ = _join(models)
        if space is not None:
            self.coef_ = space.expand(self.coef_)
        self.oof_scores_ = []
        for number, (_, _, held, _) in enumerate(splits):
            model = _join([fitted[number] for fitted in fold_models])
            columns = np.searchsorted(self.classes_, model[0])  # a fold may lack a rare class
            logits = _logits(parts[number][2], *model)
            logits = over_all_labels(logits, columns, len(self.classes_))
            self.oof_scores_.append(self._per_text(logits, held))
        return self

    def scores(self, texts: Sequence[Any]) -> Any:
        """Compute logits (texts, classes); those of a text do not depend on the others."""
        check_is_fitted(self)
        found = _logits(self._features(texts), self.classes_, self.coef_, self.intercept_)
        return self._per_text(found, texts)

    def predict(self, texts: Sequence[Any]) -> Any:
        """Predict the most probable class of each text."""
        best = self.scores(texts).argmax(axis=1)  # before `classes_`: this checks that it is fitted
        return np.asarray(self.classes_[best])

    def write(self, folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and settings for `read`; what needs a separate file goes into `folder`."""
        names = (*self.arrays, "classes_", "coef_", "intercept_")
        # safetensors writes memory as it is, whatever the strides say.
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in names}
        return arrays, {"C": self.C_, "words": self._write_words(folder)}

    @classmethod
    def read(cls, folder: Path, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]) -> Self:
        """Read what `write` wrote; LookupError, TypeError and ValueError mean damage."""
        made = cls()
        for name, array in arrays.items():
            if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
                raise ValueError(f"{name} holds NaN or infinite numbers")
            setattr(made, name, array)
        made.C_ = settings["C"]
        made._read_words(folder, settings["words"])
        # Arrays that do not fit each other are a ValueError.
        found = _logits(made._features(["a"]), made.classes_, made.coef_, made.intercept_)
        if found.shape != (1, len(made.classes_)) or len(made.intercept_) != len(made.coef_):
            raise ValueError("the coefficients are not those of the classes")
        return made

    @abstractmethod
    def _fit_features(self, texts: Sequence[Any], labels: Any) -> Any:
        """Fit the features to training rows; return those of the rows."""

    @abstractmethod
    def _features(self, texts: Sequence[Any]) -> Any:
        """Compute the features of texts."""

    def _targets(self, labels: Any) -> list[NDArray[Any]]:
        """Return what each regression predicts: the classes, or one label of several."""
        y = np.asarray(labels)
        return [y] if y.ndim == 1 else list(y.T)

    def _fit_model(self, features: Any, y: NDArray[Any], C: float, weights: Any = None) -> Any:
        """Fit one regression; a label that all or no rows have is certain."""
        if len(np.unique(y)) > 1:
            return fit_regression(features, y, C, weights)
        model = LogisticRegression(C=C)
        model.classes_, model.coef_ = np.arange(2), np.zeros((1, features.shape[1]))
        model.intercept_ = np.where(y[:1], CERTAIN, -CERTAIN)
        return model

    def _row_space(self, features: Any, labels: Any) -> RowSpace | None:
        """Return coordinates in which the regressions are fitted faster, if there are any."""
        return None

    def _per_text(self, scores: Floats, texts: Sequence[Any]) -> Any:
        """Arrange the scores of features as one entry per text."""
        return scores

    def _write_words(self, folder: Path) -> Any:
        """Return the vocabulary, or write the tokenizer, if there is one."""

    def _read_words(self, folder: Path, words: Any) -> None:
        """Take over what `_write_words` returned or wrote."""


class _NgramClassifier(LinearTextClassifier):
    """Features are words and pairs of words, the most frequent ones."""

    token_pattern: ClassVar[str]
    binary: ClassVar[bool] = False  # whether occurrences count once per text

    def _vectorizer(self, vocabulary: Sequence[str] | None = None) -> CountVectorizer:
        return CountVectorizer(
            token_pattern=self.token_pattern,
            ngram_range=(1, 2),
            binary=self.binary,
            max_features=MAX_FEATURES,
            vocabulary=vocabulary,
            dtype=np.float32,
        )

    def _fit_words(self, texts: Sequence[str]) -> Any:
        """Fit the vectorizer; where no text has a word, it gets one column that no text has."""
        self.words_ = self._vectorizer()
        if not any(map(self.words_.build_analyzer(), texts)):
            self.words_ = self._vectorizer(["\0"])
        return self.words_.fit_transform(texts)

    def _row_space(self, features: Any, labels: Any) -> RowSpace | None:
        return RowSpace.of(features, labels)

    def _write_words(self, folder: Path) -> Any:
        return self.words_.get_feature_names_out().tolist()

    def _read_words(self, folder: Path, words: Any) -> None:
        self.words_ = self._vectorizer(words)
        self.words_.fit([])  # takes the vocabulary over


class TfidfClassifier(_NgramClassifier):
    """TF-IDF of words, pairs of words and character n-grams, and a logistic regression.

    Words alone and in pairs, and 3 to 5 characters (they see endings, typos and languages without
    spaces), are weighted by 1 + ln(count) and by idf.

    >>> texts = ["a fine film", "fine acting", "a dull film", "dull acting"]
    >>> TfidfClassifier().fit(texts, [1, 1, 0, 0]).predict(["so fine", "so dull"])
    array([1, 0])
    """

    kind = "tfidf"
    token_pattern = r"\w+"
    Cs = (0.1, 0.3, 1, 3, 10, 30, 100, 300)
    arrays = ("char_columns_", "char_idf_", "word_idf_")

    def _fit_features(self, texts: Sequence[Any], labels: Any) -> sparse.csr_array:
        texts = _as_strings(texts)
        counts = count_char_ngrams(texts)
        in_texts = np.bincount(counts.indices, minlength=counts.shape[1])
        frequent = np.argsort(-in_texts, kind="stable")[:MAX_FEATURES]
        used = frequent[in_texts[frequent] > 0]
        self.char_columns_ = np.sort(used if len(used) else frequent[:1])  # at least one
        counts, words = counts[:, self.char_columns_], self._fit_words(texts)
        self.char_idf_ = TfidfTransformer().fit(counts).idf_
        self.word_idf_ = TfidfTransformer().fit(words).idf_
        return self._weight(words, counts)

    def _features(self, texts: Sequence[Any]) -> sparse.csr_array:
        texts = _as_strings(texts)
        counts = count_char_ngrams(texts)[:, self.char_columns_]
        return self._weight(self.words_.transform(texts), counts)

    def _weight(self, words: Any, characters: Any) -> sparse.csr_array:
        weighted = []
        for counts, idf in ((words, self.word_idf_), (characters, self.char_idf_)):
            if counts.shape[1:] != idf.shape:
                raise ValueError("the idf weights are not those of the n-grams")
            tfidf = TfidfTransformer(sublinear_tf=True)
            tfidf.idf_ = idf
            weighted.append(tfidf.transform(counts))
        return sparse.hstack(weighted, format="csr")


class NaiveBayesClassifier(_NgramClassifier):
    """Naive-Bayes log-count ratios of words and pairs of words, and a logistic regression.

    The feature of a word that occurs in a text is its log-count ratio: how much more frequent it is
    in texts of a class than in all others. This is a strong baseline for short texts with few
    labels (Wang and Manning 2012, "Baselines and bigrams"). With more than two classes, the feature
    is the largest ratio.

    >>> texts = ["a fine film", "fine acting", "a dull film", "dull acting"]
    >>> NaiveBayesClassifier().fit(texts, [1, 1, 0, 0]).predict(["so fine", "so dull"])
    array([1, 0])
    """

    kind = "nb"
    token_pattern = r"\w+|[^\w\s]"  # a smiley or an exclamation mark is a word
    Cs = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3)
    binary = True
    arrays = ("ratios_",)

    def _fit_features(self, texts: Sequence[Any], labels: Any) -> sparse.csr_array:
        counts = self._fit_words(_as_strings(texts))
        self.ratios_ = count_ratios(counts, np.asarray(labels))
        return sparse.csr_array(counts.multiply(self.ratios_))

    def _features(self, texts: Sequence[Any]) -> sparse.csr_array:
        return sparse.csr_array(self.words_.transform(_as_strings(texts)).multiply(self.ratios_))


class CooccurrenceClassifier(LinearTextClassifier):
    """Mean and maximum of a text's PPMI-SVD vectors, and a logistic regression.

    Tokens with the zero vector (special, or not in the corpus) do not count. Columns are centred
    but not scaled one by one: the decomposition has sorted them, and scaling the last ones up to
    the size of the first costs 4 to 8 points. Mean and maximum have one scale each
    (research/cooccurrence.md has the numbers). `vectors` are (vocab_size, width). Without a
    tokenizer, a text is an array of token ids, and the classifier cannot be saved.
    """

    kind = "cooc-lr"
    Cs = POOLED_CS
    arrays = ("vectors", "center_", "scale_")

    def __init__(self, vectors: Any = None, *, tokenizer: Tokenizer | None = None) -> None:
        self.vectors = vectors
        self.tokenizer = tokenizer

    def _fit_features(self, texts: Sequence[Any], labels: Any) -> Floats:
        pooled = self._pool(texts)
        self.center_ = pooled.mean(axis=0)
        self.scale_ = pooled_scale(pooled - self.center_)
        return (pooled - self.center_) * self.scale_

    def _features(self, texts: Sequence[Any]) -> Floats:
        return (self._pool(texts) - self.center_) * self.scale_

    def _pool(self, texts: Sequence[Any]) -> Floats:
        if self.tokenizer is not None:
            texts = self.tokenizer.encode_arrays(_as_strings(texts))
        return mean_and_maximum(texts, self.vectors)

    def _write_words(self, folder: Path) -> Any:
        if self.tokenizer is None:
            raise ValueError("a classifier without its tokenizer cannot be saved")
        self.tokenizer.save(folder)

    def _read_words(self, folder: Path, words: Any) -> None:
        self.tokenizer = load_tokenizer(folder)
        if len(self.vectors) != self.tokenizer.vocab_size:
            raise ValueError("the vectors are not those of the tokenizer")


class WordTagger(LinearTextClassifier):
    """Tag words one by one: logistic regression on a word, its ending, shape and neighbours.

    The features are those of taggers before neural networks (Ratnaparkhi 1996), hashed; a few
    passes of stochastic gradient descent take seconds.

    A text is a sentence, a sequence of words; its labels are the tag numbers of the words. C is the
    inverse of `alpha` of scikit-learn's SGDClassifier.
    """

    kind = "tagger"
    Cs = (1e4, 1e5, 1e6)
    arrays = ()

    def _fit_features(self, texts: Words, labels: Any) -> sparse.csr_matrix:
        return self._features(texts)

    def _features(self, texts: Words) -> sparse.csr_matrix:
        names = (word_features(words, place) for words in texts for place in range(len(words)))
        return FeatureHasher(2**18, input_type="string", alternate_sign=False).transform(names)

    def _targets(self, labels: Any) -> list[NDArray[np.int64]]:
        return [np.concatenate([np.asarray(tags, dtype=np.int64) for tags in labels])]

    def _fit_model(self, features: Any, y: NDArray[Any], C: float, weights: Any = None) -> Any:
        # A fixed number of passes: it need not have converged.
        return SGDClassifier(
            loss="log_loss", alpha=1 / C, max_iter=10, tol=None, random_state=0, average=True
        ).fit(features, y)

    def _per_text(self, scores: Floats, texts: Words) -> list[Floats]:
        return np.split(scores, np.cumsum([len(words) for words in texts])[:-1])

    def predict(self, texts: Words) -> list[NDArray[np.int64]]:
        """Return the tag numbers of each sentence."""
        return [self.classes_[scores.argmax(axis=1)] for scores in self.scores(texts)]


def count_ratios(counts: Any, labels: NDArray[Any]) -> Floats:
    """Compute the largest |log-count ratio| over classes of each column of 0s and 1s."""
    found = np.zeros(counts.shape[1])
    totals = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    for name in np.unique(labels):
        inside = np.asarray(counts[np.flatnonzero(labels == name)].sum(axis=0), dtype=np.float64)
        positive = 1 + inside.ravel()
        negative = 1 + totals - inside.ravel()
        ratio = np.log(positive / positive.sum()) - np.log(negative / negative.sum())
        found = np.maximum(found, np.abs(ratio))
    return found


def mean_and_maximum(texts: Sequence[TokenIds], vectors: NDArray[np.float32]) -> Floats:
    """Pool token vectors: (texts, 2 × width); zeros for a text without a known token."""
    known = np.asarray(vectors.any(axis=1))
    features = np.zeros((len(texts), 2 * vectors.shape[1]))
    for row, text in enumerate(texts):
        tokens = np.asarray(text, dtype=np.int64)
        found = vectors[tokens[known[tokens]]]
        if len(found):
            features[row] = np.concatenate([found.mean(axis=0), found.max(axis=0)])
    return features


def _pick(texts: Sequence[Any], labels: Any, rows: NDArray[np.int64]) -> tuple[list[Any], Any]:
    return [texts[row] for row in rows], [labels[row] for row in rows]


def _as_strings(texts: Sequence[Any]) -> list[str]:
    """Join the two texts of a pair with a visible mark between them."""
    return [as_text(text) if isinstance(text, tuple) else text for text in texts]


def _join(models: Sequence[Any]) -> tuple[NDArray[Any], Floats, Floats]:
    """Return classes, coefficients and intercepts of one regression, or of one per label."""
    return (
        models[0].classes_ if len(models) == 1 else np.arange(len(models)),
        np.vstack([model.coef_ for model in models]),
        np.concatenate([model.intercept_ for model in models]),
    )


def _logits(features: Any, classes: NDArray[Any], coef: Floats, intercept: Floats) -> Floats:
    """Compute logits (rows, classes); two classes have one row of coefficients, for the second."""
    if sparse.issparse(features):
        found = np.asarray(features @ coef.T)
    else:  # a library's product would round a row differently among others
        found = np.einsum("rf,cf->rc", features, coef)
    found = found + intercept
    return np.hstack([np.zeros_like(found), found]) if len(classes) > len(coef) else found


def word_features(words: Sequence[str], place: int) -> list[str]:
    """Return the features of one word of a sentence, as names.

    >>> word_features(["in", "Oslo"], 1)[:4]
    ['word=oslo', 'shape=LuLl', 'suffix=o', 'suffix=lo']
    """
    word = words[place]
    lower = word.lower()
    found = [f"word={lower}", f"shape={_shape(word)}"]
    found += [f"suffix={lower[-size:]}" for size in (1, 2, 3)]
    found += [f"prefix={lower[:size]}" for size in (2, 3)]
    for offset in (-2, -1, 1, 2):
        there = place + offset
        near = words[there] if 0 <= there < len(words) else "·"
        found += [f"{offset}={near.lower()}", f"{offset}shape={_shape(near)}"]
    before = words[place - 1].lower() if place else "·"
    return [*found, f"pair={before} {lower}"]


def _shape(word: str) -> str:
    """Write runs of capitals, small letters and digits as one each: "Oslo-2" is "LuLlPdNd"."""
    return "".join(category for category, _ in groupby(map(unicodedata.category, word)))


# Character n-grams. scikit-learn makes a string of each and looks it up; docs/architecture.md has
# the times. Here all n-grams of a batch are hashed at once, by a hash that rolls over the code
# points, and counted by one sort.
SIZES = range(3, 6)  # characters of an n-gram
HASH_BITS = 20  # a million columns: few n-grams share one
BATCH = 1_000  # texts
# Odd numbers without a pattern; any would do, but saved runs are read with these.
MULTIPLIER, SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


def count_char_ngrams(texts: Sequence[str]) -> sparse.csr_array:
    """Count the n-grams of each text, without case and with single spaces: (texts, 2^HASH_BITS)."""
    blocks = [_count_batch(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)]
    if not blocks:
        return sparse.csr_array((0, 2**HASH_BITS), dtype=np.float32)
    return sparse.vstack(blocks, format="csr")


def _count_batch(texts: Sequence[str]) -> sparse.csr_array:
    plain = [f" {' '.join(text.lower().split())} " for text in texts]
    owners = np.repeat(np.arange(len(plain), dtype=np.uint64), [len(text) for text in plain])
    codes = np.frombuffer("".join(plain).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    hashes = np.ones(len(codes), dtype=np.uint64)  # not 0: a leading NUL would leave no trace
    bits, found = np.uint64(HASH_BITS), []
    for size in range(1, SIZES.stop):
        hashes = hashes[: len(codes) - size + 1] * MULTIPLIER + codes[size - 1 :]
        if size in SIZES:
            first = np.flatnonzero(owners[: len(hashes)] == owners[size - 1 :])  # in one text
            mixed = (hashes[first] ^ (hashes[first] >> np.uint64(29))) * SPREAD
            found.append(owners[first] << bits | mixed >> np.uint64(64 - HASH_BITS))
    distinct, times = np.unique(np.concatenate(found), return_counts=True)
    columns = (distinct & np.uint64(2**HASH_BITS - 1)).astype(np.int32)
    pointers = np.searchsorted(distinct >> bits, np.arange(len(texts) + 1, dtype=np.uint64))
    return sparse.csr_array(
        (times.astype(np.float32), columns, pointers.astype(np.int32)),
        shape=(len(texts), 2**HASH_BITS),
    )
