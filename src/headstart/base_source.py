"""Bases that are no runs of Headstart: `hf:PATH`, and others that a package may add.

[project.entry-points."headstart.base_sources"]
mine = "my_package.bases:SOURCE"
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from headstart.registry import Registry

ORIGIN = "origin.json"  # in the copy of a base: where it came from


class BaseSource(ABC):
    """Opens what is named `PREFIX:NAME` wherever a run's folder can be named."""

    @abstractmethod
    def open(self, name: str) -> Any:
        """The base as a `headstart.run_folder.Run`; `name` is what stands behind the colon."""

    @abstractmethod
    def fingerprint(self, name: str) -> str:
        """Another one for other weights."""

    def pin(self, name: str) -> str:
        """The name that a recipe keeps: it must still mean the same weights later."""
        return name


BASE_SOURCES: Registry[BaseSource] = Registry(
    "base source",
    group="headstart.base_sources",
    base=BaseSource,
    built_in={"hf": "headstart.interop.huggingface.read:SOURCE"},
)


def source_of(base: Path | str) -> tuple[BaseSource, str] | None:
    """The source that a base names, with the name there; None for a folder."""
    prefix, colon, name = str(base).partition(":")
    if not colon or len(prefix) < 2 or Path(base).is_dir():  # C: is a drive
        return None
    source = BASE_SOURCES.get(prefix)
    return None if source is None else (source, name)


def is_foreign(base: str) -> bool:
    """Whether a base was not trained by Headstart: of another source, or a copy of such a one."""
    return source_of(base) is not None or (Path(base) / ORIGIN).is_file()


def pin_base(base: str) -> str:
    """The name of a base as a recipe keeps it."""
    found = source_of(base)
    return base if found is None else f"{base.partition(':')[0]}:{found[0].pin(found[1])}"
