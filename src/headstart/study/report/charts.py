"""All figures of the report and the web app, as SVG.

Colours are CSS variables of the page, so that light and dark are one picture; `standalone` puts the
light colours in their place. Charts of lines are one function, `line_chart`. A size is a width and
a height in pixels; every chart is drawn for a screen and, narrow, for a phone.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import accumulate, groupby
from typing import Any, NamedTuple

from headstart.arms import ARMS, arm_label, find_arm
from headstart.evaluation.metrics import Interval
from headstart.study.analysis import Curve, Difference
from headstart.study.verdict import labels_name, percent, signed

Place = tuple[float, float]
Size = tuple[int, int]
Scale = Callable[[float], float]
Format = Callable[[float], str]

WIDE, HALF, PHONE = (780, 380), (376, 290), (350, 330)
NARROW = 500  # a chart that is less wide has smaller letters and fewer ticks
LEFT, TOP, BOTTOM = 52, 14, 40  # margins
LIGHT = {
    **{"ink": "#1a1a1a", "soft": "#5c5c5c", "rule": "#dedede", "paper": "#ffffff"},
    "accent": "#0072b2",
}


def variable(arm: str) -> str:
    """Return the name of the CSS variable with an arm's colour; `hf:` arms share one."""
    return "arm-" + re.sub(r"[^a-z0-9]+", "-", arm.partition(":")[0].lower())


COLOURS = {variable(name): find_arm(name).colours for name in (*ARMS, "hf:any")}


def colour(arm: str) -> str:
    """Return the colour of an arm, the same in every figure."""
    return f"var(--{variable(arm)})"


def _svg(size: Size, title: str, parts: Sequence[str], hover: Sequence[Any] = ()) -> str:
    """Join the parts; `hover` has the values to show under the pointer at places along x."""
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(title)}" font-size="{_font(width)}" '
        f'font-family="system-ui, Roboto, Helvetica, Arial, sans-serif" '
        f'data-hover="{escape(json.dumps(hover))}">'
        f"{''.join(parts)}</svg>"
    )


def standalone(svg: str) -> str:
    """Turn a picture of a page into a file: colours in place of variables, no single seeds."""
    text = re.sub(r'<g class="seeds">.*?</g>| data-hover=".*?"', "", svg)
    known = LIGHT | {name: colours.light for name, colours in COLOURS.items()}
    text = re.sub(r"var\(--([a-z0-9-]+?)(-text)?\)", lambda found: known[found[1]], text)
    return text.replace(">", f'><rect width="100%" height="100%" fill="{LIGHT["paper"]}"/>', 1)


def _font(width: int) -> int:
    return 12 if width < NARROW else 13


def _text(
    x: float,
    y: float,
    words: str,
    anchor: str = "start",
    fill: str = "var(--soft)",
    weight: int = 400,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" '
        f'font-weight="{weight}">{escape(words)}</text>'
    )


def _name(x: float, y: float, words: str, stroke: str, weight: int = 600) -> str:
    """Write words in the colour of a line."""
    return _text(x, y, words, fill=stroke.replace(")", "-text)"), weight=weight)


