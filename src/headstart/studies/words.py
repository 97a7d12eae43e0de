"""Numbers in words: points, intervals, labels, names of arms."""

from collections.abc import Sequence
from pathlib import Path

from headstart.evaluation.metrics import Interval
from headstart.studies.arms import arm_label
from headstart.studies.comparison import Series
from headstart.studies.results import Study


def points(value: float) -> str:
    """An accuracy difference in points, without its sign."""
    return f"{abs(100 * value):.1f}"


def signed(value: float) -> str:
    """The same with its sign; the minus is a real one."""
    text = f"{100 * value:+.1f}"
    return text.replace("+", "").replace("-", "−") if float(text) != 0 else "0.0"


def within(interval: Interval) -> str:
    """The interval in words, in points."""
    return f"{signed(interval.low)} to {signed(interval.high)}"


def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{100 * share:.0f} %"


def size(interval: Interval) -> str:
    """An interval that excludes zero, in points without their sign."""
    low, high = sorted((abs(interval.low), abs(interval.high)))
    return f"{points(low)} to {points(high)}"


def exact(interval: Interval) -> str:
    """A mean and its interval, in percent."""
    mean = f"{100 * interval.value:.1f} %"
    return f"{mean} ({within(interval)})" if interval.bounded else mean


def labelled(count: int) -> str:
    """A number of labels in words."""
    return f"{count:,} labels"


def capital(sentence: str) -> str:
    """The same with a capital first letter; `str.capitalize` would change the others."""
    return sentence[:1].upper() + sentence[1:]


def series_name(series: Series, study: Study) -> str:
    """The arm, with its objective where the study has several."""
    arm, objective = series
    several = len(study.pretraining) > 1 and objective
    return f"{arm_label(arm)} · {objective}" if several else arm_label(arm)


def most_labels(study: Study) -> str:
    """The largest budget in words; "all" is said only of all labels."""
    most = f"{study.budgets[-1]:,}"
    return f"all {most} labels" if study.has_all_labels else f"{most} labels"


def dataset_name(sources: Sequence[str]) -> str:
    """What a study is called: a file with its folder, since many are called train.csv.

    Example
    -------
    >>> dataset_name(["rotten-tomatoes"])
    'rotten-tomatoes'
    """
    path = Path(sources[0])
    name = sources[0]
    if path.exists():
        place = path.resolve()
        name = place.name if place.is_dir() else f"{place.parent.name}/{place.name}".lstrip("/")
    return name if len(sources) == 1 else f"{name} and {len(sources) - 1} more"
