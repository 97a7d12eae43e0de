"""A recipe on disk: `recipe.toml`, one `name = value` a line. With it, a folder is a run."""

import json
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.settings import Checked, from_dict

FILE = "recipe.toml"
MEASURED = ("threads",)  # where it is zero, the machine decides
SIZES = ("vocab_size", "width", "layers", "heads", "feed_forward_width")


class Recipe(Checked):
    """Every setting of one training; the classes that have fields are in other files."""

    def sizes(self) -> dict[str, int]:
        """The sizes that were given, for the preset."""
        return {name: getattr(self, name) for name in SIZES if getattr(self, name)}

    def changed(self, **changes: Any) -> Self:
        return replace(self, **changes)  # type: ignore[type-var]


R = TypeVar("R", bound=Recipe)


def write_recipe(recipe: Recipe, folder: Path) -> None:
    """JSON's spelling of these values is also TOML's."""
    lines = [
        f"{field.name} = {json.dumps(getattr(recipe, field.name))}"
        for field in fields(recipe)  # type: ignore[arg-type]
    ]
    write_text(folder / FILE, "\n".join(lines) + "\n")


def read_values(folder: Path) -> dict[str, Any]:
    """A run's settings, whatever kind of training it was."""
    path = folder / FILE
    if not path.is_file():
        raise HeadstartError("there is no recipe.toml here: this is not a run", where=folder)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise HeadstartError(f"the recipe cannot be read: {error}", where=path) from None


def read_recipe_as(kind: type[R], folder: Path) -> R:
    """A run's recipe; settings that `kind` does not have are an error."""
    return from_dict(kind, read_values(folder), where=folder / FILE)


def resumed(given: R, folder: Path) -> R:
    """The run's own recipe; what was given must not contradict it.

    Where no number of threads was given, it is the one that was found when the run began.
    """
    saved = read_recipe_as(type(given), folder)
    measured = {name: getattr(saved, name) for name in MEASURED if not getattr(given, name)}
    given = given.changed(**measured)
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
    return saved


def refuse_a_second_run(folder: Path) -> None:
    if (folder / FILE).exists():
        raise HeadstartError(
            "there is a run in this folder already",
            where=folder,
            fix="go on with it: add --resume; or choose another --out",
        )
