"""A recipe on disk, and what it was run on: `recipe.toml`, `identity.json`, `format.json`.

With its `recipe.toml`, a folder is a run (or a study). A resumed run must be given the same recipe
again and find the same data, which is known by its fingerprints.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import tomli_w

from headstart import lab
from headstart.errors import HeadstartError
from headstart.files import (
    FORMAT_FILE,
    IDENTITY,
    check_format,
    read_object,
    write_format,
    write_text,
)
from headstart.settings import Checked, from_dict

FILE = "recipe.toml"
MEASURED = {"threads": 0, "output": "auto", "epochs_that_fit": 0}
# where they have this value, a measurement decides
DATASET_SETTINGS = (  # where labelled rows are, and how they are read and split
    "dataset",
    "validation",
    "test",
    "text_column",
    "label_column",
    "encoding",
    "drop_overlap",
    "split_seed",
)
SIZES = ("vocab_size", "width", "layers", "heads", "feed_forward_width")
# The settings that a preset brings besides the sizes of its network: how it is usually trained.
PROTOCOLS: dict[str, dict[str, Mapping[str, Any]]] = {
    lab.PRESET: {"pretraining": lab.PRETRAINING, "finetuning": lab.FINETUNING},
}


class Recipe(Checked):
    """Every setting of one training; the classes that have fields are in other files."""

    # Those that may be given anew when resuming, because no result depends on them.
    may_differ: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """A run's settings with those that its version did not have yet, as it trained."""
        return values

    def sizes(self) -> dict[str, int]:
        """The sizes that were given, for the preset."""
        return {name: getattr(self, name) for name in SIZES if getattr(self, name)}

    def reading(self) -> dict[str, Any]:
        """How the dataset is read, as arguments of `read_dataset`, by `DATASET_SETTINGS`."""
        given: dict[str, Any] = {name: getattr(self, name) for name in DATASET_SETTINGS}
        absent = ("validation", "test", "text_column", "label_column")
        return {
            **{name: given[name] or None for name in absent},
            "encoding": given["encoding"],
            "drop_overlap": given["drop_overlap"],
            "seed": given["split_seed"],
        }

    def changed(self, **changes: Any) -> Self:
        """A copy with other values."""
        return replace(self, **changes)  # type: ignore[type-var]


R = TypeVar("R", bound=Recipe)


def protocol_of(
    preset: object, training: Literal["pretraining", "finetuning"]
) -> Mapping[str, Any]:
    """The settings with which a preset is usually trained; empty for most of them."""
    return PROTOCOLS.get(str(preset), {}).get(training, {})


def write_recipe(recipe: Recipe, folder: Path) -> None:
    """Write the recipe; before it, so that every run has one, the folder's format."""
    write_format(folder)
    write_text(folder / FILE, tomli_w.dumps(vars(recipe)))


def read_values(folder: Path) -> dict[str, Any]:
    """A run's settings, whatever kind of training it was."""
    path = folder / FILE
    if not path.is_file():
        raise HeadstartError("there is no recipe.toml here: this is not a run", where=folder)
    check_format(folder)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise HeadstartError(f"the recipe cannot be read: {error}", where=path) from None


def read_recipe_as(kind: type[R], folder: Path) -> R:
    """A run's recipe; settings that `kind` does not have are an error."""
    return from_dict(kind, kind.completed(read_values(folder)), where=folder / FILE)


def resumed(given: R, folder: Path) -> R:
    """The run's own recipe; what was given must not contradict it.

    Where the machine was to decide (`MEASURED`), it is what was found when the run began.
    """
    if not (folder / FORMAT_FILE).is_file():
        raise HeadstartError(
            "an older version of Headstart began this run, and its steps would not be the same now",
            where=folder,
            fix="start it anew in another folder; what it had finished can be used as it is",
        )
    saved = read_recipe_as(type(given), folder)
    measured = {
        name: getattr(saved, name)
        for name, undecided in MEASURED.items()
        if getattr(given, name, None) == undecided
    }
    new = {name: getattr(given, name) for name in given.may_differ}
    old = {name: getattr(saved, name) for name in given.may_differ}
    given = given.changed(**measured, **old)
    if given != saved:
        differ = [
            f"{name}: {getattr(saved, name)!r} in the run, {value!r} now"
            for name, value in vars(given).items()
            if value != getattr(saved, name)
        ]
        raise HeadstartError(
            "this is not the recipe that the run was started with:\n  " + "\n  ".join(differ),
            where=folder / FILE,
            fix="resume with the run's own settings, or start another run",
        )
    return saved.changed(**new)


def refuse_a_second_run(folder: Path) -> None:
    """A folder with a run in it is resumed or left alone."""
    if (folder / FILE).exists():
        raise HeadstartError(
            "there is a run in this folder already",
            where=folder,
            fix="resume it with --resume; or choose another --out",
        )


def write_identity(identity: dict[str, str], folder: Path) -> None:
    """Keep the fingerprints of what a run was started with."""
    write_text(folder / IDENTITY, json.dumps(identity, indent=2) + "\n")


def check_identity(identity: dict[str, str], folder: Path) -> None:
    """A resumed run must find the same things again."""
    path = folder / IDENTITY
    anew = "put the file back from a copy, or start another run"
    saved = read_object(path, fix=anew) if path.is_file() else {}
    for name, fingerprint in identity.items():
        if saved.get(name) != fingerprint:
            raise HeadstartError(
                f"the {name} is not the one that the run was started with",
                where=folder,
                fix=f"put the old {name} back, or start another run",
            )