def _path(points: Sequence[Place]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _line(points: Sequence[Place], stroke: str, width: float = 2, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<path class="line" d="{_path(points)}" fill="none" stroke="{stroke}" '
        f'stroke-width="{width}" stroke-linejoin="round" stroke-linecap="round"{dashed}/>'
    )


def _dot(x: float, y: float, fill: str, radius: float = 4) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" '
        'stroke="var(--paper)" stroke-width="1.5"/>'
    )


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    """Return the function from values between `low` and `high` to pixels."""
    return lambda value: start + (value - low) / ((high - low) or 1) * (end - start)


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Choose about `wanted` round numbers between `low` and `high`."""
    if high <= low:
        return [low]
    raw = (high - low) / wanted
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart until none overlaps, as little as possible, and keep them inside."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [*accumulate((places[i] for i in order), lambda before, at: max(before + gap, at))]
    moved[-1] = min(moved[-1], high)
    moved = [*accumulate(reversed(moved), lambda after, at: min(after - gap, at))][::-1]
    moved[0] = max(low, moved[0])
    return [moved[order.index(i)] for i in range(len(places))]


def limits_of(values: Sequence[float], intervals: Sequence[Interval]) -> tuple[float, float]:
    """Choose the range of an axis of scores, so that wide intervals do not flatten the curves."""
    low, high = min(values), max(values)
    most = max(0.02, (high - low) / 2)
    ends = [v for one in intervals for v in (one.low, one.high) if math.isfinite(v)]
    low, high = max(low - most, min([low, *ends])), min(high + most, max([high, *ends]))
    return max(0.0, low - 0.01), min(1.0, high + 0.01)


class Line(NamedTuple):
    """One line of a chart: its points as intervals by x, and the lines of single seeds."""

    name: str
    stroke: str
    points: Sequence[tuple[float, Interval]]
    seeds: Sequence[Sequence[Place]] = ()
    dots: bool = False  # for every point, with its interval as a whisker; else a band
    dash: str = ""


class Axis(NamedTuple):
    """The horizontal axis: what it counts, places of ticks, and how numbers are written."""

    name: str
    ticks: Sequence[float]
    words: Format
    log: bool = False


def line_chart(
    title: str,
    lines: Sequence[Line],
    axis: Axis,
    limits: tuple[float, float],  # of the vertical axis
    size: Size,
    *,
    y_words: Format = lambda share: f"{100 * share:.0f} %",
    value_words: Callable[[Interval], str] = percent,
) -> str:
    """Draw lines with their intervals, names at the right end, and values for the pointer."""
    width, height = size
    letters = max(len(line.name) for line in lines)
    right, base = width - round(0.625 * _font(width) * letters) - 18, height - BOTTOM
    transform = math.log if axis.log else float
    flat = [transform(x) for line in lines for x, _ in line.points]
    flat += map(transform, axis.ticks)
    low, high = min(flat), max(flat)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    inset = 24 if axis.log else 0
    across, y = _scale(low, high, LEFT + inset, right - inset), _scale(*limits, base, TOP)

    def x(value: float) -> float:
        return across(transform(value))

    parts = [_x_axis(axis, x, (LEFT + right) / 2, height)]
    for tick in ticks(*limits):
        parts.append(_line([(LEFT, y(tick)), (right, y(tick))], "var(--rule)", 1))
        parts.append(_text(LEFT - 8, y(tick) + 4, y_words(tick), "end"))
    hover: dict[float, list[list[str]]] = {}
    for k, line in enumerate(lines):
        aside = 4 * (k - (len(lines) - 1) / 2) if line.dots else 0.0  # keeps whiskers apart
        parts.append(_draw(line, x, y, limits, aside))
        for place, value in line.points:
            hover.setdefault(place, []).append([line.stroke, line.name, value_words(value)])
    ends = [(x(line.points[-1][0]), y(line.points[-1][1].value)) for line in lines]
    names = spread([end for _, end in ends], 16, TOP, base)
    for line, end, place in zip(lines, ends, names, strict=True):
        if abs(place - end[1]) > 3:
            path = _path([(end[0] + 5, end[1]), (right + 11, place)])
            parts.append(
                f'<path d="{path}" fill="none" stroke="{line.stroke}" stroke-width="0.8" '
                'opacity="0.6"/>'
            )
        parts.append(_name(right + 14, place + 4, line.name, line.stroke))
    shown = [
        {"x": x(place), "title": f"{axis.words(place)} {axis.name}", "rows": rows}
        for place, rows in sorted(hover.items())
    ]
    return _svg(size, title, parts, shown)


def _x_axis(axis: Axis, x: Scale, middle: float, height: int) -> str:
    """Write the ticks and the name of the horizontal axis."""
    marks = [_text(x(t), height - BOTTOM + 17, axis.words(t), "middle") for t in axis.ticks]
    return "".join(marks) + _text(middle, height - 5, axis.name, "middle")


def _draw(line: Line, x: Scale, y: Scale, limits: tuple[float, float], aside: float) -> str:
    """Draw a line, moved aside, with its intervals and its seeds."""
    mean = [(x(at) + aside, y(value.value)) for at, value in line.points]
    ends = [
        (x(at) + aside, y(min(limits[1], value.high)), y(max(limits[0], value.low)))
        for at, value in line.points
        if value.bounded and value.low < value.high
    ]
    if line.dots:
        whiskers = [_line([(at, top), (at, bottom)], line.stroke, 1.5) for at, top, bottom in ends]
        found = f'<g class="whiskers" opacity="0.45">{"".join(whiskers)}</g>'
    else:
        area = [(at, top) for at, top, _ in ends] + [(at, bottom) for at, _, bottom in ends[::-1]]
        shade = f'd="{_path(area)}Z" fill="{line.stroke}" fill-opacity="0.1"'
        found = f'<path class="band" {shade}/>' if len(ends) > 1 else ""
    single = []
    for one in line.seeds:
        places = [(x(at) + aside, y(value)) for at, value in one]
        dots = [_dot(*place, line.stroke, 3) for place in places]
        single += dots if line.dots else [_line(places, line.stroke, 1)]
    found += f'<g class="seeds">{"".join(single)}</g>'
    found += f'<g class="mean">{_line(mean, line.stroke, 2.5, line.dash)}</g>'
    return found + "".join(_dot(*place, line.stroke) for place in mean if line.dots)


def epoch_chart(
    curves: Sequence[Curve], size: Size, limits: tuple[float, float], metric: str
) -> str:
    """Draw the validation score by epoch: mean and band over seeds of every arm."""
    longest = max((len(curve.mean) for curve in curves), default=1)
    shown = sorted({1, (1 + longest) // 2, longest})
    lines = [
        Line(
            arm_label(curve.series[0]),
            colour(curve.series[0]),
            list(enumerate(curve.mean, 1)),
            [list(enumerate(values[:longest], 1)) for values in curve.seeds.values()],
        )
        for curve in curves
    ]
    return line_chart(
        f"Validation {metric} by epoch, mean and 95 % interval over seeds",
        lines,
        Axis("epochs", shown, "{:.0f}".format),
        limits,
        size,
    )


def loss_chart(objective: str, points: Sequence[Mapping[str, Any]], size: Size) -> str:
    """Draw the loss of pretraining by tokens, in training and on held-out text."""
    lines = []
    for key, name, stroke in (
        ("train_loss", "training", "var(--soft)"),
        ("held_out_loss", "held out", "var(--accent)"),
    ):
        known = {p["tokens"]: p[key] for p in points if p.get(key) is not None}
        if known:
            exact = [(tokens, Interval(loss, loss, loss)) for tokens, loss in known.items()]
            lines.append(Line(name, stroke, exact))
    values = [value.value for line in lines for _, value in line.points]
    limits = min(values) - 0.05 * (max(values) - min(values)), max(values)
    shown = ticks(0, max(p["tokens"] for p in points), 3 if size[0] < NARROW else 5)
    return line_chart(
        f"Loss of {objective} pretraining by tokens",
        lines,
        Axis("million tokens", shown, lambda tokens: f"{tokens / 1e6:.3g}"),
        limits,
        size,
        y_words="{:g}".format,
        value_words=lambda loss: f"{loss.value:.3f}",
    )


def difference_chart(gaps: Sequence[tuple[str, Difference]], width: int, metric: str) -> str:
    """Draw named differences and intervals by budget; on a phone, names are above the lines."""
    narrow = width < NARROW
    groups = [list(group) for _, group in groupby(gaps, key=lambda one: one[1].labels)]
    step = 36 if narrow else 26
    height = 54 + round(step * (len(gaps) + 0.5 * (len(groups) - 1)))
    letters = max(len(words) for words, _ in gaps) + 6
    left, right = (6, width - 6) if narrow else (104, width - round(8.2 * letters))
    every = [gap.interval for _, gap in gaps]
    low, high = min(0.0, *(i.low for i in every)), max(0.0, *(i.high for i in every))
    margin = 0.06 * (high - low or 0.01)
    x, base = _scale(low - margin, high + margin, left, right), height - BOTTOM
    axis = Axis(
        f"points of test {metric}",
        ticks(low, high, 4 if narrow else 5),
        lambda value: signed(value).removesuffix(".0"),
    )
    parts = [_x_axis(axis, x, (left + right) / 2, height)]
    for tick in axis.ticks:
        stroke = "var(--rule)" if tick else "var(--ink)"
        parts.append(_line([(x(tick), TOP), (x(tick), base)], stroke, 1))
    y = TOP + 0.5 * step
    for group in groups:
        budget = labels_name(group[0][1].labels)
        if not narrow:
            parts.append(_text(left - 8, y + 4, budget, "end"))
        for words, gap in group:
            reference = find_arm(gap.second[0]).is_reference
            stroke = colour(gap.second[0] if reference else gap.first[0])
            plus = "+" if gap.interval.value > 0 else ""
            name, place, at = f"{plus}{signed(gap.interval.value)} {words}", (right + 10, y + 4), y
            if narrow:
                name, place, at = f"{name}, {budget}", (left, y - 4), y + 8
            parts.append(_name(*place, name, stroke, 700 if gap.significant else 400))
            parts.append(_line([(x(gap.interval.low), at), (x(gap.interval.high), at)], stroke))
            parts.append(_dot(x(gap.interval.value), at, stroke, 5))
            y += step
        y += 0.5 * step
    return _svg((width, height), axis.name, parts)
