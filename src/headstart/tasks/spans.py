"""Span answers: a question about a text, answered by a stretch of that text, or by nothing.

The network reads `<begin> question <separator> text <end>` and scores every token as the start and
as the end of the answer. "No answer here" is the first token, as in BERT. The words of the text are
known by their places, so that the answer comes back as it is written. Texts that do not fit are
cut, or read in windows that overlap by half; the best stretch of all windows is the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.evaluation.row_scores import RowScores, mean_scores
from headstart.evaluation.spans import exact_match, f1, span_metrics
from headstart.model.config import Pooling, SpansConfig
from headstart.model.presets import Preset
from headstart.progress import ProgressCallback
from headstart.tasks.examples import (
    Examples,
    Ids,
    LabelledBatch,
    TextEncoding,
    encode_texts,
    read_windows,
)
from headstart.tasks.pairs import between_texts
from headstart.tasks.task import Output, Task
from headstart.text.checking.splits import FileParts
from headstart.text.reading.dataset import Dataset
from headstart.text.reading.squad import Questions, read_question_file, read_questions
from headstart.text.tokenizers.words import find_words, first_sentence

NO_ANSWER = "no answer"  # a label of the task where some questions have none
LONGEST_ANSWER = 30  # words
NOWHERE = 0  # the first token


@dataclass(frozen=True)
class Window:
    """A part of a text as tokens: where each of its words starts and ends, in both."""

    context: str
    first: int  # which word of the text its first is
    characters: list[tuple[int, int]]  # of each word
    tokens: list[tuple[int, int]]  # its first and its last


@dataclass(frozen=True)
class Answer:
    """Characters `start` up to `end` of the text, or nothing at all."""

    text: str
    start: int
    end: int
    probability: float  # among all stretches, and "no answer" where there may be none
    read: int  # how many characters of the text were read
    loss: float


class Spans(Task[Questions]):
    """A stretch of the text, or none, for each question."""

    name: ClassVar[str] = "spans"
    predictor = "headstart.inference.predict.spans:SpanPredictor"
    texts_per_row = 2
    row_name = "questions"
    metric = "f1"

    @classmethod
    def read(cls, sources: Sequence[str], **how: Any) -> FileParts[Questions]:
        return read_questions(sources, **how)

    def read_all(self, source: str, **how: Any) -> Questions:
        return read_question_file(source, encoding=how.get("encoding", "utf-8"))

    @classmethod
    def of(cls, train: Questions) -> "Spans":
        return cls(() if all(train.answers) else (NO_ANSWER,))

    def texts(self, part: Questions) -> Sequence[str]:
        return [*part.questions, *sorted(set(part.contexts))]

    def row_texts(self, part: Questions) -> Sequence[str]:
        rows = zip(part.questions, part.contexts, strict=True)
        return [f"{question}\x1e{context}" for question, context in rows]

    def inspected(self, part: Questions) -> Dataset:
        rows = zip(part.questions, part.contexts, strict=True)
        texts = [f"{question} ¦ {context}" for question, context in rows]
        names = ("answer", *self.labels)
        labels = [0 if one or len(names) == 1 else 1 for one in part.answers]
        return Dataset(part.name, texts, labels, names, part.dropped)

    def unlabelled(self, questions: Sequence[str], contexts: Sequence[str]) -> Questions:
        """Questions to be answered, in the form of questions with their answers."""
        return Questions("questions", list(questions), list(contexts), [[] for _ in questions])

    def head(self, preset: Preset, pooling: Pooling | None) -> SpansConfig:
        return SpansConfig()

    def encode(
        self, part: Questions, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        questions = encode_texts(part.questions, encoding)
        tokens, kinds, owners = list[Ids](), list[Ids](), list[int]()
        targets, notes = list[Ids](), list[Window]()
        cut = {"texts": 0, "tokens": 0, "of": 0}
        for row, question in enumerate(questions):
            head = [*encoding.before, *question[: encoding.room // 3], *between_texts(encoding)]
            words = find_words(part.contexts[row])
            room = encoding.length - len(head) - len(encoding.after)
            # What is longer than the room is hardly a word: its beginning must do.
            pieces = [piece[:room] for piece in _pieces(part.contexts[row], words, encoding)]
            windows = _windows([len(piece) for piece in pieces], room)
            for first, stop in read_windows(windows, pieces, encoding, cut):
                text = np.concatenate(pieces[first:stop]) if stop > first else np.zeros(0)
                ends = len(head) + np.cumsum([len(piece) for piece in pieces[first:stop]])
                starts = [len(head), *ends[:-1]] if len(ends) else []
                places = [(int(a), int(b) - 1) for a, b in zip(starts, ends, strict=True)]
                window = Window(part.contexts[row], first, words[first:stop], places)
                whole = np.concatenate([head, text, encoding.after]).astype(np.int64)
                kind = np.ones(len(whole), dtype=np.int64)
                kind[: len(head)] = 0
                tokens.append(whole)
                kinds.append(kind)
                owners.append(row)
                targets.append(_target(window, part.answers[row]))
                notes.append(window)
            if progress is not None and row % 100 == 0:
                progress(row, len(part))
        return Examples(
            tokens=tokens,
            owners=np.array(owners),
            targets=list(targets),
            weights=np.ones(len(tokens), dtype=np.float32),
            token_types=kinds,
            cut=cut if cut["texts"] else {},
            notes=list(notes),
        )

    def losses(self, outputs: Tensor, batch: LabelledBatch, *, smoothing: float = 0.0) -> Tensor:
        scores = outputs.float()  # (B, T, 2); padding is at -∞, which smoothing must not touch
        starts, ends = (
            F.cross_entropy(scores[..., side], batch.targets[:, side], reduction="none")
            for side in (0, 1)
        )
        if not smoothing:
            return (starts + ends) / 2
        real = batch.segments > 0
        even = [
            -torch.where(real, scores[..., side].log_softmax(-1), 0.0).sum(-1) / real.sum(-1)
            for side in (0, 1)
        ]
        return ((1 - smoothing) * (starts + ends) + smoothing * (even[0] + even[1])) / 2

    def join(self, outputs: Sequence[Output], examples: Examples) -> list[Answer]:
        """The best stretch of each question's windows; nothing, where nothing scores higher."""
        assert examples.notes is not None
        windows: dict[int, list[tuple[Output, Window]]] = {}
        losses: dict[int, list[float]] = {}
        for number, output in enumerate(outputs):
            owner, target = int(examples.owners[number]), examples.targets[number]
            chances = log_softmax(output.astype(np.float64), axis=0)
            loss = -(chances[target[0], 0] + chances[target[1], 1]) / 2
            losses.setdefault(owner, []).append(float(loss))
            windows.setdefault(owner, []).append((output, examples.notes[number]))
        return [
            _best_stretch(windows[owner], float(np.mean(losses[owner])), NO_ANSWER in self.labels)
            for owner in sorted(windows)
        ]

    def metrics(self, answers: list[Answer], part: Questions) -> dict[str, float]:
        right = [[text for _, text in one] for one in part.answers]
        found = span_metrics([answer.text for answer in answers], right)
        loss = float(np.mean([answer.loss for answer in answers]))
        return {"loss": loss, "exact_match": found.exact_match, "f1": found.f1}

    def row_scores(self, answers: list[Answer], part: Questions) -> dict[str, RowScores]:
        right = [[text for _, text in one] for one in part.answers]
        pairs = [(answer.text, one) for answer, one in zip(answers, right, strict=True)]
        return {
            "exact_match": mean_scores([exact_match(*pair) for pair in pairs]),
            "f1": mean_scores([f1(*pair) for pair in pairs]),
        }

    def trivial(self, train: Questions, part: Questions) -> tuple[str, list[Answer]]:
        """The first sentence of the text, or no answer where that is right more often."""

        def first(rows: Questions) -> list[Answer]:
            found = [first_sentence(context) for context in rows.contexts]
            return [Answer(text, 0, len(text), 1.0, len(text), 0.0) for text in found]

        empty = [Answer("", 0, 0, 1.0, 0, 0.0)]
        if NO_ANSWER in self.labels:
            said = self.row_scores(first(train), train)["f1"].value
            if self.row_scores(empty * len(train), train)["f1"].value >= said:
                return "no answer to any question", empty * len(part)
        return "first sentence of the text", first(part)

    def kept(self, answers: list[Answer], part: Questions) -> dict[str, NDArray[Any]]:
        return {"loss": np.array([answer.loss for answer in answers])}

    def balanced(self, part: Questions, examples: Examples) -> NDArray[np.float32]:
        raise HeadstartError("--balance is for classes of whole texts, not for answers in them")


