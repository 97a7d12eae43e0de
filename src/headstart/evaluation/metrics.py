"""Metrics of classes, sets of labels, entities and text spans, as plain dictionaries of floats.

Labels are class numbers (0, 1, …) that index the columns of the probabilities. A class that neither
occurs nor is predicted has an F1 of 0, as in scikit-learn.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest, sem, t
from sklearn.metrics import f1_score

from headstart.data.words import unspaced
from headstart.errors import HeadstartError
from headstart.evaluation.calibration import Floats, calibration_error, log_loss, normalized

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval; an infinite bound means that it is unknown."""

    value: float
    low: float
    high: float
    level: float = LEVEL

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    def excludes(self, number: float) -> bool:
        return self.low > number or self.high < number


def wilson_interval(successes: int, total: int) -> Interval:
    """Compute Wilson's score interval of a proportion (1927), accurate for few rows, too."""
    bounds = binomtest(successes, total).proportion_ci(LEVEL, method="wilson")
    return Interval(successes / total, float(bounds.low), float(bounds.high))


# Row scores: accuracy, F1, exact match and their macro averages are means of ratios of sums over
# rows; F1 is 2·correct / (predicted + true). Intervals are over rows, because words of a sentence
# and labels of a text are not independent.


@dataclass(frozen=True)
class RowScores:
    """A metric as sums over rows: the mean over columns of Σ correct / Σ total.

    Columns are the classes of a macro average; any other metric has one. A column without a total
    counts as 0, as in scikit-learn.
    """

    correct: Floats  # (rows, columns)
    total: Floats  # (rows, columns)

    @property
    def value(self) -> float:
        """The metric."""
        total = self.total.sum(0)
        ratios = np.divide(self.correct.sum(0), total, out=np.zeros_like(total), where=total > 0)
        return float(ratios.mean())

    def per_row(self) -> Floats:
        """Compute one number per row, (rows,), whose mean is the metric.

        Where all rows have the same total this is the row's score. Otherwise it is the metric's
        linearization (influence function) F + (correct − F·total) / mean total: means over
        resampled rows then vary as the ratio of sums does, to first order.
        """
        totals = self.total.mean(0)
        known = totals > 0
        ratios = np.divide(self.correct.mean(0), totals, out=np.zeros_like(totals), where=known)
        away = np.divide(
            self.correct - ratios * self.total, totals, where=known, out=np.zeros_like(self.correct)
        )
        return np.asarray((ratios + away).mean(1))

    def interval(self) -> Interval:
        """Compute the metric's interval: Wilson's for a share of rows, otherwise Student's.

        Two rows that are correct and two that are wrong are added for it (Agresti and Coull, 1998),
        so that rows which all agree have an interval, too.
        """
        per_row, rows = self.per_row(), len(self.correct)
        if self.total.shape[1] == 1 and (self.total == 1).all() and np.isin(per_row, (0, 1)).all():
            return wilson_interval(int(per_row.sum()), rows)
        padded = np.concatenate([per_row, [0.0, 0.0, 1.0, 1.0]])
        reach = sem(padded) * t.ppf((1 + LEVEL) / 2, len(padded) - 1)
        low, high = np.clip([padded.mean() - reach, padded.mean() + reach], 0, 1)
        return Interval(self.value, min(low, self.value), max(high, self.value))


def ratio_scores(correct: ArrayLike, total: ArrayLike) -> RowScores:
    """Make the scores of Σ correct / Σ total from counts per row: (rows,) or (rows, columns)."""
    counts = [np.asarray(one, dtype=np.float64) for one in (correct, total)]
    return RowScores(*(one.reshape(len(one), -1) for one in counts))


def mean_scores(values: ArrayLike) -> RowScores:
    """Make the scores of a metric that is a mean over rows."""
    return ratio_scores(values, np.ones(len(np.asarray(values))))


def f1_scores(correct: ArrayLike, predicted: ArrayLike, true: ArrayLike) -> RowScores:
    """Make the scores of F1 from counts per row: (rows,), or (rows, classes) for a macro F1."""
    return ratio_scores(2.0 * np.asarray(correct), np.add(predicted, true, dtype=np.float64))


