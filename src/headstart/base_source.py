"""Bases of Hugging Face, named `hf:PATH` or `hf:owner/name` wherever a run's folder can be named.

The functions import the readers only where they are needed, so that checking a name is fast.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

HF = "hf:"
ORIGIN = "origin.json"  # in a copy of such a base: its name


def hf_name(base: Path | str) -> str | None:
    """Return what follows `hf:`, or `None` where the base is a folder."""
    name = str(base)
    return name.removeprefix(HF) if name.startswith(HF) and not Path(base).is_dir() else None


def is_foreign(base: str) -> bool:
    """Tell whether a base was pretrained elsewhere: `hf:…`, or a copy of such a base."""
    return hf_name(base) is not None or (Path(base) / ORIGIN).is_file()


def pin_base(base: str) -> str:
    """Add the revision to a name of the Hub, so that it means the same weights later."""
    name = hf_name(base)
    return base if name is None else f"{HF}{_reader().pin(name)}"


def open_hf_base(name: str) -> Any:
    """Open a base by its name after `hf:`, as a `headstart.run.NetworkRun`."""
    return _reader().open_base(name)


def hf_fingerprint(name: str) -> str:
    """Hash the weights of a base by its name after `hf:`."""
    found: str = _reader().fingerprint(name)
    return found


def _reader() -> Any:
    return import_module("headstart.interop.huggingface.read")
