"""Settings that check themselves, and how they are made from a file's values."""

import math
from dataclasses import MISSING, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from headstart.errors import HeadstartError

# The largest sensible value of a setting, wherever it is a field, and why it is that. Beyond it
# there is no such training: a slip of the finger would crash or run for ever.
LARGEST: dict[str, tuple[float, str]] = {
    "threads": (512, "more of them only wait for each other"),
    "processes": (4_096, "a step has fewer rows to share out"),
    "stuck_seconds": (604_800, "nobody waits for a week"),
    "jobs": (10_000, "no study has more trainings at a time"),
    "cores": (4_096, "no machine has more"),
    "memory": (100_000, "it is counted in GB, and no machine has more"),
    "gpus": (64, "no machine has more"),
    "time_limit": (525_600, "it is counted in minutes, and that is a year"),
    "vocab_size": (1_000_000, "the largest vocabularies in use have a quarter of that"),
    "width": (16_384, "the largest networks in use are as wide"),
    "layers": (1_024, "deeper networks do not learn"),
    "heads": (1_024, "a head needs a few numbers to work with"),
    "feed_forward_width": (131_072, "the largest networks in use are as wide"),
    "length": (131_072, "attention over more does not fit into memory"),
    "max_length": (1_048_576, "attention over more does not fit into memory"),
    "token_types": (1_024, "a text has few kinds of segments"),
    "batch_tokens": (16_777_216, "the tokens of a step are held in memory"),
    "micro_batch_tokens": (16_777_216, "they are held in memory"),
    "batch_size": (1_048_576, "the rows of a step are held in memory"),
    "frequent": (1_000_000, "no vocabulary has more pieces"),
    "drawn": (1_000_000, "no vocabulary has more pieces"),
    "steps": (1_000_000_000, "that is years on any machine"),
    "tokens": (10**13, "that is years on any machine"),
    "save_seconds": (604_800, "a week of training could be lost"),
    "minutes": (525_600, "that is a year"),
    "epochs": (100_000, "every text would be read that often"),
    "epochs_that_fit": (100_000, "every text would be read that often"),
    "bases": (1_000, "the intervals hardly get narrower"),
    "patience": (100_000, "it is counted in epochs"),
    "evaluations": (1_000_000, "evaluating would take longer than training"),
    "seeds": (1_000, "the intervals hardly get narrower"),
    "seed": (2**31 - 1, "it must be below 2³¹"),
    "split_seed": (2**31 - 1, "it must be below 2³¹"),
    "classes": (1_000_000, "each of them needs texts to learn from"),
    "tags": (1_000_000, "each of them needs words to learn from"),
    "learning_rate": (10, "training breaks down far below"),
    "embedding_learning_rate": (10, "training breaks down far below"),
    "weight_decay": (100, "nothing would be left of the weights"),
    "warmup": (1, "it is a share of the steps"),
    "mask_share": (1, "it is a share of the tokens"),
    "held_out": (0.5, "it is a share of the documents, and most are to be learned from"),
    "label_smoothing": (1, "it is a share"),
    "token_dropout": (1, "it is a share of the tokens"),
    "long_token_dropout": (1, "it is a share of the tokens"),
    "average": (1, "it is a share of the epochs"),
    "layer_decay": (1, "it is a share"),
    "dropout": (1, "it is a share"),
    "start_deviation": (1_000, "the first step would break down"),
    "norm_epsilon": (1, "it is a tiny number"),
    "rotary_base": (1e12, "positions could not be told apart"),
}
LARGEST_OF_ALL = (10**15, "no count here is that large")


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
                if isinstance(value, bool) or not isinstance(value, int | float):
                    problems.append(f"{field.name} is {value!r}; it must be a number from 0 up")
                elif problem := bound_problem(field.name, value):
                    problems.append(problem)
            elif unwritable := _unwritable(value):
                problems.append(f"{field.name} is {unwritable!r}, which is not valid Unicode")
            elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                problems.append(f"{field.name} is {value!r}; it must be of type {kind.__name__}")
            elif kind is int and (
                problem := bound_problem(field.name, value, self._smallest(field.name))
            ):
                problems.append(problem)
        return problems

    def _smallest(self, name: str) -> int:
        return 1

    def _cross_problems(self) -> list[str]:
        """Settings that are fine one by one, but not together."""
        return []

    def _fix(self) -> str | None:
        return None


def bound_problem(name: str, value: float, smallest: float = 0) -> str | None:
    """What is wrong with a number: not finite, below `smallest`, or above `LARGEST`."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name} is {value}; it must be a finite number"
    if value < smallest:
        least = f"{smallest} or more" if isinstance(value, int) else f"a number from {smallest} up"
        return f"{name} is {value}; it must be {least}"
    largest, reason = LARGEST.get(name, LARGEST_OF_ALL)
    if value > largest:
        return f"{name} is {value:,}; it must be {largest:,} or less: {reason}"
    return None


def check_number(name: str, value: float, smallest: float = 0) -> None:
    """Refuse a number outside its bounds; for values that are no field of `Checked`."""
    if problem := bound_problem(name, value, smallest):
        raise HeadstartError(problem)


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
        raise HeadstartError(error.what, where=where, fix=error.fix, code=error.code) from None