def _pieces(context: str, words: list[tuple[int, int]], encoding: TextEncoding) -> list[Ids]:
    """The ids of each word with the blanks before it."""
    starts = [0, *(end for _, end in words[:-1])]
    texts = [context[start:end] for start, (_, end) in zip(starts, words, strict=False)]
    unknown = np.array([encoding.tokenizer.unknown_id or 0])
    return [
        ids.astype(np.int64) if len(ids) else unknown
        for ids in (encoding.tokenizer.encode_arrays(texts) if texts else [])
    ]


def _windows(lengths: list[int], room: int) -> list[tuple[int, int]]:
    """Windows of whole words that overlap by half; no word may be longer than the room."""
    if room < 8:
        raise HeadstartError(
            "the question leaves no room for the text", fix="give a larger --length"
        )
    windows, first = [], 0
    while True:
        stop, used = first, 0
        while stop < len(lengths) and used + lengths[stop] <= room:
            used += lengths[stop]
            stop += 1
        windows.append((first, stop))
        if stop >= len(lengths):
            return windows
        half, skipped = first, 0
        while half < stop - 1 and skipped < room // 2:
            skipped += lengths[half]
            half += 1
        first = max(first + 1, half)


def _target(window: Window, answers: list[tuple[int, str]]) -> Ids:
    """First and last token of the first answer, where the window holds all of it."""
    if answers and window.characters:
        start, stop = answers[0][0], answers[0][0] + len(answers[0][1])
        if window.characters[0][0] <= start and stop <= window.characters[-1][1]:
            inside = [
                place
                for place, (first, end) in enumerate(window.characters)
                if first < stop and end > start
            ]
            if inside:
                return np.array([window.tokens[inside[0]][0], window.tokens[inside[-1]][1]])
    return np.array([NOWHERE, NOWHERE])


