"""Labelled rows as the network reads them: token ids, cut or in windows, in padded batches."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.tokenizers import Tokenizer
from headstart.errors import HeadstartError
from headstart.model.heads import ClassificationHead
from headstart.model.model import Model
from headstart.model.pooling import join_windows
from headstart.progress import ProgressCallback

Long = Literal["truncate", "windows"]
Ids = NDArray[np.int64]
Output = NDArray[np.float32]  # of the network for an example
IGNORE_INDEX = -100  # targets that the loss ignores, as in PyTorch
BATCH_TOKENS = 2_048  # padding included; larger batches do not fit into the processor's cache
ENCODED_TEXTS = 2_000  # at once
JOINED_TEXTS = 256  # whose windows are joined at once


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
    def room(self) -> int:
        """How many tokens of a text fit between them."""
        room = self.length - len(self.before) - len(self.after)
        if room < 1:
            raise HeadstartError(
                f"a length of {self.length} leaves no room for text between begin and end",
                fix="give a larger --length",
            )
        return room

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

    Parameters
    ----------
    share : float
        The share of a row's tokens that is dropped, rounded to a whole number of tokens.
    long_share : float
        The same for a text that is longer than one window.
    special : collection of int
        Ids that are never dropped: begin, end, separators.

    Example
    -------
    >>> dropout = TokenDropout(0.5, 0.5, {0, 1})
    >>> ids = np.array([0, 7, 8, 9, 10, 11, 12, 1])
    >>> ids[dropout.keep(ids, np.random.default_rng(0))].tolist()
    [0, 9, 10, 12, 1]
    """

    share: float
    long_share: float
    special: Collection[int]

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

        Parameters
        ----------
        rows : sequence of int
            The numbers of the examples.
        most : int, optional
            Of an example with more windows, this many are taken, evenly spread.
        dropout : TokenDropout, optional
            Drops tokens, drawn by `random`; for targets that belong to whole texts.
        multiple : int
            Where a target is one number, rows are padded to this multiple (see `padded_length`).
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


@torch.no_grad()
def run_network(
    model: Model,
    examples: Examples,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: ProgressCallback | None = None,
) -> list[Output]:
    """Compute the head's outputs of each example, in order; batches hold similar lengths.

    A head that scores tokens has one row per token. The windows of a text are read in any batch;
    only their pooled vectors are joined.
    """
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


def between_texts(encoding: TextEncoding) -> list[int]:
    """List the ids between two texts: the tokenizer's separators, or an end token."""
    separator = encoding.tokenizer.separator_id
    return encoding.after if separator is None else [separator] * encoding.tokenizer.separators


def encode_texts(texts: Sequence[str], encoding: TextEncoding) -> list[Ids]:
    """Encode each text, without begin and end tokens; a part at a time, to save memory."""
    ids: list[Ids] = []
    for start in range(0, len(texts), ENCODED_TEXTS):
        arrays = encoding.tokenizer.encode_arrays(texts[start : start + ENCODED_TEXTS])
        ids += [array.astype(np.int64) for array in arrays]
    return ids


def encode_words(words: Sequence[str], encoding: TextEncoding) -> list[Ids]:
    """Encode each word, with the blanks before it, as at least one id."""
    unknown = np.array([encoding.tokenizer.unknown_id or 0])
    found = encoding.tokenizer.encode_arrays(words) if words else []
    return [ids.astype(np.int64) if len(ids) else unknown for ids in found]


def word_windows(
    lengths: Sequence[int], room: int, encoding: TextEncoding, *, overlap: bool = False
) -> list[tuple[int, int]]:
    """Split the words of a text into windows that are read.

    Parameters
    ----------
    lengths : the numbers of tokens of the words.
    room : tokens of a window; a longer word has its own.
    encoding : with `long="truncate"` only the first window is read.
    overlap : whether windows overlap by about half.

    Returns
    -------
    list of tuple
        The number of each window's first word, and of the one after its last.
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
