"""Pairs: two texts, and one of two or more classes for how they are related.

The network reads `<begin> A <separator> B <end>` at once, as in BERT's next-sentence objective; the
rest is classification. Where both texts do not fit, the longer one is cut first.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.tasks.classification import Classification, row_weights
from headstart.tasks.examples import Examples, Ids, TextEncoding, count_cut, encode_texts
from headstart.text.reading.dataset import Dataset
from headstart.text.reading.rows import join_pair, split_pair


class Pairs(Classification):
    """One of the classes for each pair of texts."""

    name: ClassVar[str] = "pairs"
    input_names: ClassVar[tuple[str, ...]] = ("text", "second_text")
    texts_per_row: ClassVar[int] = 2
    supports_windows: ClassVar[bool] = False  # a window could hold only one of the two texts

    read_settings: ClassVar[dict[str, Any]] = {"pairs": True}

    def texts(self, rows: Dataset) -> Sequence[str]:
        return [half for pair in rows.texts for half in split_pair(pair)]

    def unlabelled(self, inputs: Sequence[Any]) -> Dataset:
        """Convert tuples of two texts to rows; pairs that are joined already stay as they are."""
        joined = [one if isinstance(one, str) else str(join_pair(*one)) for one in inputs]
        return super().unlabelled(joined)

    def encode(
        self, rows: Dataset, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        if encoding.long == "windows":
            raise HeadstartError(
                "pairs are not read in windows: a window could hold only one of the two texts",
                fix="leave --long windows out, or give a larger --length",
            )
        between = between_texts(encoding)
        room = encoding.room - len(between)
        ids = encode_texts(self.texts(rows), encoding, progress)
        tokens, types, lengths, read = list[Ids](), list[Ids](), list[int](), list[int]()
        for pair in zip(ids[::2], ids[1::2], strict=True):
            first, second = fit_pair(*pair, room)
            lengths.append(sum(map(len, pair)))
            read.append(len(first) + len(second))
            whole = encoding.framed(np.concatenate([first, between, second]))
            token_types = np.zeros(len(whole), dtype=np.int64)
            token_types[len(whole) - len(second) - len(encoding.after) :] = 1
            tokens.append(whole)
            types.append(token_types)
        return Examples(
            tokens=tokens,
            owners=np.arange(len(tokens)),
            targets=list(rows.labels),
            weights=row_weights(rows),
            token_types=types,
            cut=count_cut(lengths, read),
        )


def between_texts(encoding: TextEncoding) -> list[int]:
    """List the ids between two texts: the tokenizer's separators, or an end token."""
    separator = encoding.tokenizer.separator_id
    return encoding.after if separator is None else [separator] * encoding.tokenizer.separators


def fit_pair(first: Ids, second: Ids, room: int) -> tuple[Ids, Ids]:
    """Cut two texts so that both fit into `room`; the longer one is cut first."""
    half = room // 2
    if len(first) + len(second) <= room:
        return first, second
    if len(first) <= half:
        return first, second[: room - len(first)]
    if len(second) <= room - half:
        return first[: room - len(second)], second
    return first[:half], second[: room - half]
