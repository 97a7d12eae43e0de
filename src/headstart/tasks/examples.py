"""Labelled rows as the network reads them: framed ids, cut or in windows, and padded batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.tasks.token_dropout import TokenDropout
from headstart.text.tokenizers.tokenizer import Tokenizer

Long = Literal["truncate", "windows"]
Ids = NDArray[np.int64]
IGNORE_INDEX = -100  # targets that the loss ignores, as in PyTorch


@dataclass(frozen=True)
class TextEncoding:
    """How texts become ids: the tokenizer, the longest input, and what happens to longer texts."""

    tokenizer: Tokenizer
    length: int
    long: Long = "truncate"

    @property
    def before(self) -> list[int]:
        """A text stands between begin and end, as in pretraining, where the tokenizer has them."""
        return [] if self.tokenizer.begin_id is None else [self.tokenizer.begin_id]

    @property
    def after(self) -> list[int]:
        return [] if self.tokenizer.end_id is None else [self.tokenizer.end_id]

    @property
    def room(self) -> int:
        """How many tokens of a text fit in between."""
        room = self.length - len(self.before) - len(self.after)
        if room < 1:
            raise HeadstartError(
                f"a length of {self.length} leaves no room for text beside begin and end",
                fix="give a larger --length",
            )
        return room

    def parts(self, ids: Ids) -> list[Ids]:
        """The ids that fit: the first `room` of them, or all in windows of equal size."""
        if len(ids) <= self.room or self.long == "truncate":
            return [ids[: self.room]]
        return np.array_split(ids, -(-len(ids) // self.room))

    def framed(self, ids: Ids) -> Ids:
        return np.concatenate([self.before, ids, self.after]).astype(np.int64)


@dataclass(frozen=True)
class Examples:
    """What the network is shown, one example per row of the dataset or per window of it.

    A classifier reads a long text whole, in windows: then `tokens` of an example holds its
    windows one behind the other, and `windows` their lengths. A tagger's windows are examples
    of their own, with the same owner.
    """

    tokens: list[Ids]
    owners: Ids  # the row of the dataset that each belongs to
    targets: list[Any]  # a number, or an array
    weights: NDArray[np.float32]
    token_types: list[Ids] | None = None
    cut: dict[str, int] = field(default_factory=dict)  # texts, tokens: what was left out
    notes: list[Any] | None = None  # what the task keeps of each for `join`
    windows: list[Ids] | None = None  # the lengths of each example's windows

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def lengths(self) -> Ids:
        """The longest row that each example needs."""
        if self.windows is not None:
            return np.array([int(one.max()) for one in self.windows], dtype=np.int64)
        return np.array([len(ids) for ids in self.tokens], dtype=np.int64)

    def kept_after(self, dropout: TokenDropout) -> list[Ids]:
        """How many tokens of each example's rows are left, which does not depend on the draw."""
        always = list(dropout.special)
        kept = []
        for example, count in enumerate(self.rows):
            parts = self._rows_of(example, None)
            special = np.array([np.isin(ids, always).sum() for ids in parts], dtype=np.int64)
            others = np.array([len(ids) for ids in parts], dtype=np.int64) - special
            kept.append(special + dropout.count_kept(others, np.full(len(parts), count > 1)))
        return kept

    @cached_property
    def rows(self) -> Ids:
        """How many rows of a batch each example takes."""
        counts = [1] * len(self) if self.windows is None else [len(one) for one in self.windows]
        return np.array(counts, dtype=np.int64)

    def by_window(self) -> "Examples":
        """The same with every window as an example of its own, owned by the example it is of."""
        if self.windows is None:
            return self
        owners = np.repeat(np.arange(len(self)), self.rows)
        return replace(
            self,
            tokens=[part for row in range(len(self)) for part in self._rows_of(row, None)],
            owners=owners,
            targets=[self.targets[row] for row in owners],
            weights=self.weights[owners],
            windows=None,
        )

    def picked(self, rows: Ids) -> "Examples":
        """Some of them, each still the row of the dataset that it was."""
        kinds, notes = self.token_types, self.notes
        return replace(
            self,
            tokens=[self.tokens[row] for row in rows],
            owners=self.owners[rows],
            targets=[self.targets[row] for row in rows],
            weights=self.weights[rows],
            token_types=None if kinds is None else [kinds[row] for row in rows],
            notes=None if notes is None else [notes[row] for row in rows],
            windows=None if self.windows is None else [self.windows[row] for row in rows],
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
        """Pad these examples to the longest of their rows, and no further.

        Of an example with more than `most` windows, that many are taken, evenly spread: what is
        trained on must fit into memory. Without it, all are. `dropout` leaves tokens out, drawn by
        `random`; it is for targets that belong to whole texts. With a `multiple`, and one number
        as the target of each example, rows are padded on to it (see `padded_length`).
        """
        parts = [self._rows_of(row, most) for row in rows]
        picked = [ids for of_row in parts for ids in of_row]
        types = None if self.token_types is None else [self.token_types[row] for row in rows]
        if dropout is not None:
            if random is None:
                raise ValueError("dropout needs random, which draws what is left out")
            kept = [
                dropout.keep(ids, random, long=bool(self.rows[row] > 1))
                for row, of_row in zip(rows, parts, strict=True)
                for ids in of_row
            ]
            picked = [ids[stays] for ids, stays in zip(picked, kept, strict=True)]
            if types is not None:
                types = [one[stays] for one, stays in zip(types, kept, strict=True)]
        longest = max(len(ids) for ids in picked)
        targets = [np.asarray(self.targets[row]) for row in rows]
        if targets[0].ndim == 0:  # else a target may have a value for each token of its row
            longest = self.padded_length(longest, multiple)
        tokens = np.zeros((len(picked), longest), dtype=np.int64)
        segments = np.zeros_like(tokens)
        for place, ids in enumerate(picked):
            # Which id pads does not matter: its segment says that nobody may look at it.
            tokens[place, : len(ids)] = ids
            segments[place, : len(ids)] = 1
        kinds = None
        if types is not None:
            kinds = np.zeros_like(tokens)
            for place, one in enumerate(types):
                kinds[place, : len(one)] = one
        counts = [len(of_row) for of_row in parts]
        owners = None if self.windows is None else np.repeat(np.arange(len(counts)), counts)
        return LabelledBatch(
            torch.from_numpy(tokens),
            torch.from_numpy(segments),
            torch.from_numpy(_padded(targets, longest)),
            torch.from_numpy(self.weights[np.asarray(rows)]),
            None if kinds is None else torch.from_numpy(kinds),
            None if owners is None else torch.from_numpy(owners),
        )

    def padded_length(self, length: int, multiple: int) -> int:
        """The next multiple from a length on, but not beyond the longest row of all examples."""
        return max(length, min(-(-length // multiple) * multiple, self._longest))

    @cached_property
    def _longest(self) -> int:
        return int(self.lengths.max())

    def _rows_of(self, row: int, most: int | None) -> list[Ids]:
        """The example's windows, or it itself where it has none."""
        if self.windows is None:
            return [self.tokens[row]]
        parts = np.split(self.tokens[row], np.cumsum(self.windows[row])[:-1])
        if most is None or len(parts) <= most:
            return parts
        return [parts[place] for place in np.linspace(0, len(parts) - 1, most).round().astype(int)]


@dataclass(frozen=True)
class LabelledBatch:
    """Examples of one step, padded to the longest."""

    tokens: Tensor  # (B, T)
    segments: Tensor  # (B, T): 1 is text, 0 padding
    targets: Tensor  # (B …): as the task has them
    weights: Tensor  # (B): how much each example counts
    token_types: Tensor | None = None  # (B, T)
    owners: Tensor | None = None  # (B): the example of each row, where it has several

    def to(self, device: torch.device) -> "LabelledBatch":
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **{name: value.to(device) for name, value in tensors.items()})


def encode_texts(
    texts: Sequence[str],
    encoding: TextEncoding,
    progress: Callable[[int, int | None], None] | None = None,
) -> list[Ids]:
    """The ids of each text, unframed."""
    ids: list[Ids] = []
    at_once = 2_000
    for start in range(0, len(texts), at_once):
        arrays = encoding.tokenizer.encode_arrays(texts[start : start + at_once])
        ids += [array.astype(np.int64) for array in arrays]
        if progress is not None:
            progress(len(ids), len(texts))
    return ids


def left_out(ids: Sequence[Ids], encoding: TextEncoding) -> dict[str, int]:
    """How many texts are cut, and how many of how many tokens are lost with it."""
    if encoding.long == "windows":
        return {}
    lengths = np.array([len(one) for one in ids])
    over = lengths[lengths > encoding.room] - encoding.room
    if not len(over):
        return {}
    return {"texts": len(over), "tokens": int(over.sum()), "of": int(lengths.sum())}


def read_windows(
    windows: list[tuple[int, int]],
    pieces: Sequence[Ids],
    encoding: TextEncoding,
    cut: dict[str, int],
) -> list[tuple[int, int]]:
    """All windows over a text's words, or the first where texts are cut; `cut` counts the rest."""
    cut["of"] += sum(map(len, pieces))
    if encoding.long == "windows" or len(windows) < 2:
        return windows
    cut["texts"] += 1
    cut["tokens"] += sum(map(len, pieces[windows[0][1] :]))
    return windows[:1]


def _padded(targets: list[Any], longest: int) -> Any:
    """One array; where a target has one value per token, padding is ignored."""
    if targets[0].ndim == 0 or len({target.shape for target in targets}) == 1:
        return np.stack(targets)
    padded = np.full((len(targets), longest), IGNORE_INDEX, dtype=np.int64)
    for place, target in enumerate(targets):
        padded[place, : len(target)] = target
    return padded
