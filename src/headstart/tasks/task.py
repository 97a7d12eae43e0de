"""The base class of tasks, and labelled rows as the network reads them.

A task is five methods (`encode`, `head`, `loss`, `decode`, `row_scores`) and small methods about
its rows, most of which have a default. Every network is called as
`model(tokens, segments, token_types)`, with token ids, cut or in windows, in padded batches.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.config import Pooling
from headstart.data.dataset import Part, Splits, short_label
from headstart.data.splits import read_dataset
from headstart.data.tokenizers import Tokenizer
from headstart.errors import HeadstartError
from headstart.evaluation.metrics import RowScores
from headstart.model.config import HeadConfig
from headstart.model.heads import ClassificationHead
from headstart.model.model import Model
from headstart.model.pooling import join_windows
from headstart.model.presets import Preset
from headstart.progress import ProgressCallback

Long = Literal["truncate", "windows"]
Ids = NDArray[np.int64]
Output = NDArray[np.float32]  # of the network for an example
IGNORE_INDEX = -100  # targets that the loss ignores, as in PyTorch
BATCH_TOKENS = 2_048  # padding included; larger batches do not fit into the processor's cache
ENCODED_TEXTS = 2_000  # at once
JOINED_TEXTS = 256  # whose windows are joined at once
MAX_CELLS = 20_000_000  # rows × classes for which a macro average has an interval
Rows = TypeVar("Rows", bound=Part)  # labelled rows: training, validation or test
Prediction = dict[str, Any]  # plain values: JSON, CSV, HTTP and the page use them


@dataclass(frozen=True)
class TextEncoding:
    """How texts become ids: the tokenizer, the maximum length, and how longer texts are read."""

    tokenizer: Tokenizer
    length: int
    long: Long = "truncate"

    @property
    def before(self) -> list[int]:
        """The ids before a text: the begin token, where the tokenizer has one."""
        return [] if self.tokenizer.begin_id is None else [self.tokenizer.begin_id]

    @property
    def after(self) -> list[int]:
        """The ids after a text: the end token, where the tokenizer has one."""
        return [] if self.tokenizer.end_id is None else [self.tokenizer.end_id]

    @property
    def between(self) -> list[int]:
        """The ids between two texts: the tokenizer's separators, or an end token."""
        separator = self.tokenizer.separator_id
        return self.after if separator is None else [separator] * self.tokenizer.separators

    @property
    def room(self) -> int:
        """How many tokens of a text fit between them."""
        room = self.length - len(self.before) - len(self.after)
        if room < 1:
            raise HeadstartError(
                f"a length of {self.length} leaves no room for text between begin and end",
                fix="give a larger --length",
            )
        return room

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """Encode each text, without begin and end tokens; a part at a time, to save memory."""
        ids: list[Ids] = []
        for start in range(0, len(texts), ENCODED_TEXTS):
            arrays = self.tokenizer.encode_arrays(texts[start : start + ENCODED_TEXTS])
            ids += [array.astype(np.int64) for array in arrays]
        return ids

    def encode_words(self, words: Sequence[str]) -> list[Ids]:
        """Encode each word, with the blanks before it, as at least one id."""
        unknown = np.array([self.tokenizer.unknown_id or 0])
        return [ids if len(ids) else unknown for ids in self.encode(words)]

    def windows(self, ids: Ids) -> list[Ids]:
        """Truncate ids to the first `room`, or split all into windows of equal size; framed."""
        parts = [ids[: self.room]]
        if self.long == "windows" and len(ids) > self.room:
            parts = np.array_split(ids, -(-len(ids) // self.room))
        return [self.framed(part) for part in parts]

    def framed(self, ids: Ids) -> Ids:
        """Add the begin and end tokens."""
        return np.concatenate([self.before, ids, self.after]).astype(np.int64)


@dataclass(frozen=True)
class TokenDropout:
    """Drop tokens of each text at random, others in every epoch of fine-tuning.

    Known as word dropout (Iyyer et al. 2015) and random deletion (Wei and Zou 2019). Unlike there,
    the number of tokens that a row loses is fixed and only the choice is random, so that lengths
    are known beforehand and batches of equally long rows can be made.

    Example
    -------
    >>> dropout = TokenDropout(0.5, 0.5, {0, 1})
    >>> ids = np.array([0, 7, 8, 9, 10, 11, 12, 1])
    >>> ids[dropout.keep(ids, np.random.default_rng(0))].tolist()
    [0, 9, 10, 12, 1]
    """

    share: float  # of a row's tokens, rounded to a whole number of them
    long_share: float  # the same for a text that is longer than one window
    special: Collection[int]  # ids that are never dropped: begin, end, separators

    def keep(
        self, ids: NDArray[np.int64], random: np.random.Generator, *, long: bool = False
    ) -> NDArray[np.bool_]:
        """Draw which of a row's ids stay (T,); their number, at least one, is not random."""
        share = self.long_share if long else self.share
        stays = np.isin(ids, list(self.special)) if share else np.ones(len(ids), dtype=bool)
        others = np.flatnonzero(~stays)
        dropped = min(int(share * len(others) + 0.5), len(others) - 1)
        stays[random.permutation(others)[: len(others) - dropped]] = True
        return stays


@dataclass(frozen=True)
class Examples:
    """Encoded rows: one example per row of the dataset, or per window of it.

    A classifier reads a long text in windows and pools over them: such an example has several rows
    of tokens. A tagger's windows are separate examples with the same owner.
    """

    tokens: list[list[Ids]]  # the rows of each example
    owners: Ids  # the row of the dataset of each example
    targets: list[Any]  # a number, or an array
    weights: NDArray[np.float32]
    token_types: list[Ids] | None = None
    cut: int = 0  # how many rows of the dataset were not read to their end
    notes: list[Any] | None = None  # what the task needs of each in `decode`

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def lengths(self) -> Ids:
        """The longest row of each example."""
        return np.array([max(map(len, parts)) for parts in self.tokens], dtype=np.int64)

    @cached_property
    def rows(self) -> Ids:
        """How many rows of a batch each example takes."""
        return np.array(list(map(len, self.tokens)), dtype=np.int64)

    @cached_property
    def is_pooled(self) -> bool:
        """Whether an example has several rows."""
        return bool((self.rows > 1).any())

    def kept_after(self, dropout: TokenDropout) -> list[Ids]:
        """Count the tokens that stay in each example's rows; it does not depend on the draw."""
        random = np.random.default_rng(0)
        return [
            np.array([dropout.keep(ids, random, long=len(parts) > 1).sum() for ids in parts])
            for parts in self.tokens
        ]

    def by_window(self) -> "Examples":
        """Make each window an example, owned by the example that it is a part of."""
        if not self.is_pooled:
            return self
        owners = np.repeat(np.arange(len(self)), self.rows)
        parts = [[part] for parts in self.tokens for part in parts]
        return replace(self.picked(owners), tokens=parts, owners=owners)

    def picked(self, rows: Ids) -> "Examples":
        """Select examples; owners stay the rows of the dataset."""

        def pick(values: list[Any] | None) -> Any:
            return None if values is None else [values[row] for row in rows]

        return replace(
            self,
            tokens=pick(self.tokens),
            owners=self.owners[rows],
            targets=pick(self.targets),
            weights=self.weights[rows],
            token_types=pick(self.token_types),
            notes=pick(self.notes),
        )

    def batch(
        self,
        rows: Sequence[int] | Ids,
        *,
        most: int | None = None,
        dropout: TokenDropout | None = None,
        random: np.random.Generator | None = None,
        multiple: int = 1,
    ) -> "LabelledBatch":
        """Make a batch of these examples, padded to the longest of their rows.

        Of an example with more than `most` windows, `most` evenly spaced ones are used. `dropout`,
        drawn by `random`, is for targets that belong to whole texts. If a target is one number,
        rows are padded to a `multiple` (see `padded_length`).
        """
        tokens: list[Ids] = []
        types: list[Ids] = []
        owners: list[int] = []
        for place, row in enumerate(rows):
            parts = self.tokens[row]
            if most is not None and len(parts) > most:
                places = np.linspace(0, len(parts) - 1, most).round().astype(int)
                parts = [parts[one] for one in places]
            for ids in parts:
                stays = np.ones(len(ids), dtype=bool)
                if dropout is not None:
                    assert random is not None
                    stays = dropout.keep(ids, random, long=bool(self.rows[row] > 1))
                tokens.append(ids[stays])
                owners.append(place)
                if self.token_types is not None:
                    types.append(self.token_types[row][stays])
        targets = [np.asarray(self.targets[row]) for row in rows]
        longest = max(map(len, tokens))
        if targets[0].ndim == 0:  # else a target may have a value for each token of its row
            longest = self.padded_length(longest, multiple)
        same_shape = len({target.shape for target in targets}) == 1
        # The id of padding does not matter: attention ignores segment 0.
        return LabelledBatch(
            tokens=_padded(tokens, longest),
            segments=_padded([np.ones_like(ids) for ids in tokens], longest),
            targets=torch.from_numpy(np.stack(targets))
            if same_shape
            else _padded(targets, longest, IGNORE_INDEX),
            token_types=_padded(types, longest) if types else None,
            owners=torch.tensor(owners) if self.is_pooled else None,
        )

    def padded_length(self, length: int, multiple: int) -> int:
        """Round a length up to a multiple, but not beyond the longest row of all examples."""
        return max(length, min(-(-length // multiple) * multiple, int(self.lengths.max())))


@dataclass(frozen=True)
class LabelledBatch:
    """A padded batch of examples."""

    tokens: Tensor  # (B, T)
    segments: Tensor  # (B, T): 1 is text, 0 padding
    targets: Tensor  # (B …): as the task has them
    token_types: Tensor | None = None  # (B, T)
    owners: Tensor | None = None  # (B): the example of each row, where it has several

    def to(self, device: torch.device) -> "LabelledBatch":
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **{name: value.to(device) for name, value in tensors.items()})


class Task(ABC, Generic[Rows]):
    """One kind of prediction; an instance has one set of labels."""

    name: ClassVar[str]  # the value of `--task`
    input_names: ClassVar[tuple[str, ...]] = ("text",)  # what one prediction needs: one or two
    prediction_fields: ClassVar[tuple[str, ...]]  # the keys of a prediction
    file_suffixes: ClassVar[tuple[str, ...]]  # the formats in which predictions are written
    row_name: ClassVar[str] = "rows"  # the unit of the rows, in messages
    supports_windows: ClassVar[bool] = True  # whether long texts can be read in windows
    whole_texts: ClassVar[bool] = False  # whether a target belongs to a text, not to its tokens
    metric_names: ClassVar[tuple[str, ...]]  # those of `metrics` that curves show, without "loss"

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self.metric = self.metric_names[0]  # the main one; higher is better
        self._numbers = {label: number for number, label in enumerate(labels)}

    @abstractmethod
    def encode(self, rows: Rows, encoding: TextEncoding) -> Examples:
        """Encode rows as the network reads them."""

    @abstractmethod
    def head(self, preset: Preset, pooling: Pooling | None) -> HeadConfig:
        """Describe the head for a base of this preset; `pooling` is for heads that pool."""

    @abstractmethod
    def loss(self, outputs: Tensor, batch: LabelledBatch) -> Tensor:
        """Compute the loss of each example (B,), not weighted."""

    @abstractmethod
    def decode(self, outputs: Sequence[Output], examples: Examples) -> Any:
        """Turn the network's outputs into scores: one per row, of any number of windows."""

    @abstractmethod
    def mean_loss(self, scores: Any, rows: Rows, temperature: float) -> float:
        """Compute the mean loss at a temperature, without words that were not read."""

    @abstractmethod
    def row_scores(self, scores: Any, rows: Rows) -> dict[str, RowScores]:
        """Compute each row's contribution to each metric that is a ratio of sums over rows."""

    def metrics(self, scores: Any, rows: Rows, *, temperature: float = 1.0) -> dict[str, float]:
        """Compute named numbers; "loss" (lower is better) and `metric` are among them."""
        values = {name: one.value for name, one in self.row_scores(scores, rows).items()}
        return {"loss": self.mean_loss(scores, rows, temperature), **values}

    @classmethod
    def read(cls, sources: Sequence[str], **how: Any) -> "Splits[Rows]":
        """Read labelled files; `how` are arguments of `data.splits.read_dataset`."""
        return read_dataset(sources, task=cls.name, **how)

    @classmethod
    def from_rows(cls, train: Rows) -> "Task[Rows]":
        """Make the task with the labels of these training rows."""
        return cls(train.label_names)  # type: ignore[attr-defined]

    def label_numbers(self, names: Sequence[str], where: str) -> list[int]:
        """Find the numbers of labels by name; an unknown label is an error."""
        unknown = [name for name in names if name not in self._numbers]
        if unknown:
            others = ", ".join(map(short_label, unknown[:10]))
            known = ", ".join(map(short_label, self.labels[:10]))
            raise HeadstartError(
                f"the dataset has labels that the run does not know: {others}; it knows {known}",
                where=where,
                fix="name the right column with --label-column, or a run trained with these labels",
                code="label-column",
            )
        return [self._numbers[name] for name in names]

    def match_labels(self, rows: Rows, where: str) -> Rows:
        """Number the labels of the rows as in this task; other labels are an error."""
        return rows  # those of spans have none

    def texts(self, rows: Rows) -> Sequence[str]:
        """List all text of the rows, to train a tokenizer on; two texts of a row are separate."""
        rows_of_texts = ([one] if isinstance(one, str) else one for one in rows.keys)
        return [text for texts in rows_of_texts for text in texts]

    @abstractmethod
    def unlabelled(self, inputs: Sequence[Any]) -> Rows:
        """Convert texts, or tuples of two texts, to rows without labels."""

    @abstractmethod
    def predictions(self, scores: Any, rows: Rows, temperature: float = 1.0) -> list[Prediction]:
        """Convert scores to predictions with the keys of `prediction_fields`, one per row."""

    def intervals(self, scores: Any, rows: Rows) -> dict[str, dict[str, Any]]:
        """Compute `value`, `low`, `high` and `method` of each metric, over rows."""
        return {
            name: asdict(one.interval())
            for name, one in self.row_scores(scores, rows).items()
            if one.total.shape[1] == 1 or one.total.size <= MAX_CELLS
        }

    def report(self, scores: Any, rows: Rows, temperature: float = 1.0) -> dict[str, Any]:
        """Evaluate in full: the metrics, their "intervals", "labels", "classes", "notes" …"""
        return {
            **self.metrics(scores, rows, temperature=temperature),
            "intervals": self.intervals(scores, rows),
            "labels": list(self.labels),
            "notes": self.notes(scores, rows, temperature),
        }

    def notes(self, scores: Any, rows: Rows, temperature: float = 1.0) -> list[str]:
        """Say what is suspicious about the predictions for these rows."""
        return []

    def fit_temperature(self, scores: Any, rows: Rows) -> float:
        """Fit the temperature of the probabilities to validation rows; 1 where there is none."""
        return 1.0

    @abstractmethod
    def trivial(self, train: Rows, rows: Rows) -> tuple[str, Any]:
        """Predict without reading the texts: a description, and scores for `rows`."""


@torch.no_grad()
def run_network(
    model: Model,
    examples: Examples,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: ProgressCallback | None = None,
) -> list[Output]:
    """Compute the head's outputs of each example; windows of a text are joined at the end."""
    device = next(model.parameters()).device
    windows = examples.by_window()
    call = model.vectors if examples.is_pooled else model
    lengths = windows.lengths
    order = np.argsort(lengths, kind="stable")
    found: dict[int, Output] = {}
    while len(found) < len(order):
        start = len(found)
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * lengths[order[stop]] <= batch_tokens:
            stop += 1
        rows = order[start:stop]
        batch = windows.batch(rows).to(device)
        outputs = call(batch.tokens, batch.segments, batch.token_types).float().cpu().numpy()
        for one, row in zip(outputs, rows, strict=True):
            found[int(row)] = one if one.ndim == 1 else one[: lengths[row]]
        if progress is not None:
            progress(stop, len(order))
    in_order = [found[row] for row in range(len(windows))]
    return _join(model, windows, in_order) if examples.is_pooled else in_order


def _join(model: Model, windows: Examples, vectors: list[Output]) -> list[Output]:
    """Compute the outputs of whole texts from the pooled vectors of their windows."""
    assert isinstance(model.head, ClassificationHead)
    device = next(model.parameters()).device
    outputs: list[Output] = []
    for first in range(0, int(windows.owners[-1]) + 1, JOINED_TEXTS):
        rows = slice(*np.searchsorted(windows.owners, [first, first + JOINED_TEXTS]))
        joined = join_windows(
            torch.from_numpy(np.stack(vectors[rows])).to(device),
            torch.from_numpy(windows.lengths[rows]).to(device),
            torch.from_numpy(windows.owners[rows] - first).to(device),
            model.head.config.pooling,
        )
        outputs += list(model.head.classify(joined).float().cpu().numpy())
    return outputs


def word_windows(
    lengths: Sequence[int], room: int, encoding: TextEncoding, *, overlap: bool = False
) -> list[tuple[int, int]]:
    """Split words of these numbers of tokens into windows of `room` tokens; a longer word has one.

    With `long="truncate"` only the first window is read; with `overlap` they overlap by about half.
    The result is the number of each window's first word, and of the one after its last.
    """
    if not lengths:
        return [(0, 0)]
    ends = np.cumsum(lengths)
    windows: list[tuple[int, int]] = []
    first = 0
    while first < len(lengths):
        start = ends[first] - lengths[first]
        stop = max(first + 1, int(np.searchsorted(ends, start + room, side="right")))
        windows.append((first, stop))
        if encoding.long != "windows":
            break
        if overlap and stop < len(lengths):
            half = int(np.searchsorted(ends, start + room // 2)) + 1
            first = max(first + 1, min(half, stop - 1))
        else:
            first = stop
    return windows


def _padded(rows: Sequence[Any], length: int, value: int = 0) -> Tensor:
    """Stack rows of different lengths, with a value after their ends."""
    padded = np.full((len(rows), length), value, dtype=np.int64)
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return torch.from_numpy(padded)
