"""Token ids of a corpus on disk, and batches of them: each is a pure function of (seed, step).

A store is a folder named by a key of the corpus, the tokenizer and the held-out share, so that the
second request finds it. It is written under a temporary name, synced, and renamed: it is complete
or absent. What a killed writer left is removed by the next writer of the same store, and a damaged
store is made again. It has two parts, `train` and `held_out`, of two files: where each document
starts (8 bytes each), and the little-endian ids of all documents. The manifest has a checksum of
each file, which opening the store checks.

For pretraining, the documents are joined to one stream, each as `<begin> document <end>`, and the
stream is cut into rows of `length` tokens, so that only the last row can have padding. The segment
number of a position is the number of its document in the row. Rows can be read in any order.

A resumed run gets the same batch at step k as an uninterrupted run, without a saved position.
"""

import hashlib
import json
import shutil
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.dataset import batched
from headstart.data.sources import hash_content
from headstart.data.tokenizers import Tokenizer, Tokens, hash_of
from headstart.errors import HeadstartError
from headstart.files import sync

FORMAT = 6
MANIFEST = "manifest.json"
PARTS = ("train", "held_out")
INDEX_DTYPE = np.dtype("<u8")
_COUNTED = 1 << 22  # ids at once
SECTION = 512  # tokens of a document that views are drawn from, at most


class TokenStore:
    """One part of a finished store: the token ids of documents, memory-mapped."""

    def __init__(self, folder: Path, part: str, dtype: np.dtype[np.unsignedinteger]) -> None:
        self.folder = folder
        self.key = f"{folder.name}/{part}"
        self.starts = _map(folder / f"{part}-documents.bin", INDEX_DTYPE)
        self.ids = _map(folder / f"{part}-ids.bin", dtype)
        self.tokens = len(self.ids)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, document: int) -> Tokens:
        return self.ids[int(self.starts[document]) : int(self.starts[document + 1])]

    def __iter__(self) -> Iterator[Tokens]:
        return map(self.__getitem__, range(len(self)))

    def counts(self, vocab_size: int) -> NDArray[np.int64]:
        """Count the occurrences of each id: (vocab_size,)."""
        total = np.zeros(vocab_size, dtype=np.int64)
        for start in range(0, self.tokens, _COUNTED):
            total += np.bincount(self.ids[start : start + _COUNTED], minlength=vocab_size)
        return total


def _map(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)  # the system cannot map an empty file
    # As a plain array: slices of a memmap object are several times slower to make.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def store_corpus(
    documents: Iterable[str],
    tokenizer: Tokenizer,
    folder: Path,
    *,
    fingerprint: str,
    held_out: int = 0,
) -> list[TokenStore]:
    """Open the store of a corpus, or make it; the corpus is read at most once.

    Several processes may ask for the same store: one makes it, the others wait and open it.

    Parameters
    ----------
    documents : iterable of str
    tokenizer : Tokenizer
    folder : Path
        The folder of all stores.
    fingerprint : str
        A hash of the documents.
    held_out : int
        Documents with a hash below it are held out; `choose_held_out` finds it. By default none is.

    Returns
    -------
    list of TokenStore
        The documents to train on and those held out.
    """
    settings = (str(FORMAT), fingerprint, tokenizer.fingerprint, str(held_out))
    place = folder / hash_of(*(one.encode() for one in settings))[:32]
    if not is_complete(place):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(place.with_suffix(".lock")):
            if not is_complete(place):  # else another process has just made it
                _make_store(documents, tokenizer, held_out, place)
    return [TokenStore(place, part, tokenizer.dtype) for part in PARTS]


def is_complete(folder: Path) -> bool:
    """Return whether a store is there and its files have not changed since it was made."""
    path = folder / MANIFEST
    return path.is_file() and path.read_bytes() == _manifest(folder)


def _manifest(folder: Path) -> bytes:
    """Return the content of a manifest: the checksum of every other file."""
    files = sorted(folder.glob("*.bin"))
    return json.dumps({file.name: hash_content(file) for file in files}, indent=2).encode()


def _make_store(documents: Iterable[str], tokenizer: Tokenizer, held_out: int, place: Path) -> None:
    temporary = place.with_suffix(".part")
    for old in (temporary, place):
        shutil.rmtree(old, ignore_errors=True)
    try:
        temporary.mkdir()
        _write_parts(documents, tokenizer, held_out, temporary)
        (temporary / MANIFEST).write_bytes(_manifest(temporary))
        for path in (*temporary.iterdir(), temporary):
            sync(path)
        temporary.replace(place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync(place.parent)


def _write_parts(
    documents: Iterable[str], tokenizer: Tokenizer, held_out: int, folder: Path
) -> None:
    lengths = [array("Q") for _ in PARTS]
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"{part}-ids.bin").open("wb")) for part in PARTS]
        for batch in batched(documents):
            for text, ids in zip(batch, tokenizer.encode_arrays(batch), strict=True):
                part = text_hash(text) < held_out
                files[part].write(ids.tobytes())
                lengths[part].append(len(ids))
    for name, counts in zip(PARTS, lengths, strict=True):
        starts = np.zeros(len(counts) + 1, dtype=INDEX_DTYPE)
        np.cumsum(counts, out=starts[1:])
        (folder / f"{name}-documents.bin").write_bytes(starts.tobytes())


def text_hash(document: str) -> int:
    """Return a number below 2**64 for a document; equal documents are held out together."""
    content = document.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


