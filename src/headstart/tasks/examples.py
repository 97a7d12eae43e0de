"""Labelled rows as the network reads them: framed ids, cut or in windows, and padded batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.text.tokenizers.tokenizer import Tokenizer

Long = Literal["cut", "windows"]
Ids = NDArray[np.int64]
ASKED_NOT = -100  # a target that is not asked for (PyTorch's own number for it)


@dataclass(frozen=True)
class Reading:
    """How texts become ids: with which tokenizer, how many at most, and what of long texts."""

    tokenizer: Tokenizer
    length: int
    long: Long = "cut"

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
        if len(ids) <= self.room or self.long == "cut":
            return [ids[: self.room]]
        return np.array_split(ids, -(-len(ids) // self.room))

    def framed(self, ids: Ids) -> Ids:
        return np.concatenate([self.before, ids, self.after]).astype(np.int64)


@dataclass(frozen=True)
class Examples:
    """What the network is shown. A row of the dataset has one example, or one for each window."""

    tokens: list[Ids]
    owners: Ids  # the row of the dataset that each belongs to
    targets: list[Any]  # a number, or an array
    weights: NDArray[np.float32]
    token_types: list[Ids] | None = None
    cut: dict[str, int] = field(default_factory=dict)  # texts, tokens: what was left out
    notes: list[Any] | None = None  # what the task wants to know about each, for `join`

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def lengths(self) -> Ids:
        return np.array([len(ids) for ids in self.tokens], dtype=np.int64)

    def renumbered(self, numbers: NDArray[np.integer]) -> "Examples":
        """The same with each token's id looked up in `numbers`."""
        return replace(self, tokens=[numbers[ids].astype(np.int64) for ids in self.tokens])

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
        )

    def used(self) -> Ids:
        """The ids that occur."""
        return np.unique(np.concatenate(self.tokens))

    def batch(self, rows: Sequence[int] | Ids) -> "LabelledBatch":
        """Pad these examples to the longest of them, and no further."""
        picked = [self.tokens[row] for row in rows]
        longest = max(len(ids) for ids in picked)
        tokens = np.zeros((len(picked), longest), dtype=np.int64)
        segments = np.zeros_like(tokens)
        kinds = None if self.token_types is None else np.zeros_like(tokens)
        for place, (row, ids) in enumerate(zip(rows, picked, strict=True)):
            # Which id pads does not matter: its segment says that nobody may look at it.
            tokens[place, : len(ids)] = ids
            segments[place, : len(ids)] = 1
            if kinds is not None and self.token_types is not None:
                kinds[place, : len(ids)] = self.token_types[row]
        targets = [np.asarray(self.targets[row]) for row in rows]
        return LabelledBatch(
            torch.from_numpy(tokens),
            torch.from_numpy(segments),
            torch.from_numpy(_padded(targets, longest)),
            torch.from_numpy(self.weights[np.asarray(rows)]),
            None if kinds is None else torch.from_numpy(kinds),
        )


@dataclass(frozen=True)
class LabelledBatch:
    tokens: Tensor  # (B, T)
    segments: Tensor  # (B, T): 1 is text, 0 padding
    targets: Tensor  # (B …): as the task has them
    weights: Tensor  # (B): how much each example counts
    token_types: Tensor | None = None  # (B, T)

    def to(self, device: torch.device) -> "LabelledBatch":
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **{name: value.to(device) for name, value in tensors.items()})


def encode_texts(
    texts: Sequence[str],
    reading: Reading,
    progress: Callable[[int, int | None], None] | None = None,
) -> list[Ids]:
    """The ids of each text, unframed."""
    ids: list[Ids] = []
    at_once = 2_000
    for start in range(0, len(texts), at_once):
        arrays = reading.tokenizer.encode_arrays(texts[start : start + at_once])
        ids += [array.astype(np.int64) for array in arrays]
        if progress is not None:
            progress(len(ids), len(texts))
    return ids


def left_out(ids: Sequence[Ids], reading: Reading) -> dict[str, int]:
    """How many texts are cut, and how many of how many tokens are lost with it."""
    if reading.long == "windows":
        return {}
    lengths = np.array([len(one) for one in ids])
    over = lengths[lengths > reading.room] - reading.room
    if not len(over):
        return {}
    return {"texts": len(over), "tokens": int(over.sum()), "of": int(lengths.sum())}


def read_windows(
    windows: list[tuple[int, int]], pieces: Sequence[Ids], reading: Reading, cut: dict[str, int]
) -> list[tuple[int, int]]:
    """All windows over a text's words, or the first where texts are cut; `cut` counts the rest."""
    cut["of"] += sum(map(len, pieces))
    if reading.long == "windows" or len(windows) < 2:
        return windows
    cut["texts"] += 1
    cut["tokens"] += sum(map(len, pieces[windows[0][1] :]))
    return windows[:1]


def _padded(targets: list[Any], longest: int) -> Any:
    """One array; where a target has a value a token, padding is not asked for."""
    if targets[0].ndim == 0 or len({target.shape for target in targets}) == 1:
        return np.stack(targets)
    padded = np.full((len(targets), longest), ASKED_NOT, dtype=np.int64)
    for place, target in enumerate(targets):
        padded[place, : len(target)] = target
    return padded
