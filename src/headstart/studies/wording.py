"""Numbers and names of a study as people read them: points, intervals, labels, arms."""

from headstart.evaluation.interval import Interval
from headstart.studies.analysis import Series
from headstart.studies.arms import arm_label
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
    return f"{100 * share:.0f} %"


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
