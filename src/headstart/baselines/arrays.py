"""What a classifier without a network has learned, on disk: arrays and words, never code."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from headstart.files import replacing, write_text

ARRAYS = "arrays.safetensors"
VOCABULARY = "vocabulary.json"


def write_arrays(arrays: Mapping[str, NDArray[Any]], folder: Path) -> Path:
    """Write named arrays; the file is whole or absent."""
    path = folder / ARRAYS
    # safetensors writes memory as it lies, whatever the strides say.
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with replacing(path) as temporary:
        save_file(plain, temporary)
    return path


def read_arrays(folder: Path) -> dict[str, NDArray[Any]]:
    """All arrays by name; a number that is none is a ValueError."""
    found: dict[str, NDArray[Any]] = load_file(folder / ARRAYS)
    for name, array in found.items():
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise ValueError(f"{name} holds NaN or infinite numbers")
    return found


def write_vocabulary(words: Sequence[str], folder: Path) -> Path:
    """Write the words (or n-grams) by column."""
    path = folder / VOCABULARY
    write_text(path, json.dumps(list(words)) + "\n")
    return path


def read_vocabulary(folder: Path) -> dict[str, int]:
    """The column of each word; a word that is listed twice is a ValueError."""
    words = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{VOCABULARY} is no list of words")
    columns = {word: column for column, word in enumerate(words)}
    if len(columns) != len(words):
        raise ValueError(f"{VOCABULARY} names a word twice")
    return columns


def check_shape(name: str, array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """The array, if it has this shape; else a ValueError that says both."""
    if array.shape != shape:
        raise ValueError(f"{name} is {array.shape}, expected {shape}")
    return array
