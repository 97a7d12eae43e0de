"""Exact match and F1 of span answers, as in SQuAD, but for any language.

Like SQuAD's script, answers are compared without case, punctuation and extra blanks; F1 is over
the words that two answers share, and the best of several right answers counts. Different here:
- Articles stay. SQuAD drops English "a", "an", "the"; a list for every language is guesswork, and
  "the" may be the answer. So an answer that misses just an article matches there and not here.
- Punctuation is Unicode's (categories P and S), not ASCII's alone: « » „ “ 。 ， go as well.
- Forms of a character are one (NFKC and casefold): full-width letters, ligatures, ß and ss.
- Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without blanks: there each character
  is a word of its own, else F1 would be exact match again.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from headstart.scripts import unspaced


@dataclass(frozen=True)
class SpanMetrics:
    """Means over the questions, from 0 to 1."""

    questions: int
    exact_match: float
    f1: float


def normalized_words(answer: str) -> list[str]:
    """What is compared: words without case, punctuation and blanks."""
    kept = []
    for character in unicodedata.normalize("NFKC", answer).casefold():
        if unicodedata.category(character)[0] in "PS":
            continue
        kept.append(f" {character} " if unspaced(character) else character)
    return "".join(kept).split()


def exact_match(predicted: str, answers: Sequence[str]) -> float:
    """1 if the prediction is one of the right answers, else 0; no answers means "no answer"."""
    words = normalized_words(predicted)
    return float(any(words == normalized_words(answer) for answer in answers or [""]))


def f1(predicted: str, answers: Sequence[str]) -> float:
    """The best F1 of the shared words over the right answers."""
    return max(_f1(normalized_words(predicted), normalized_words(a)) for a in answers or [""])


def span_metrics(predicted: Sequence[str], answers: Sequence[Sequence[str]]) -> SpanMetrics:
    """Score one prediction per question; an empty one says that the text holds no answer."""
    if not predicted or len(predicted) != len(answers):
        raise ValueError(f"{len(predicted)} predictions for {len(answers)} questions")
    pairs = list(zip(predicted, answers, strict=True))
    return SpanMetrics(
        questions=len(pairs),
        exact_match=sum(exact_match(*pair) for pair in pairs) / len(pairs),
        f1=sum(f1(*pair) for pair in pairs) / len(pairs),
    )


def _f1(predicted: list[str], answer: list[str]) -> float:
    if not predicted or not answer:
        return float(predicted == answer)
    shared = (Counter(predicted) & Counter(answer)).total()
    return 2 * shared / (len(predicted) + len(answer))
