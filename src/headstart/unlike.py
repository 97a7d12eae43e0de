"""Detect texts that are unlike the training rows: most of their tokens are rare or absent there.

A classifier predicts one of its labels for every text, often with a high probability, so its
probabilities do not show this. The surprise of a text is the mean −log p of its tokens, with p from
the counts in the training rows, plus one. In `bench/unlike.py` this detects texts of other data
sets better than probabilities and distances between vectors do.

A text is reported if it is more surprising than 99 % of the run's own rows. These are the training
rows, each without its own counts, or the validation rows, whichever have the higher quantile:
tokenizers are often trained on the training rows too, so other texts have more rare tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headstart.checksums import load_arrays, save_arrays
from headstart.data.tokenizers import Tokenizer
from headstart.errors import HeadstartError
from headstart.files import replacing

TOKENS = "tokens.safetensors"
FIELD = "unlike_training"  # of a prediction: true or false
QUANTILE = 0.99  # of the run's own rows


@dataclass(frozen=True, eq=False)
class TrainingTokens:
    """How often each token occurs in the training rows, and the highest usual surprise."""

    tokenizer: Tokenizer
    counts: NDArray[np.int32]  # (vocab_size,)
    threshold: float

    @classmethod
    def count(cls, tokenizer: Tokenizer, train: Sequence[str], validation: Sequence[str]) -> Self:
        """Count the tokens of training texts, and select the threshold."""
        rows = tokenizer.encode_arrays(train)
        counts = np.bincount(np.concatenate(rows), minlength=tokenizer.vocab_size).astype(np.int32)
        without = [_surprise(counts, ids, own=True) for ids in rows]
        held_out = [_surprise(counts, ids) for ids in tokenizer.encode_arrays(validation)]
        threshold = max(np.quantile(one, QUANTILE) for one in (without, held_out) if one)
        return cls(tokenizer, counts, float(threshold))

    def unlike(self, texts: Sequence[str]) -> list[bool]:
        """Return which texts are unlike the training rows."""
        return [bool(one > self.threshold) for one in self.surprise(texts)]

    def surprise(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Compute the mean surprise of the tokens of each text."""
        rows = self.tokenizer.encode_arrays(texts)
        return np.array([_surprise(self.counts, ids) for ids in rows])

    def save(self, folder: Path) -> None:
        """Write the file of a run."""
        with replacing(folder / TOKENS) as temporary:
            save_arrays({"counts": self.counts, "threshold": np.array([self.threshold])}, temporary)

    @classmethod
    def open(cls, folder: Path, tokenizer: Tokenizer) -> Self | None:
        """Read the file of a run; `None` if it has none."""
        path = folder / TOKENS
        if not path.is_file():
            return None
        fix = f"copy the run again, or delete the file: predictions then have no {FIELD}"
        arrays: dict[str, Any] = load_arrays(path, fix=fix)[0]
        shapes = {name: one.shape for name, one in arrays.items()}
        if shapes != {"counts": (tokenizer.vocab_size,), "threshold": (1,)}:
            raise HeadstartError(
                f"{TOKENS} does not belong to this run's tokenizer", where=path, fix=fix
            )
        return cls(tokenizer, arrays["counts"], float(arrays["threshold"][0]))


def _surprise(counts: NDArray[np.int32], ids: NDArray[Any], *, own: bool = False) -> float:
    """Compute the mean surprise of a text; `own`: without its own tokens among the counts."""
    total = counts.sum() + len(counts)
    if not len(ids):
        return float(np.log(total))
    found = counts[ids]
    if own:
        _, places, repeats = np.unique(ids, return_inverse=True, return_counts=True)
        found, total = found - repeats[places], total - len(ids)
    return float(np.log(total) - np.log1p(found).mean())