def classification_metrics(probabilities: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """Compute the metrics of probabilities (rows, classes) and classes; "loss" is the log-loss."""
    p, y = normalized(probabilities), np.asarray(labels)
    predicted, classes = p.argmax(axis=1), np.arange(p.shape[1])
    return {
        "loss": log_loss(p, y),
        "accuracy": float((predicted == y).mean()),
        "macro_f1": float(f1_score(y, predicted, labels=classes, average="macro", zero_division=0)),
        "calibration_error": calibration_error(p, y),
    }


def class_table(
    names: Sequence[str], correct: ArrayLike, predicted: ArrayLike, true: ArrayLike
) -> list[dict[str, Any]]:
    """Compute precision, recall, F1 and support from counts by class, label or kind of entity."""
    counts = np.array([correct, predicted, true]).T.tolist()
    return [
        {
            "name": name,
            "precision": hits / max(1, given),
            "recall": hits / max(1, wanted),
            "f1": 2 * hits / max(1, given + wanted),
            "support": wanted,
        }
        for name, (hits, given, wanted) in zip(names, counts, strict=True)
    ]


def confident_mistakes(
    probabilities: ArrayLike, labels: ArrayLike, *, count: int = 10
) -> list[dict[str, Any]]:
    """Find the wrong predictions with the highest probability, as numbers of rows and classes."""
    p, y = normalized(probabilities), np.asarray(labels)
    predicted, confidence = p.argmax(axis=1), p.max(axis=1)
    wrong = np.flatnonzero(predicted != y)
    worst = wrong[np.argsort(-confidence[wrong], kind="stable")][:count]
    return [
        {
            "row": int(row),
            "true": int(y[row]),
            "predicted": int(predicted[row]),
            "confidence": float(confidence[row]),
        }
        for row in worst
    ]


# Entities. Tags are IOB2: `B-PER` begins an entity of kind PER, `I-PER` continues it, `O` is none.
# IOBES and BILOU also mark the last token (`E-`, `L-`) and single ones (`S-`, `U-`). As in
# seqeval's default mode and CoNLL's script, an `I-` that continues nothing begins an entity.
PREFIXES = {  # (begins an entity, ends it)
    "B": (True, False),
    "I": (False, False),
    "E": (False, True),
    "L": (False, True),
    "S": (True, True),
    "U": (True, True),
}


class Entity(NamedTuple):
    """Tokens `start` up to, but excluding, `end`."""

    kind: str
    start: int
    end: int


def find_entities(tags: Sequence[str]) -> list[Entity]:
    """Find the entities of one tagged sentence, in order."""
    found: list[Entity] = []
    kind, start, ended = "", 0, False
    for place, tag in enumerate([*tags, "O"]):
        if not is_entity_tag(tag):
            raise HeadstartError(
                f"the tag {tag!r} is not IOB2, IOBES or BILOU",
                fix="use O, B-KIND and I-KIND, such as B-PER, I-PER",
            )
        now = tag[2:]
        begins, ends = PREFIXES.get(tag[:1], (True, True))
        if kind and (begins or ended or now != kind):
            found.append(Entity(kind, start, place))
            kind = ""
        if now and not kind:
            kind, start = now, place
        ended = ends
    return found


def is_entity_tag(tag: str) -> bool:
    """Tell whether a tag is one of IOB2, IOBES or BILOU."""
    return tag == "O" or (tag[:1] in PREFIXES and tag[1:2] == "-" and len(tag) > 2)


def count_entities(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[list[str], NDArray[np.int64]]:
    """Count correct, predicted and true entities; return kinds and counts (3, sentences, kinds)."""
    found: list[tuple[int, int, str]] = []
    for sentence, (tags, guesses) in enumerate(zip(true, predicted, strict=True)):
        wanted, given = set(find_entities(tags)), set(find_entities(guesses))
        for place, group in enumerate((wanted & given, given, wanted)):
            found += [(place, sentence, entity.kind) for entity in group]
    kinds = sorted({kind for _, _, kind in found})
    counts = np.zeros((3, len(true), len(kinds)), dtype=np.int64)
    for place, sentence, kind in found:
        counts[place, sentence, kinds.index(kind)] += 1
    return kinds, counts


# Spans: exact match and F1 as in SQuAD, for any language. Predictions are compared without case,
# punctuation (Unicode's, not only ASCII's) and extra blanks, and in NFKC form. Unlike in SQuAD's
# script, articles stay: a list of them for every language is guesswork. Scripts without blanks
# (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are compared by character.
def normalized_words(text: str) -> list[str]:
    """Split a text into the words that are compared: no case, punctuation or blanks."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    kept = [one for one in plain if unicodedata.category(one)[0] not in "PS"]
    return "".join(f" {one} " if unspaced(one) else one for one in kept).split()


def exact_match(predicted: str, references: Sequence[str]) -> float:
    """Score 1 if the prediction equals a reference; no references mean "no answer"."""
    words = normalized_words(predicted)
    return float(any(words == normalized_words(one) for one in references or [""]))


def span_f1(predicted: str, references: Sequence[str]) -> float:
    """Compute the best F1 of shared words over the references."""
    words = normalized_words(predicted)
    return max(_word_f1(words, normalized_words(one)) for one in references or [""])


def _word_f1(predicted: list[str], reference: list[str]) -> float:
    if not predicted or not reference:
        return float(predicted == reference)
    shared = (Counter(predicted) & Counter(reference)).total()
    return 2 * shared / (len(predicted) + len(reference))