def _best_stretch(windows: list[tuple[Output, Window]], loss: float, may_be_none: bool) -> Answer:
    """The highest start + end within the longest answer, compared with "no answer here"."""
    last = windows[-1][1]
    count = last.first + len(last.tokens)
    context = last.context
    if not count:
        return Answer("", 0, 0, 1.0, 0, loss)
    characters = np.zeros((count, 2), dtype=np.int64)
    scores = np.full((count, LONGEST_ANSWER), -np.inf)  # (first word, words behind it)
    for output, window in windows:
        rows = slice(window.first, window.first + len(window.tokens))
        characters[rows] = window.characters
        # Windows overlap: a stretch in two of them has the better of its scores.
        np.maximum(scores[rows], _stretches(output, window), out=scores[rows])
    start, more = np.unravel_index(int(scores.argmax()), scores.shape)
    best, total, read = scores[start, more], logsumexp(scores), int(characters[-1, 1])
    if may_be_none:
        total = np.logaddexp(total, 0.0)  # "no answer" is the 0 that all are compared with
        if best < 0:
            return Answer("", 0, 0, float(np.exp(-total)), read, loss)
    first, end = int(characters[start, 0]), int(characters[start + more, 1])
    return Answer(context[first:end], first, end, float(np.exp(best - total)), read, loss)


def _stretches(output: Output, window: Window) -> NDArray[np.float64]:
    """Start + end of every stretch of words, less what "no answer here" scores."""
    output = output.astype(np.float64)
    starts = output[[first for first, _ in window.tokens], 0]
    ends = output[[last for _, last in window.tokens], 1]
    ends = np.pad(ends, (0, LONGEST_ANSWER - 1), constant_values=-np.inf)
    following = np.lib.stride_tricks.sliding_window_view(ends, LONGEST_ANSWER)
    return starts[:, None] + following - output[NOWHERE].sum()
