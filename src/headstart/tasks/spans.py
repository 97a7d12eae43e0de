"""Spans: a question about a text, answered by a span of that text, or by nothing.

The network reads `<begin> question <separator> text <end>` and scores every token as the start and
as the end of the answer. "No answer" is the first token, as in BERT. Answers are whole words of the
text, exactly as written. Texts that do not fit are cut, or read in windows that overlap by half;
the best span of all windows is the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.evaluation.metrics import exact_match, span_f1, span_metrics
from headstart.evaluation.row_scores import RowScores, mean_scores
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
from headstart.tasks.task import Output, Prediction, Task, check_pooling
from headstart.text.checking.splits import FileParts
from headstart.text.reading.dataset import Dataset
from headstart.text.reading.rows import PAIR_MARK
from headstart.text.reading.squad import Questions, read_question_file, read_questions
from headstart.text.tokenizers.words import find_words, first_sentence

NO_ANSWER = "no answer"  # a label of the task where some questions have none
MAX_ANSWER_WORDS = 30
NO_ANSWER_TOKEN = 0  # the first


@dataclass(frozen=True)
class Window:
    """A part of a text: the places of its words in the text and among the tokens."""

    context: str
    first: int  # the number of its first word in the text
    characters: list[tuple[int, int]]  # start and end of each word
    tokens: list[tuple[int, int]]  # first and last token of each word


@dataclass(frozen=True)
class SpanScore:
    """The best span of a text, characters `start` up to `end`; empty for "no answer"."""

    text: str
    start: int
    end: int
    probability: float  # among all spans, and "no answer" where the task has it
    read: int  # characters of the text that were read
    loss: float


class Spans(Task[Questions]):
    """A span of the text, or none, for each question."""

    name: ClassVar[str] = "spans"
    input_names: ClassVar[tuple[str, ...]] = ("question", "text")
    texts_per_row: ClassVar[int] = 2
    prediction_fields: ClassVar[tuple[str, ...]] = (
        *("answer", "probability", "start", "end", "unread"),
    )
    file_suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".json")
    row_name: ClassVar[str] = "questions"
    metric = "f1"

    @classmethod
    def read(cls, sources: Sequence[str], **how: Any) -> FileParts[Questions]:
        return read_questions(sources, **how)

    def read_all(self, source: str, **how: Any) -> Questions:
        return read_question_file(source, encoding=how.get("encoding", "utf-8"))

    @classmethod
    def from_rows(cls, train: Questions) -> "Spans":
        return cls(() if all(train.answers) else (NO_ANSWER,))

    def texts(self, rows: Questions) -> Sequence[str]:
        return [*rows.questions, *sorted(set(rows.contexts))]

    def row_texts(self, rows: Questions) -> Sequence[str]:
        pairs = zip(rows.questions, rows.contexts, strict=True)
        return [f"{question}{PAIR_MARK}{context}" for question, context in pairs]

    def inspected(self, rows: Questions) -> Dataset:
        pairs = zip(rows.questions, rows.contexts, strict=True)
        texts = [f"{question} ¦ {context}" for question, context in pairs]
        names = ("answer", *self.labels)
        labels = [0 if one or len(names) == 1 else 1 for one in rows.answers]
        return Dataset(rows.name, texts, labels, names, rows.dropped)

    def unlabelled(self, inputs: Sequence[tuple[str, str]]) -> Questions:
        """Convert (question, text) tuples to rows without answers."""
        questions, contexts = [one for one, _ in inputs], [text for _, text in inputs]
        return Questions("questions", questions, contexts, [[] for _ in inputs])

    def head(self, preset: Preset, pooling: Pooling | None) -> SpansConfig:
        head = SpansConfig()
        check_pooling(head, pooling)
        return head

    def encode(
        self, rows: Questions, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        questions = encode_texts(rows.questions, encoding)
        tokens, types, owners = list[Ids](), list[Ids](), list[int]()
        targets, notes = list[Ids](), list[Window]()
        cut = {"texts": 0, "tokens": 0, "of": 0}
        for row, question in enumerate(questions):
            head = [*encoding.before, *question[: encoding.room // 3], *between_texts(encoding)]
            words = find_words(rows.contexts[row])
            room = encoding.length - len(head) - len(encoding.after)
            # A word longer than the room is cut to its beginning.
            encoded = [ids[:room] for ids in _encode_words(rows.contexts[row], words, encoding)]
            windows = _windows([len(ids) for ids in encoded], room)
            for first, stop in read_windows(windows, encoded, encoding, cut):
                text = np.concatenate(encoded[first:stop]) if stop > first else np.zeros(0)
                ends = len(head) + np.cumsum([len(ids) for ids in encoded[first:stop]])
                starts = [len(head), *ends[:-1]] if len(ends) else []
                places = [(int(a), int(b) - 1) for a, b in zip(starts, ends, strict=True)]
                window = Window(rows.contexts[row], first, words[first:stop], places)
                whole = np.concatenate([head, text, encoding.after]).astype(np.int64)
                token_types = np.ones(len(whole), dtype=np.int64)
                token_types[: len(head)] = 0
                tokens.append(whole)
                types.append(token_types)
                owners.append(row)
                targets.append(_target(window, rows.answers[row]))
                notes.append(window)
            if progress is not None and row % 100 == 0:
                progress(row, len(rows))
        return Examples(
            tokens=tokens,
            owners=np.array(owners),
            targets=list(targets),
            weights=np.ones(len(tokens), dtype=np.float32),
            token_types=types,
            cut=cut if cut["texts"] else {},
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
        windows: dict[int, list[tuple[Output, Window]]] = {}
        losses: dict[int, list[float]] = {}
        for number, output in enumerate(outputs):
            owner, target = int(examples.owners[number]), examples.targets[number]
            chances = log_softmax(output.astype(np.float64), axis=0)
            loss = -(chances[target[0], 0] + chances[target[1], 1]) / 2
            losses.setdefault(owner, []).append(float(loss))
            windows.setdefault(owner, []).append((output, examples.notes[number]))
        return [
            _best_span(windows[owner], float(np.mean(losses[owner])), NO_ANSWER in self.labels)
            for owner in sorted(windows)
        ]

    def predictions(
        self, scores: list[SpanScore], rows: Questions, temperature: float = 1.0
    ) -> list[Prediction]:
        """Predict answers; `answer`, `start` and `end` are `None` where there is none."""
        found = []
        for one, text in zip(scores, rows.contexts, strict=True):
            place = (one.text, one.start, one.end) if one.text else (None, None, None)
            unread = len(text.rstrip()) - one.read
            values = (place[0], one.probability, place[1], place[2], unread)
            found.append(dict(zip(self.prediction_fields, values, strict=True)))
        return found

    def metrics(
        self, scores: list[SpanScore], rows: Questions, *, temperature: float = 1.0
    ) -> dict[str, float]:
        loss = float(np.mean([one.loss for one in scores]))
        return {"loss": loss, **span_metrics([one.text for one in scores], _references(rows))}

    def row_scores(self, scores: list[SpanScore], rows: Questions) -> dict[str, RowScores]:
        pairs = [(one.text, two) for one, two in zip(scores, _references(rows), strict=True)]
        return {
            "exact_match": mean_scores([exact_match(*pair) for pair in pairs]),
            "f1": mean_scores([span_f1(*pair) for pair in pairs]),
        }

    def trivial(self, train: Questions, rows: Questions) -> tuple[str, list[SpanScore]]:
        """Predict the first sentence, or no answer where that has the higher F1 in training."""

        def first(part: Questions) -> list[SpanScore]:
            found = [first_sentence(context) for context in part.contexts]
            return [SpanScore(text, 0, len(text), 1.0, len(text), 0.0) for text in found]

        empty = [SpanScore("", 0, 0, 1.0, 0, 0.0)]
        if NO_ANSWER in self.labels:
            sentence = self.row_scores(first(train), train)["f1"].value
            if self.row_scores(empty * len(train), train)["f1"].value >= sentence:
                return "no answer to any question", empty * len(rows)
        return "first sentence of the text", first(rows)

    def validation_arrays(
        self, scores: list[SpanScore], rows: Questions
    ) -> dict[str, NDArray[Any]]:
        return {"loss": np.array([one.loss for one in scores])}


def _references(rows: Questions) -> list[list[str]]:
    return [[text for _, text in one] for one in rows.answers]


def _encode_words(context: str, words: list[tuple[int, int]], encoding: TextEncoding) -> list[Ids]:
    """Encode each word with the blanks before it."""
    starts = [0, *(end for _, end in words[:-1])]
    texts = [context[start:end] for start, (_, end) in zip(starts, words, strict=False)]
    unknown = np.array([encoding.tokenizer.unknown_id or 0])
    return [
        ids.astype(np.int64) if len(ids) else unknown
        for ids in (encoding.tokenizer.encode_arrays(texts) if texts else [])
    ]


def _windows(lengths: list[int], room: int) -> list[tuple[int, int]]:
    """Split words into windows that overlap by half; no word may be longer than the room."""
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
    """Find first and last token of the first answer, where the window holds all of it."""
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
    return np.array([NO_ANSWER_TOKEN, NO_ANSWER_TOKEN])


def _best_span(windows: list[tuple[Output, Window]], loss: float, may_be_none: bool) -> SpanScore:
    """Find the highest start + end within the maximum length, compared with "no answer"."""
    last = windows[-1][1]
    count = last.first + len(last.tokens)
    context = last.context
    if not count:
        return SpanScore("", 0, 0, 1.0, 0, loss)
    characters = np.zeros((count, 2), dtype=np.int64)
    scores = np.full((count, MAX_ANSWER_WORDS), -np.inf)  # (first word, words after it)
    for output, window in windows:
        rows = slice(window.first, window.first + len(window.tokens))
        characters[rows] = window.characters
        # Windows overlap: a span in two of them has the higher of its scores.
        np.maximum(scores[rows], _span_scores(output, window), out=scores[rows])
    start, more = np.unravel_index(int(scores.argmax()), scores.shape)
    best, total, read = scores[start, more], logsumexp(scores), int(characters[-1, 1])
    if may_be_none:
        total = np.logaddexp(total, 0.0)  # "no answer" has the score 0
        if best < 0:
            return SpanScore("", 0, 0, float(np.exp(-total)), read, loss)
    first, end = int(characters[start, 0]), int(characters[start + more, 1])
    return SpanScore(context[first:end], first, end, float(np.exp(best - total)), read, loss)


def _span_scores(output: Output, window: Window) -> NDArray[np.float64]:
    """Compute start + end of every span of words, minus the score of "no answer"."""
    output = output.astype(np.float64)
    starts = output[[first for first, _ in window.tokens], 0]
    ends = output[[last for _, last in window.tokens], 1]
    ends = np.pad(ends, (0, MAX_ANSWER_WORDS - 1), constant_values=-np.inf)
    following = np.lib.stride_tricks.sliding_window_view(ends, MAX_ANSWER_WORDS)
    return starts[:, None] + following - output[NO_ANSWER_TOKEN].sum()
