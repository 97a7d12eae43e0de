"""Batches of packed rows or of sentence pairs from a token store, each a pure function of a key.

For pretraining the documents form one stream, each as `<begin> document <end>`, and the stream is
cut every `length` tokens, so no position is wasted. A document may continue in the next row; only
the last row can have padding. Each position knows its document by a segment number, so that
attention can be kept within it. Any row can be read without those before it, straight from the
store's files.

A resumed run takes step k and gets exactly what the uninterrupted run had there; nothing is
replayed and there is no position to save. `DataOrder` gives full batches of rows, for pretraining;
`LengthBatches` gives batches of texts of similar length, for fine-tuning: little padding, still
shuffled.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.text.store.token_store import TokenStore
from headstart.text.tokenizers.tokenizer import Tokenizer

Indices = NDArray[np.integer]
_POOL = 100  # batches in a pool: sorting in larger ones saves little and shuffles less


class DataOrder:
    """Endless full batches of `items` things: each epoch has its own shuffle of all of them.

    A batch may reach from one epoch into the next, so that every item is seen once per epoch and
    every batch has the same size.
    """

    def __init__(self, items: int, *, batch_size: int, seed: int) -> None:
        if items < 1 or batch_size < 1:
            raise ValueError(f"items {items} and batch_size {batch_size} must be at least 1")
        self.items = items
        self.batch_size = batch_size
        self.seed = seed

    def batch(self, step: int) -> Indices:
        """The items of step `step`, which counts from 0."""
        first = step * self.batch_size
        parts = []
        left = self.batch_size
        while left:
            epoch, start = divmod(first, self.items)
            part = shuffled(self.items, self.seed, epoch)[start : start + left]
            parts.append(part)
            first += len(part)
            left -= len(part)
        return np.concatenate(parts)


@lru_cache(maxsize=2)  # a batch touches at most two epochs, unless there are few items
def shuffled(items: int, *key: int) -> Indices:
    """0 to `items` - 1 in an order that depends on the key alone."""
    order: Indices = np.arange(items, dtype=np.int32 if items < 1 << 31 else np.int64)
    np.random.default_rng([items, *key]).shuffle(order)
    order.flags.writeable = False  # it is shared
    return order


class LengthBatches:
    """Every epoch has each text once, in `steps_per_epoch` batches; only one may be smaller."""

    def __init__(self, lengths: Sequence[int] | Indices, *, batch_size: int, seed: int) -> None:
        if len(lengths) < 1 or batch_size < 1:
            raise ValueError(
                f"{len(lengths)} texts and batch_size {batch_size}: both must be at least 1"
            )
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.steps_per_epoch = -(-len(self.lengths) // batch_size)
        self._epoch = lru_cache(maxsize=1)(self._make_epoch)

    def batch(self, step: int) -> Indices:
        """The texts of step `step`, which counts from 0 through all epochs."""
        epoch, number = divmod(step, self.steps_per_epoch)
        return self._epoch(epoch)[number]

    def _make_epoch(self, epoch: int) -> list[Indices]:
        order = shuffled(len(self.lengths), self.seed, epoch)
        batches: list[Indices] = []
        pool_size = _POOL * self.batch_size
        for start in range(0, len(order), pool_size):
            pool = order[start : start + pool_size]
            # Texts of equal length keep their shuffled order, so batches differ between epochs.
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            batches += [pool[i : i + self.batch_size] for i in range(0, len(pool), self.batch_size)]
        # The third number keeps this shuffle apart from that of the texts.
        return [batches[i] for i in shuffled(len(batches), self.seed, epoch, 1)]


PADDING_SEGMENT = 0
_DRAWS = 20  # of documents, before giving up on finding one with two tokens
_OTHERS = 16  # draws of a document that is long enough


@dataclass(frozen=True)
class RowArrays:
    """A batch of rows."""

    tokens: NDArray[np.int64]  # (rows, length)
    segments: NDArray[np.int64]  # (rows, length): 1, 2, … within a row; padding is 0


class PackedRows:
    """The rows of a store. A begin or end that the tokenizer does not have is left out."""

    def __init__(self, store: TokenStore, tokenizer: Tokenizer, *, length: int) -> None:
        if store.manifest["tokenizer"] != tokenizer.fingerprint:
            raise HeadstartError(
                "the store was made with another tokenizer",
                where=store.folder,
                fix="make the store again with this tokenizer",
            )
        if length < 1:
            raise ValueError(f"length {length} must be at least 1")
        self.length = length
        self._store = store
        self._before = _as_array(tokenizer.begin_id)
        self._after = _as_array(tokenizer.end_id)
        self._extra = len(self._before) + len(self._after)
        self._pad_id = tokenizer.pad_id
        self.tokens = store.tokens + self._extra * len(store)

    def __len__(self) -> int:
        return -(-self.tokens // self.length)

    def rows(self, numbers: Iterable[int]) -> RowArrays:
        """The rows with these numbers, in this order."""
        numbers = list(numbers)
        shape = (len(numbers), self.length)
        # Without a pad id any id will do: segment 0 masks it.
        tokens = np.full(shape, self._pad_id or 0, dtype=np.int64)
        segments = np.full(shape, PADDING_SEGMENT, dtype=np.int64)
        for place, number in enumerate(numbers):
            if not 0 <= number < len(self):
                raise IndexError(f"row {number} of {len(self)}")
            self._fill(int(number), tokens[place], segments[place])
        return RowArrays(tokens, segments)

    def _fill(self, number: int, tokens: NDArray[np.int64], segments: NDArray[np.int64]) -> None:
        start = position = number * self.length
        stop = min(start + self.length, self.tokens)
        document = bisect_right(range(len(self._store)), start, key=self._place) - 1
        segment = 1
        while position < stop:
            part = self._part(document, position, stop)
            here = slice(position - start, position - start + len(part))
            tokens[here], segments[here] = part, segment
            position += len(part)
            document, segment = document + 1, segment + 1

    def _place(self, document: int) -> int:
        """Where in the stream a document begins."""
        return int(self._store.starts[document]) + self._extra * document

    def _part(self, document: int, start: int, stop: int) -> NDArray[np.integer]:
        """What of `<begin> document <end>` lies between two places of the stream."""
        parts = []
        place = self._place(document)
        for part in (self._before, self._store[document], self._after):
            parts.append(part[max(start - place, 0) : max(stop - place, 0)])
            place += len(part)
        return np.concatenate(parts)


def _as_array(special: int | None) -> NDArray[np.integer]:
    return np.array([] if special is None else [special], dtype=np.uint32)


@dataclass(frozen=True)
class PackedBatch:
    """Rows cut from the stream of documents."""

    tokens: Tensor  # (B, T)
    segments: Tensor  # (B, T): 0 is padding; texts of a row are 1, 2, …


@dataclass(frozen=True)
class PairBatch:
    """One `<begin> A <separator> B <end>` per row."""

    tokens: Tensor  # (B, T)
    segments: Tensor  # (B, T)
    token_types: Tensor  # (B, T): 0 up to the separator, 1 behind it
    follows: Tensor  # (B): 1 where B continues A


class TokenSource:
    """A store, cut into rows of `length`. A key is (seed, step): the same key, the same batch.

    `separate` keeps the texts of a row from seeing each other.
    """

    def __init__(
        self, store: TokenStore, tokenizer: Tokenizer, *, length: int, separate: bool = False
    ) -> None:
        if store.tokens == 0:
            raise HeadstartError("the corpus has no tokens", where=store.folder)
        self.store = store
        self.tokenizer = tokenizer
        self.length = length
        self.separate = separate
        self.special_ids = torch.tensor(sorted(tokenizer.specials.values()), dtype=torch.long)

    def packed(self, extra: int = 0) -> PackedRows:
        return PackedRows(self.store, self.tokenizer, length=self.length + extra)

    def rows(self, rows: int, key: tuple[int, int], *, extra: int = 0) -> PackedBatch:
        """The rows of step `key[1]`, each `length + extra` long."""
        packed = self.packed(extra)
        seed, step = key
        drawn = packed.rows(DataOrder(len(packed), batch_size=rows, seed=seed).batch(step))
        return PackedBatch(torch.from_numpy(drawn.tokens), torch.from_numpy(drawn.segments))

    def generator(self, key: tuple[int, int]) -> torch.Generator:
        """Random numbers for this key alone."""
        state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state >> np.uint64(1)))

    def pairs(self, rows: int, key: tuple[int, int]) -> PairBatch:
        """Two texts per row: half of the time the second continues the first."""
        random = np.random.default_rng([*key, 1])
        shape = (rows, self.length)
        tokens = np.full(shape, self.tokenizer.pad_id or 0, dtype=np.int64)
        segments = np.zeros(shape, dtype=np.int64)
        kinds = np.zeros(shape, dtype=np.int64)
        follows = random.integers(2, size=rows)
        for row in range(rows):
            first, second = self._pair(random, bool(follows[row]))
            pieces = self._joined(first, second)
            tokens[row, : len(pieces)] = pieces
            segments[row, : len(pieces)] = 1
            kinds[row, len(pieces) - len(second) - 1 : len(pieces)] = 1
        return PairBatch(*map(torch.from_numpy, (tokens, segments, kinds, follows)))

    def _pair(self, random: np.random.Generator, follows: bool) -> tuple[np.ndarray, np.ndarray]:
        number, document = self._document(random)
        room = self.length - 3  # begin, separator, end
        window = document
        if len(document) > room:
            start = int(random.integers(len(document) - room + 1))
            window = document[start : start + room]
        # Somewhere in the middle half, so that both texts have something to say.
        low = max(1, len(window) // 4)
        cut = int(random.integers(low, max(low + 1, len(window) * 3 // 4)))
        first, second = window[:cut], window[cut:]
        if follows:
            return first, second
        elsewhere = self._other(random, number, len(second))
        start = int(random.integers(max(1, len(elsewhere) - len(second) + 1)))
        return first, elsewhere[start : start + len(second)]

    def _other(self, random: np.random.Generator, number: int, length: int) -> np.ndarray:
        """Another document, of `length` tokens if a few draws find one: length tells nothing."""
        longest: np.ndarray | None = None
        for _ in range(_OTHERS):
            other, document = self._document(random)
            if other == number:  # with two documents or more, the next one is another
                document = self.store[(number + 1) % len(self.store)]
            if longest is None or len(document) > len(longest):
                longest = document
            if len(longest) >= length:
                break
        assert longest is not None
        return longest

    def _document(self, random: np.random.Generator) -> tuple[int, np.ndarray]:
        for _ in range(_DRAWS):
            number = int(random.integers(len(self.store)))
            document = self.store[number]
            if len(document) >= 2:
                return number, document
        raise HeadstartError(
            "hardly a document has two tokens, so there are no pairs to draw",
            where=self.store.folder,
            fix="use --objective masked",
        )

    def _joined(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        tokenizer = self.tokenizer
        if tokenizer.separator_id is None or tokenizer.begin_id is None or tokenizer.end_id is None:
            raise HeadstartError(
                "this tokenizer has no begin, separator or end token, which sentence pairs need",
                fix="use --objective masked or causal, or train a tokenizer of your own",
            )
        parts = [[tokenizer.begin_id], first, [tokenizer.separator_id], second, [tokenizer.end_id]]
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])
