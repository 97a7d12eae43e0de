"""Checksums inside safetensors files: what is read is what was written.

The format itself has none: a flipped bit would be another number. A file without a checksum (of
another program, or of an older version) is read as it is.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from headstart.errors import HeadstartError

KEY = "xxh3_64"  # in the metadata of the file
Bytes = NDArray[np.generic]


def checksum(arrays: Mapping[str, Bytes], about: str = "") -> str:
    """64 bits of all names and values, whatever their order, and of a text about them."""
    digest = xxhash.xxh3_64(about.encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}\0{values.nbytes}\0".encode())
        flat: Any = values.reshape(-1).view(np.uint8)
        digest.update(flat)
    return digest.hexdigest()


def check_checksum(path: Path, arrays: Mapping[str, Bytes], *, about: str = "", fix: str) -> None:
    """Refuse a file whose content is not what its own checksum says."""
    with safe_open(path, framework="numpy") as file:
        stored = (file.metadata() or {}).get(KEY)
    if stored is not None and stored != checksum(arrays, about):
        raise HeadstartError(
            f"{path.name} is damaged: its checksum is not that of its content", where=path, fix=fix
        )


def sort_metadata(path: Path) -> None:
    """Give the entries of a file's metadata an order: the library's own is another every time."""
    with path.open("r+b") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) <= length:  # the format pads a header with blanks
            file.seek(8)
            file.write(text.ljust(length))


def save_arrays(arrays: Mapping[str, Bytes], path: Path) -> None:
    """Write arrays with their checksum."""
    save_file(dict(arrays), path, metadata={KEY: checksum(arrays)})


def load_arrays(path: Path, *, fix: str) -> dict[str, NDArray[np.generic]]:
    """Read arrays; a file that is cut short or has other bytes is an error."""
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise HeadstartError(f"{path.name} is damaged: {error}", where=path, fix=fix) from None
    check_checksum(path, arrays, fix=fix)
    return arrays
