"""Pairs: two texts, and one of two or more classes for what lies between them.

Does the second follow from the first, answer it, or say the same? The network reads
`<begin> A <separator> B <end>` in one go, as BERT's next-sentence objective does, and the rest is
classification. Where both do not fit, the longer one is cut first.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.tasks.classification import Classification, weights_of
from headstart.tasks.examples import Examples, Ids, TextEncoding, encode_texts
from headstart.text.reading.dataset import Dataset, Splits
from headstart.text.reading.read import read_dataset, read_labelled
from headstart.text.reading.rows import split_pair


class Pairs(Classification):
    """One of the classes for each pair of texts."""

    name: ClassVar[str] = "pairs"
    windows: ClassVar[bool] = False  # one could hold only one of the two texts
    texts_per_row = 2

    @classmethod
    def read(cls, sources: Sequence[str], **how: Any) -> Splits:
        return read_dataset(sources, pairs=True, **how)

    def read_all(self, source: str, **how: Any) -> Dataset:
        return read_labelled(source, self.labels, pairs=True, **how)

    def texts(self, part: Dataset) -> Sequence[str]:
        return [half for pair in part.texts for half in split_pair(pair)]

    def inspected(self, part: Dataset) -> Dataset:
        texts = [" ¦ ".join(split_pair(pair)) for pair in part.texts]
        return replace(part, texts=texts)

    def encode(
        self, part: Dataset, encoding: TextEncoding, *, progress: ProgressCallback | None = None
    ) -> Examples:
        if encoding.long == "windows":
            raise HeadstartError(
                "pairs are not read in windows: a window could hold only one of the two texts",
                fix="leave --long windows out, or give a larger --length",
            )
        between = between_texts(encoding)
        room = encoding.room - len(between)
        ids = encode_texts(self.texts(part), encoding, progress)
        tokens, kinds = [], []
        cut = {"texts": 0, "tokens": 0, "of": sum(map(len, ids))}
        for first, second in zip(ids[::2], ids[1::2], strict=True):
            kept_first, kept_second = fit_pair(first, second, room)
            lost = len(first) + len(second) - len(kept_first) - len(kept_second)
            cut["texts"] += lost > 0
            cut["tokens"] += lost
            whole = encoding.framed(np.concatenate([kept_first, between, kept_second]))
            tokens.append(whole)
            kind = np.zeros(len(whole), dtype=np.int64)
            kind[len(whole) - len(kept_second) - len(encoding.after) :] = 1
            kinds.append(kind)
        return Examples(
            tokens=tokens,
            owners=np.arange(len(tokens)),
            targets=list(part.labels),
            weights=weights_of(part),
            token_types=kinds,
            cut=cut if cut["texts"] else {},
        )


def between_texts(encoding: TextEncoding) -> list[int]:
    """What separates two texts: as many separators as the tokenizer has there, or an end."""
    separator = encoding.tokenizer.separator_id
    return encoding.after if separator is None else [separator] * encoding.tokenizer.separators


def fit_pair(first: Ids, second: Ids, room: int) -> tuple[Ids, Ids]:
    """As much of both as fits into `room`; the longer one gives way first."""
    half = room // 2
    if len(first) + len(second) <= room:
        return first, second
    if len(first) <= half:
        return first, second[: room - len(first)]
    if len(second) <= room - half:
        return first[: room - len(second)], second
    return first[:half], second[: room - half]
