"""Spans: a question about a text, answered by a span of that text, or by nothing.

The network reads `<begin> question <separator> text <end>` and scores every token as the start and
as the end of the answer. "No answer" is the first token, as in BERT. Answers are whole words of the
text, exactly as written. Texts that do not fit are cut, or read in windows that overlap by half;
the best span of all windows is the answer.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from torch import Tensor

from headstart.config import Pooling
from headstart.data.dataset import Questions
from headstart.data.words import find_words, first_sentence
from headstart.errors import HeadstartError
from headstart.evaluation.metrics import RowScores, exact_match, mean_scores, span_f1
from headstart.model.config import SpansConfig
from headstart.model.presets import Preset
from headstart.tasks.task import (
    Examples,
    Ids,
    LabelledBatch,
    Output,
    Prediction,
    Task,
    TextEncoding,
    word_windows,
)

NO_ANSWER = "no answer"  # a label of the task where some questions have none
MAX_ANSWER_WORDS = 30
NO_ANSWER_TOKEN = 0  # the first
MIN_ROOM = 8  # tokens of the text that must fit after a question


class Window(NamedTuple):
    """A part of a text: the places of its words in the text and among the tokens."""

    context: str
    first: int  # the number of its first word in the text
    characters: list[tuple[int, int]]  # start and end of each word
    starts: Ids  # the first token of each word
    ends: Ids  # the last token of each word


class SpanScore(NamedTuple):
    """The best span of a text, characters `start` up to `end`; empty for "no answer"."""

    text: str
    start: int
    end: int
    probability: float  # among all spans, and "no answer" where the task has it
    loss: float


NOTHING = SpanScore("", 0, 0, 1.0, 0.0)


class Spans(Task[Questions]):
    """A span of the text, or none, for each question."""

    name: ClassVar[str] = "spans"
    input_names: ClassVar[tuple[str, ...]] = ("question", "text")
    prediction_fields: ClassVar[tuple[str, ...]] = ("answer", "probability", "start", "end")
    file_suffixes: ClassVar[tuple[str, ...]] = (".jsonl",)
    row_name: ClassVar[str] = "questions"
    metric_names: ClassVar[tuple[str, ...]] = ("f1", "exact_match")

    @classmethod
    def from_rows(cls, train: Questions) -> "Spans":
        return cls(() if all(train.answers) else (NO_ANSWER,))

    def texts(self, rows: Questions) -> Sequence[str]:
        return [*rows.questions, *sorted(set(rows.contexts))]

    def unlabelled(self, inputs: Sequence[tuple[str, str]]) -> Questions:
        """Convert (question, text) tuples to rows without answers."""
        questions, contexts = [one for one, _ in inputs], [text for _, text in inputs]
        return Questions("questions", questions, contexts, [[] for _ in inputs])

    def head(self, preset: Preset, pooling: Pooling | None) -> SpansConfig:
        return SpansConfig()

    def encode(self, rows: Questions, encoding: TextEncoding) -> Examples:
        tokens, types, owners = list[list[Ids]](), list[Ids](), list[int]()
        targets, notes, cut = list[Ids](), list[Window](), 0
        for row, question in enumerate(encoding.encode(rows.questions)):
            head = [*encoding.before, *question[: encoding.room // 3], *encoding.between]
            room = encoding.length - len(head) - len(encoding.after)
            if room < MIN_ROOM:
                raise HeadstartError(
                    "the question is so long that none of the text fits",
                    fix="give a larger --length",
                )
            context = rows.contexts[row]
            words = find_words(context)
            breaks = [0, *(end for _, end in words)]  # a word has the blanks before it
            texts = [context[start:end] for start, end in pairwise(breaks)]
            # A word longer than the room is cut to its beginning.
            encoded = [ids[:room] for ids in encoding.encode_words(texts)]
            sizes = np.array([len(ids) for ids in encoded], dtype=np.int64)
            windows = word_windows(sizes.tolist(), room, encoding, overlap=True)
            cut += windows[-1][1] < len(words)
            for first, stop in windows:
                ends = len(head) + np.cumsum(sizes[first:stop])
                window = Window(
                    context, first, words[first:stop], ends - sizes[first:stop], ends - 1
                )
                whole = np.concatenate([head, *encoded[first:stop], encoding.after])
                tokens.append([whole.astype(np.int64)])
                types.append((np.arange(len(whole)) >= len(head)).astype(np.int64))
                owners.append(row)
                targets.append(_target(window, rows.answers[row]))
                notes.append(window)
        return Examples(
            tokens=tokens,
            owners=np.array(owners),
            targets=list(targets),
            weights=np.ones(len(tokens), dtype=np.float32),
            token_types=types,
            cut=cut,
            notes=list(notes),
        )

    def loss(self, outputs: Tensor, batch: LabelledBatch) -> Tensor:
        scores = outputs.float()  # (B, T, 2); padding is -∞
        starts, ends = (
            F.cross_entropy(scores[..., side], batch.targets[:, side], reduction="none")
            for side in (0, 1)
        )
        return (starts + ends) / 2

    def decode(self, outputs: Sequence[Output], examples: Examples) -> list[SpanScore]:
        """Find the best span of each question's windows; none, where "no answer" scores higher."""
        assert examples.notes is not None
        found = []
        first_windows = np.flatnonzero(np.diff(examples.owners)) + 1
        for numbers in np.split(np.arange(len(outputs)), first_windows):
            windows = [(outputs[one], examples.notes[one]) for one in numbers]
            # The mean cross-entropy of the first and last token of the answer.
            chances = [log_softmax(output.astype(np.float64), axis=0) for output, _ in windows]
            targets = [examples.targets[one] for one in numbers]
            loss = -np.mean([one[at, [0, 1]] for one, at in zip(chances, targets, strict=True)])
            found.append(_best_span(windows, float(loss), NO_ANSWER in self.labels))
        return found

    def predictions(
        self, scores: list[SpanScore], rows: Questions, temperature: float = 1.0
    ) -> list[Prediction]:
        """Predict answers; `answer`, `start` and `end` are `None` where there is none."""
        return [
            {
                "answer": one.text or None,
                "probability": one.probability,
                "start": one.start if one.text else None,
                "end": one.end if one.text else None,
            }
            for one in scores
        ]

    def mean_loss(self, scores: list[SpanScore], rows: Questions, temperature: float) -> float:
        return float(np.mean([one.loss for one in scores]))

    def row_scores(self, scores: list[SpanScore], rows: Questions) -> dict[str, RowScores]:
        exact, overlap = [], []
        for score, answers in zip(scores, rows.answers, strict=True):
            references = [text for _, text in answers]
            exact.append(exact_match(score.text, references))
            overlap.append(span_f1(score.text, references))
        return {"exact_match": mean_scores(exact), "f1": mean_scores(overlap)}

    def trivial(self, train: Questions, rows: Questions) -> tuple[str, list[SpanScore]]:
        """Predict the first sentence, or no answer where that has the higher F1 in training."""
        if NO_ANSWER in self.labels:
            sentence = self.row_scores(_first_sentences(train), train)["f1"].value
            if self.row_scores([NOTHING] * len(train), train)["f1"].value >= sentence:
                return "no answer to any question", [NOTHING] * len(rows)
        return "first sentence of the text", _first_sentences(rows)


