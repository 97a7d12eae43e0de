"""Documents packed into rows of one length, for pretraining: no position is wasted.

The documents form one stream, each as `<begin> document <end>`, and the stream is cut every
`length` tokens. A document may go on in the next row; only the last row can have padding. Each
position knows its document by a segment number, so that attention can be kept within it.
Any row can be had without those before it, straight from the store's files.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstart.errors import HeadstartError
from headstart.text.store.token_store import TokenStore
from headstart.text.tokenizers.tokenizer import Tokenizer

PADDING_SEGMENT = 0


@dataclass(frozen=True)
class Rows:
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

    @property
    def padding_share(self) -> float:
        """The share of positions that are padding: all of them in the last row."""
        return 1 - self.tokens / (len(self) * self.length) if len(self) else 0.0

    def rows(self, numbers: Iterable[int]) -> Rows:
        """The rows with these numbers, in this order."""
        numbers = list(numbers)
        shape = (len(numbers), self.length)
        # Without a pad id any will do: its segment says that nobody may look at it.
        tokens = np.full(shape, self._pad_id or 0, dtype=np.int64)
        segments = np.full(shape, PADDING_SEGMENT, dtype=np.int64)
        for place, number in enumerate(numbers):
            if not 0 <= number < len(self):
                raise IndexError(f"row {number} of {len(self)}")
            self._fill(int(number), tokens[place], segments[place])
        return Rows(tokens, segments)

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
