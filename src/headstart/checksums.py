"""Checksums inside safetensors files, which detect damage when a file is read.

The format itself has none, so a flipped bit would go unnoticed. A file of another program, which
has no checksum, is read without this check.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from headstart.errors import HeadstartError

KEY = "sha256"  # the only entry of the metadata: several would have another order every time
DIGITS = 64
Arrays = Mapping[str, NDArray[Any]]


def checksum(arrays: Arrays, about: str = "") -> str:
    """Hash all names and values, whatever their order, and a text about them."""
    digest = hashlib.sha256(about.encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        digest.update(f"{name}\0{arrays[name].nbytes}\0".encode())
        flat: Any = np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8)
        digest.update(flat)
    return digest.hexdigest()


def save_arrays(arrays: Arrays, path: Path, about: str = "") -> None:
    """Write arrays with their checksum and a text about them."""
    save_file(dict(arrays), path, metadata={KEY: checksum(arrays, about) + about})


def load_arrays(path: Path, *, fix: str) -> tuple[dict[str, NDArray[Any]], str]:
    """Read arrays and the text about them; a file that was cut short or changed is an error."""
    try:
        with safe_open(path, framework="numpy") as file:
            stored = (file.metadata() or {}).get(KEY)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if any(array.dtype.isbuiltin != 1 for array in arrays.values()):
            raise TypeError("it has numbers of a type that NumPy lacks")  # such as bfloat16
    except (SafetensorError, TypeError, AttributeError) as error:
        raise HeadstartError(f"{path.name} is damaged: {error}", where=path, fix=fix) from None
    about = "" if stored is None else str(stored[DIGITS:])
    if stored is not None and stored[:DIGITS] != checksum(arrays, about):
        raise HeadstartError(
            f"{path.name} is damaged: its content does not match its checksum", where=path, fix=fix
        )
    return arrays, about