def _first_sentences(rows: Questions) -> list[SpanScore]:
    return [SpanScore(text, 0, len(text), 1.0, 0.0) for text in map(first_sentence, rows.contexts)]


def _target(window: Window, answers: list[tuple[int, str]]) -> Ids:
    """Find first and last token of the first answer, where the window holds all of it."""
    if answers and window.characters:
        start, text = answers[0]
        stop = start + len(text)
        places = np.array(window.characters)
        inside = np.flatnonzero((places[:, 0] < stop) & (places[:, 1] > start))
        if places[0, 0] <= start and stop <= places[-1, 1] and len(inside):
            return np.array([window.starts[inside[0]], window.ends[inside[-1]]])
    return np.array([NO_ANSWER_TOKEN, NO_ANSWER_TOKEN])


def _best_span(windows: list[tuple[Output, Window]], loss: float, may_be_none: bool) -> SpanScore:
    """Find the highest start + end within the maximum length, compared with "no answer"."""
    last = windows[-1][1]
    count = last.first + len(last.characters)
    if not count:
        return NOTHING._replace(loss=loss)
    characters = np.zeros((count, 2), dtype=np.int64)
    scores = np.full((count, MAX_ANSWER_WORDS), -np.inf)  # (first word, words after it)
    for output, window in windows:
        rows = slice(window.first, window.first + len(window.characters))
        characters[rows] = window.characters
        # Windows overlap: a span in two of them has the higher of its scores.
        np.maximum(scores[rows], _span_scores(output, window), out=scores[rows])
    start, more = np.unravel_index(int(scores.argmax()), scores.shape)
    best, total = scores[start, more], logsumexp(scores)
    if may_be_none:
        total = np.logaddexp(total, 0.0)  # "no answer" has the score 0
        if best < 0:
            return SpanScore("", 0, 0, float(np.exp(-total)), loss)
    first, end = int(characters[start, 0]), int(characters[start + more, 1])
    return SpanScore(last.context[first:end], first, end, float(np.exp(best - total)), loss)


def _span_scores(output: Output, window: Window) -> NDArray[np.float64]:
    """Compute start + end of every span of words, minus the score of "no answer"."""
    output = output.astype(np.float64)
    starts = output[window.starts, 0]
    ends = np.pad(output[window.ends, 1], (0, MAX_ANSWER_WORDS - 1), constant_values=-np.inf)
    following = np.lib.stride_tricks.sliding_window_view(ends, MAX_ANSWER_WORDS)
    return starts[:, None] + following - output[NO_ANSWER_TOKEN].sum()
