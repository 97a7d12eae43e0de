"""Batches of a token store or of texts: each is a pure function of (seed, step).

For pretraining the documents form one stream, each as `<begin> document <end>`, that is cut every
`length` tokens: no position is wasted, and only the last row can have padding. A segment number
says which document of its row a position belongs to. Any row is read without those before it.

A resumed run takes step k and gets exactly what the uninterrupted run had there; nothing is
replayed and there is no position to save.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.token_store import TokenStore
from headstart.data.tokenizers import Tokenizer
from headstart.errors import HeadstartError

Indices = NDArray[np.integer]
PADDING_SEGMENT = 0
_POOL = 100  # batches: sorting by length in larger pools saves little and shuffles less


@lru_cache(maxsize=2)  # a batch touches at most two epochs, unless there are few items
def shuffled(items: int, *key: int) -> Indices:
    """Return 0 to `items` - 1 in an order that depends on the key alone."""
    order: Indices = np.arange(items, dtype=np.int32 if items < 1 << 31 else np.int64)
    np.random.default_rng([items, *key]).shuffle(order)
    order.flags.writeable = False  # it is shared
    return order


def shuffled_batch(items: int, batch_size: int, *, seed: int, step: int) -> Indices:
    """Return the items of a step: full batches, every item once per epoch.

    A batch may reach from one epoch into the next.
    """
    first, stop = step * batch_size, (step + 1) * batch_size
    parts = []
    while first < stop:
        epoch, start = divmod(first, items)
        part = shuffled(items, seed, epoch)[start : start + stop - first]
        parts.append(part)
        first += len(part)
    return np.concatenate(parts)


class LengthBatches:
    """Batches of texts of similar length: little padding, still shuffled.

    Every epoch has each text once, in `steps_per_epoch` batches; at most one is smaller.
    """

    def __init__(self, lengths: Sequence[int] | Indices, *, batch_size: int, seed: int) -> None:
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.steps_per_epoch = -(-len(self.lengths) // batch_size)
        self._epoch = lru_cache(maxsize=1)(self._make_epoch)

    def batch(self, step: int) -> Indices:
        """Return the texts of a step, counted from 0 through all epochs."""
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
        # The third number makes this shuffle another one than that of the texts.
        return [batches[i] for i in shuffled(len(batches), self.seed, epoch, 1)]


@dataclass(frozen=True)
class PackedBatch:
    """Rows of the stream of documents."""

    tokens: Tensor  # (B, T)
    segments: Tensor  # (B, T): 0 is padding; the documents of a row are 1, 2, …


@dataclass(frozen=True)
class PairBatch(PackedBatch):
    """One `<begin> A <separator> B <end>` per row."""

    token_types: Tensor  # (B, T): 0 up to the separator, 1 behind it
    follows: Tensor  # (B): 1 where B continues A


class TokenSource:
    """Batches of a store; a key is (seed, step).

    Parameters
    ----------
    store : TokenStore
    tokenizer : Tokenizer
        The one that made the store. A begin or end token that it lacks is not inserted.
    length : int
        Tokens per row.
    """

    def __init__(self, store: TokenStore, tokenizer: Tokenizer, *, length: int) -> None:
        self.store = store
        self.tokenizer = tokenizer
        self.length = length
        self.special_ids = torch.tensor(sorted(tokenizer.specials.values()), dtype=torch.long)
        ends = (tokenizer.begin_id, tokenizer.end_id)
        self._begin, self._end = (
            np.array([] if special is None else [special], dtype=np.uint32) for special in ends
        )
        self._extra = len(self._begin) + len(self._end)  # tokens per document
        self.tokens = store.tokens + self._extra * len(store)  # of the stream

    def num_rows(self, extra: int = 0) -> int:
        """Return the number of rows of `length + extra` tokens."""
        return -(-self.tokens // (self.length + extra))

    def rows(self, rows: int, key: tuple[int, int], *, extra: int = 0) -> PackedBatch:
        """Return the rows of step `key[1]`, each of `length + extra` tokens."""
        numbers = shuffled_batch(self.num_rows(extra), rows, seed=key[0], step=key[1])
        return self.read_rows(numbers, extra=extra)

    def read_rows(self, numbers: Sequence[int] | Indices, *, extra: int = 0) -> PackedBatch:
        """Return the rows with these numbers, in this order."""
        shape = (len(numbers), self.length + extra)
        # Without a padding token any id will do: segment 0 masks it.
        tokens = np.full(shape, self.tokenizer.pad_id or 0, dtype=np.int64)
        segments = np.full(shape, PADDING_SEGMENT, dtype=np.int64)
        for row, number in enumerate(numbers):
            start = position = int(number) * shape[1]
            stop = min(start + shape[1], self.tokens)
            document = bisect_right(range(len(self.store)), start, key=self._place) - 1
            segment = 1
            while position < stop:
                part = self._read(document, position, stop)
                here = slice(position - start, position - start + len(part))
                tokens[row, here], segments[row, here] = part, segment
                position += len(part)
                document, segment = document + 1, segment + 1
        return PackedBatch(torch.from_numpy(tokens), torch.from_numpy(segments))

    def _place(self, document: int) -> int:
        """Return where in the stream a document begins."""
        return int(self.store.starts[document]) + self._extra * document

    def _read(self, document: int, start: int, stop: int) -> NDArray[np.integer]:
        """Return the tokens of `<begin> document <end>` between two places of the stream."""
        parts = []
        place = self._place(document)
        for part in (self._begin, self.store[document], self._end):
            parts.append(part[max(start - place, 0) : max(stop - place, 0)])
            place += len(part)
        return np.concatenate(parts)

    def generator(self, key: tuple[int, int]) -> torch.Generator:
        """Return random numbers for this key alone."""
        state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state >> np.uint64(1)))

    def pairs(self, rows: int, key: tuple[int, int]) -> PairBatch:
        """Return two texts per row: half of the time the second continues the first."""
        tokenizer = self.tokenizer
        begin, separator, end = tokenizer.begin_id, tokenizer.separator_id, tokenizer.end_id
        if begin is None or separator is None or end is None:
            raise HeadstartError(
                "this tokenizer has no begin, separator or end token, which sentence pairs need",
                fix="use --objective masked or causal, or train a tokenizer of your own",
            )
        random = np.random.default_rng([*key, 1])
        shape = (rows, self.length)
        tokens = np.full(shape, tokenizer.pad_id or 0, dtype=np.int64)
        segments = np.zeros(shape, dtype=np.int64)
        token_types = np.zeros(shape, dtype=np.int64)
        follows = random.integers(2, size=rows)
        for row in range(rows):
            first, second = self._draw_pair(random, follows=bool(follows[row]))
            joined = np.concatenate([[begin], first, [separator], second, [end]])
            tokens[row, : len(joined)] = joined
            segments[row, : len(joined)] = 1
            token_types[row, len(first) + 2 : len(joined)] = 1
        return PairBatch(*map(torch.from_numpy, (tokens, segments, token_types, follows)))

    def _draw_pair(
        self, random: np.random.Generator, *, follows: bool
    ) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        number, text = self._draw_text(random, self.length - 3)  # begin, separator, end
        # Cut in the middle half, so that both texts have some content.
        low = max(1, len(text) // 4)
        cut = int(random.integers(low, max(low + 1, len(text) * 3 // 4)))
        first, second = text[:cut], text[cut:]
        if not follows:  # from a document that is long enough: length must not tell
            _, second = self._draw_text(random, len(second), len(second), other_than=number)
        return first, second

    def _draw_text(
        self, random: np.random.Generator, length: int, shortest: int = 2, other_than: int = -1
    ) -> tuple[int, NDArray[np.integer]]:
        """Draw one of the documents with `shortest` tokens, and at most `length` tokens of it.

        Where fewer than two have so many, it is one of the longest two.
        """
        lengths, documents = self._by_length
        first = max(0, min(int(np.searchsorted(lengths, shortest)), len(lengths) - 2))
        place = int(random.integers(first, len(lengths)))
        if documents[place] == other_than:
            place = first + (place - first + 1) % (len(lengths) - first)
        text = self.store[int(documents[place])]
        start = int(random.integers(max(1, len(text) - length + 1)))
        return int(documents[place]), text[start : start + length]

    @cached_property
    def _by_length(self) -> tuple[Indices, Indices]:
        """The lengths of the documents, ascending, and their numbers in this order."""
        lengths = np.diff(self.store.starts)
        documents = np.argsort(lengths, kind="stable")
        if len(lengths) < 2 or lengths[documents[-2]] < 2:
            raise HeadstartError(
                "hardly a document has two tokens, so there are no pairs to draw",
                fix="use --objective masked",
            )
        return lengths[documents], documents
