"""The rows that a fine-tuning has seen, known by their content: `rows.safetensors`.

An evaluation leaves them out, whatever the file is called that they come in and however it grew.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.checksums import load_arrays, save_arrays
from headstart.errors import HeadstartError
from headstart.files import replacing
from headstart.tasks.task import Parts, Task
from headstart.text.checking.duplicates import text_key
from headstart.text.reading.rows import PAIR_MARK

ROWS = "rows.safetensors"
Fingerprints = NDArray[np.uint64]


def write_rows(task: Task[Any], splits: Parts[Any], folder: Path) -> None:
    """Keep 64 bits of each row that trains the weights or chooses among them."""
    parts = {"train": splits.train, "validation": splits.validation}
    content = {name: fingerprints(task.row_texts(part)) for name, part in parts.items()}
    with replacing(folder / ROWS) as temporary:
        save_arrays(content, temporary)


def unseen_rows(task: Task[Any], part: Any, folder: Path) -> NDArray[np.int64] | None:
    """The numbers of the rows that the run in `folder` has not seen, from 0.

    `None` for a run without fingerprints: one of an older version.
    """
    known = _seen(task, part, folder, ("train", "validation"))
    return None if known is None else np.flatnonzero(~known)


def seen_rows(task: Task[Any], part: Any, folder: Path, role: str) -> NDArray[np.int64] | None:
    """The numbers of the rows that were the run's `role`, "train" or "validation"; see above."""
    known = _seen(task, part, folder, (role,))
    return None if known is None else np.flatnonzero(known)


def _seen(
    task: Task[Any], part: Any, folder: Path, roles: Sequence[str]
) -> NDArray[np.bool_] | None:
    path = folder / ROWS
    if not path.is_file():
        return None
    fix = "copy the run again, or delete the file and evaluate on other texts only"
    try:
        saved = load_arrays(path, fix=fix)
        seen = np.concatenate([saved[role] for role in roles])
    except (KeyError, ValueError):
        raise HeadstartError(
            f"{ROWS} is damaged: which rows trained the run is not known",
            where=path,
            fix=fix,
        ) from None
    prints = fingerprints(task.row_texts(part))
    if len(prints) != len(part):  # a task whose rows are not known by one text each
        return None
    return np.isin(prints, seen)


def fingerprints(texts: Sequence[str]) -> Fingerprints:
    """64 bits of each text; equal ones agree, whatever their case, spacing and Unicode form."""
    # As runs before this mark of pairs have kept them.
    keys = (text_key(text.replace(PAIR_MARK, "\0")) for text in texts)
    return np.array([int.from_bytes(key[:8]) for key in keys], dtype=np.uint64)
