"""Settings that check themselves, and how they are made from a file's values."""

from dataclasses import MISSING, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from headstart.errors import HeadstartError


class Checked:
    """Settings that are checked as soon as they are made: names, types, choices, sizes."""

    def __post_init__(self) -> None:
        if problems := self._field_problems():
            raise HeadstartError("; ".join(problems))
        if problems := self._cross_problems():
            raise HeadstartError("; ".join(problems), fix=self._fix())

    def _field_problems(self) -> list[str]:
        problems = []
        hints = get_type_hints(type(self))
        for field in fields(self):  # type: ignore[arg-type]
            value, kind = getattr(self, field.name), hints[field.name]
            if get_origin(kind) is list:
                kind = list
            if get_origin(kind) is Literal:
                if value not in get_args(kind):
                    choices = ", ".join(map(str, get_args(kind)))
                    problems.append(f"{field.name} is {value!r}; it can be {choices}")
            elif kind is float:
                # Comparisons with NaN are false, so this also refuses NaN.
                if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                    problems.append(f"{field.name} is {value!r}; it must be a number from 0 up")
            elif unwritable := _unwritable(value):
                problems.append(f"{field.name} is {unwritable!r}, which is not valid Unicode")
            elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                problems.append(f"{field.name} is {value!r}; it must be of type {kind.__name__}")
            elif kind is int and value < self._smallest(field.name):
                problems.append(
                    f"{field.name} is {value}; it must be {self._smallest(field.name)} or more"
                )
        return problems

    def _smallest(self, name: str) -> int:
        return 1

    def _cross_problems(self) -> list[str]:
        """Settings that are fine one by one, but not together."""
        return []

    def _fix(self) -> str | None:
        return None


def _unwritable(value: object) -> str | None:
    """A text that UTF-8 has no bytes for, such as a file name from an old file system."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and any("\ud800" <= character <= "\udfff" for character in text):
            return text
    return None


C = TypeVar("C", bound=Checked)


def from_dict(kind: type[C], values: dict[str, Any], *, where: object = None) -> C:
    """Make settings from a file's values; an unknown or missing name is an error at once."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise HeadstartError(
            f"unknown setting {', '.join(unknown)} for {kind.__name__}; it has {', '.join(known)}",
            where=where,
        )
    missing = [n for n, f in known.items() if f.default is MISSING and n not in values]
    if missing:
        raise HeadstartError(f"{kind.__name__} lacks {', '.join(missing)}", where=where)
    try:
        return kind(**values)
    except HeadstartError as error:
        raise HeadstartError(error.what, where=where, fix=error.fix) from None