def choose_held_out(corpus: Iterable[str], share: float, *, min_bytes: int) -> int:
    """Choose the limit below which the hash of a held-out document is.

    The share decides, wherever it leaves at least `min_bytes` of text on both sides. In a corpus of
    few documents, those with the smallest hashes are held out, as many as are enough. The corpus is
    read until that is certain, usually a few hundred documents.

    Parameters
    ----------
    corpus : iterable of str
    share : float
        Of the documents that are held out.
    min_bytes : int

    Returns
    -------
    int
        That of the share alone, where both sides cannot have `min_bytes`.
    """
    limit = round(share * 2**64)
    held_out = total = 0
    sizes = Counter[int]()  # bytes of text by hash
    for document in corpus:
        value, size = text_hash(document), len(document.encode("utf-8", "surrogatepass"))
        total += size
        held_out += size if value < limit else 0
        sizes[value] += size
        if min_bytes <= held_out <= total - min_bytes:
            return limit
    held_out = 0
    for value in sorted(sizes):
        held_out += sizes[value]
        if min_bytes <= held_out <= total - min_bytes:
            return value + 1
    return limit


# Batches


Indices = NDArray[np.integer]
_POOL = 100  # batches that are sorted by length together; larger pools save little more


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
        parts.append(shuffled(items, seed, epoch)[start : start + stop - first])
        first += len(parts[-1])
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


@dataclass(frozen=True)
class ViewsBatch:
    """Two views of each document, in rows 0 and 1, 2 and 3, …"""

    tokens: Tensor  # (2·B, T)
    segments: Tensor  # (2·B, T): 0 is padding
    documents: Tensor  # (B): the number of each document

    @property
    def real_tokens(self) -> int:
        return int(self.segments.sum())

    def part(self, documents: slice) -> "ViewsBatch":
        """Return the views of some of the documents."""
        rows = slice(2 * documents.start, 2 * documents.stop)
        return ViewsBatch(self.tokens[rows], self.segments[rows], self.documents[documents])

    def to(self, device: torch.device) -> "ViewsBatch":
        return ViewsBatch(*(one.to(device) for one in vars(self).values()))


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
        self._begin, self._end = (
            np.array([] if special is None else [special], dtype=np.uint32)
            for special in (tokenizer.begin_id, tokenizer.end_id)
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
        segments = np.zeros(shape, dtype=np.int64)
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
                fix="use --objective masked or causal, or another tokenizer",
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
        """Draw a document with at least `shortest` tokens, and at most `length` tokens of it.

        If fewer than two documents are that long, one of the two longest is drawn.
        """
        lengths, documents = self._by_length
        first = max(0, min(int(np.searchsorted(lengths, shortest)), len(lengths) - 2))
        place = int(random.integers(first, len(lengths)))
        if documents[place] == other_than:
            place = first + (place - first + 1) % (len(lengths) - first)
        text = self.store[int(documents[place])]
        start = int(random.integers(max(1, len(text) - length + 1)))
        return int(documents[place]), text[start : start + length]

    def views(
        self, documents: int, key: tuple[int, int], *, span: int, dropout: float
    ) -> ViewsBatch:
        """Return two views of each of some documents, as `<begin> tokens <end>` per row.

        A view is a span, of whose tokens some are dropped. The spans of a document that is long
        enough do not overlap; a shorter one is seen twice.

        Parameters
        ----------
        documents : how many; fewer where the store has fewer.
        span : tokens of a view, before some are dropped.
        dropout : share of the tokens that are dropped.
        """
        sections, owners = self._sections
        count = min(documents, len(owners))
        numbers = shuffled_batch(len(owners), count, seed=key[0], step=key[1])
        random = np.random.default_rng([*key, 2])
        views: list[NDArray[np.integer]] = []
        for start, stop in sections[numbers]:
            text = self.store.ids[start:stop]
            if len(text) >= 2 * span:
                low, high = sorted(random.integers(len(text) - 2 * span + 1, size=2))
                begins = (low, high + span)
            else:
                begins = tuple(random.integers(max(1, len(text) - span + 1), size=2))
            for begin in begins:
                view = text[begin : begin + span]
                kept = view[random.random(len(view)) >= dropout]
                views.append(np.concatenate([self._begin, kept if len(kept) else view, self._end]))
        shape = (len(views), max(map(len, views)))
        tokens = np.full(shape, self.tokenizer.pad_id or 0, dtype=np.int64)
        segments = np.zeros(shape, dtype=np.int64)
        for row, view in enumerate(views):
            tokens[row, : len(view)], segments[row, : len(view)] = view, 1
        arrays = (tokens, segments, owners[numbers])
        return ViewsBatch(*map(torch.from_numpy, arrays))

    @cached_property
    def _sections(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each section of a document starts and stops, and its document.

        A long document, such as a book, has several: what is far apart in it may differ in topic.
        """
        starts = self.store.starts.astype(np.int64)
        lengths = np.diff(starts)
        counts = -(-lengths // SECTION)  # none of an empty document
        owners = np.repeat(np.arange(len(lengths)), counts)
        place = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = starts[owners] + place * lengths[owners] // counts[owners]
        last = starts[owners] + (place + 1) * lengths[owners] // counts[owners]
        return np.stack([first, last], axis=1), owners

    @cached_property
    def _by_length(self) -> tuple[Indices, Indices]:
        """The lengths of the documents, ascending, and their numbers in this order."""
        lengths = np.diff(self.store.starts)
        documents = np.argsort(lengths, kind="stable")
        if len(lengths) < 2 or lengths[documents[-2]] < 2:
            raise HeadstartError(
                "almost no document has two tokens, so no pairs of segments can be made",
                fix="use --objective masked",
            )
        return lengths[documents], documents
