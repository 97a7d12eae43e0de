"""The weights of a folder in Hugging Face's form: safetensors, in one file or several, or a `.bin`.

A `.bin` is a pickle, and a pickle can carry code: it is read with `weights_only=True`, which builds
tensors and plain values and refuses everything else.
"""

import hashlib
import json
import pickle
import warnings
from pathlib import Path

import torch
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.model.checkpoint import read_safetensors

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"
AGAIN = "download the folder again, with all of its files"


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights; safetensors where there is a choice."""
    for name in (SAFETENSORS, PICKLE):
        if (folder / name).is_file():
            return [folder / name]
        if (folder / f"{name}{INDEX}").is_file():
            return _parts(folder / f"{name}{INDEX}")
    others = sorted(path.name for path in folder.iterdir() if path.suffix in (".h5", ".msgpack"))
    raise HeadstartError(
        f"there is neither {SAFETENSORS} nor {PICKLE} here"
        + (f", only {', '.join(others)}, which Headstart does not read" if others else ""),
        where=folder,
        fix=AGAIN,
    )


def _parts(index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HeadstartError(f"{index.name} is damaged", where=index, fix=AGAIN) from None
    files = [index.parent / Path(str(name)).name for name in names]
    if missing := [file.name for file in files if not file.is_file()]:
        raise HeadstartError(
            f"the download is not complete: {', '.join(missing)} is missing",
            where=index.parent,
            fix=AGAIN,
        )
    return files


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors by name."""
    found: dict[str, Tensor] = {}
    for file in weight_files(folder):
        found |= read_safetensors(file) if file.suffix == ".safetensors" else _read_pickle(file)
    return found


def hash_weights(folder: Path) -> str:
    """A fingerprint of the files that hold the weights."""
    digest = hashlib.sha256()
    for file in weight_files(folder):
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings():  # PyTorch warns about files that it then rejects
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise HeadstartError(
            f"{path.name} holds more than weights, so it was not opened",
            where=path,
            fix=f"get the model with a {SAFETENSORS}, which cannot carry code",
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise HeadstartError(
            f"{path.name} is damaged or cut short: {first}", where=path, fix=AGAIN
        ) from None
    if not isinstance(content, dict) or not all(isinstance(v, Tensor) for v in content.values()):
        raise HeadstartError(f"{path.name} is no table of weights", where=path)
    return {str(name): value for name, value in content.items()}
