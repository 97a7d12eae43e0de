"""A `config.json` of `transformers`: checked values, and what we cannot do."""

import json
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError

CONFIG = "config.json"


class ForeignConfig:
    """The settings of a folder in Hugging Face's form.

    Problems are collected, so that a network which differs from ours in several ways is refused
    with all of the reasons at once (`refuse_problems`).
    """

    def __init__(self, values: dict[str, Any], path: Path) -> None:
        self.values = values
        self.path = path
        self.problems: list[str] = []

    @classmethod
    def read(cls, folder: Path) -> "ForeignConfig":
        """Read the `config.json` of a folder; it must name a `model_type`."""
        path = folder / CONFIG
        if not path.is_file():
            raise HeadstartError(
                "there is no config.json here, so this is not a model in Hugging Face's form",
                where=folder,
                fix="name the folder that holds config.json, model.safetensors and tokenizer.json",
            )
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise HeadstartError(f"config.json is damaged: {error}", where=path) from None
        if isinstance(values, dict) and "base" in values and "format" in values:
            raise HeadstartError(
                "this is a run of Headstart, not a model in Hugging Face's form",
                where=folder,
                fix=f"name it without “hf:”: --base {folder}",
            )
        if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
            raise HeadstartError(
                "this config.json names no model_type, so it is not one of transformers", where=path
            )
        return cls(values, path)

    @property
    def model_type(self) -> str:
        return str(self.values["model_type"])

    @property
    def architecture(self) -> str:
        """The class that the weights were saved from; empty where the file does not say."""
        found = self.values.get("architectures")
        return str(found[0]) if isinstance(found, list) and found else ""

    @property
    def labels(self) -> list[str]:
        """The names of a classifier's answers, by number."""
        names = self.values.get("id2label")
        if not isinstance(names, dict):
            return [f"LABEL_{number}" for number in range(int(self.values.get("num_labels", 2)))]
        try:
            return [str(names[key]) for key in sorted(names, key=int)]
        except ValueError:
            raise HeadstartError("id2label is not numbered", where=self.path) from None

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number above 0."""
        found = self._given(name, default)
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            self.problems.append(f"{name} is {found!r}, not a whole number above 0")
            return 1
        return found

    def number(self, name: str, default: float) -> float:
        """A number from 0 on."""
        found = self._given(name, default)
        if isinstance(found, bool) or not isinstance(found, int | float) or not found >= 0:
            self.problems.append(f"{name} is {found!r}, not a number")
            return default
        return float(found)

    def choose(self, name: str, known: dict[str, Any], default: str) -> Any:
        """One of the values that `known` translates into ours."""
        found = self._given(name, default)
        if found not in known:
            self.problems.append(f"{name} is {found!r}; Headstart has {', '.join(known)}")
            return next(iter(known.values()))
        return known[found]

    def expect(self, name: str, wanted: Any, why: str) -> None:
        """Refuse another value than this one; a missing one is fine."""
        found = self.values.get(name)
        if found is not None and found != wanted:
            self.problems.append(f"{name} is {found!r}: {why}")

    def refuse_problems(self) -> None:
        """One error for all problems that were met."""
        if self.problems:
            raise HeadstartError(
                f"this {self.model_type} cannot be a base here:\n  " + "\n  ".join(self.problems),
                where=self.path,
                fix="use a model without it, or pretrain a base of your own",
            )

    def _given(self, name: str, default: Any) -> Any:
        found = self.values.get(name)
        return default if found is None else found
