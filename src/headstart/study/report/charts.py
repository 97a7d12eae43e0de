"""All figures of the report and the web app, as SVG.

Colours are CSS variables of the page, so that light and dark are one picture; a figure that is
saved as a file gets the light colours instead. Charts of lines are one function, `line_chart`.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import accumulate
from typing import Any

from headstart.arms import ARMS, arm_label, find_arm
from headstart.evaluation.metrics import Interval
from headstart.study.analysis import Curve, Difference
from headstart.study.verdict import labels_name, percent, signed

Place = tuple[float, float]
Scale = Callable[[float], float]
Format = Callable[[float], str]
LIGHT = {"ink": "#1a1a1a", "soft": "#5c5c5c", "rule": "#dedede", "paper": "#ffffff"}
LIGHT["accent"] = "#0072b2"


@dataclass(frozen=True)
class Frame:
    """The size of a figure and the margins around its plot."""

    width: int
    height: int
    left: int = 52
    right: int = 120
    top: int = 14
    bottom: int = 40

    @property
    def narrow(self) -> bool:
        return self.width < 500

    def x(self, low: float, high: float, margin: int = 0) -> Scale:
        """Return the scale from values to pixels across."""
        left, right = self.left + margin, self.width - self.right - margin
        return lambda value: left + (value - low) / ((high - low) or 1) * (right - left)

    def y(self, low: float, high: float) -> Scale:
        """Return the scale from values to pixels down."""
        bottom = self.height - self.bottom
        return lambda value: bottom - (value - low) / ((high - low) or 1) * (bottom - self.top)

    def with_room_for(self, names: Sequence[str]) -> "Frame":
        """Return the frame with a right margin for the longest name."""
        longest = max(map(len, names), default=0)
        return replace(self, right=round(longest * (7.5 if self.narrow else 8.1)) + 18)


WIDE = Frame(780, 380)
HALF = Frame(376, 290, left=50)
PHONE = Frame(350, 330, left=50, right=98)


@dataclass
class Picture:
    """An SVG: its parts, and the values to show under the pointer at places along x."""

    frame: Frame
    title: str
    parts: list[str] = field(default_factory=list)
    hover: list[dict[str, Any]] = field(default_factory=list)

    def add(self, *parts: str) -> None:
        self.parts += parts

    def svg(self, *, standalone: bool = False) -> str:
        """Write the picture; a standalone one has colours instead of CSS variables."""
        w, h, size = self.frame.width, self.frame.height, 12 if self.frame.narrow else 13
        hover = "" if standalone else f' data-hover="{escape(json.dumps(self.hover))}"'
        paper = f'<rect width="{w}" height="{h}" fill="var(--paper)"/>' if standalone else ""
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" '
            f'height="{h}" role="img" aria-label="{escape(self.title)}" font-size="{size}" '
            f'font-family="system-ui, Roboto, Helvetica, Arial, sans-serif"{hover}>'
            f"{paper}{''.join(self.parts)}</svg>"
        )
        if standalone:
            text = re.sub(r'<g class="seeds">.*?</g>', "", text)
            known = LIGHT | {name: colours.light for name, colours in COLOURS.items()}
            text = re.sub(r"var\(--([a-z0-9-]+?)(-text)?\)", lambda found: known[found[1]], text)
        return text


def variable(arm: str) -> str:
    """Return the name of the CSS variable with an arm's colour; `hf:` arms share one."""
    return "arm-" + re.sub(r"[^a-z0-9]+", "-", arm.partition(":")[0].lower())


COLOURS = {variable(name): find_arm(name).colours for name in (*ARMS, "hf:any")}


def colour(arm: str) -> str:
    """Return the colour of an arm, the same in every figure."""
    return f"var(--{variable(arm)})"


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


def _x_axis(frame: Frame, scale: Scale, places: Sequence[float], words: Format, name: str) -> str:
    base = frame.height - frame.bottom
    marks = "".join(_text(scale(t), base + 17, words(t), "middle") for t in places)
    middle = (frame.left + frame.width - frame.right) / 2
    return marks + _text(middle, frame.height - 5, name, "middle")


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
    """Choose the range of an axis of scores.

    Wide intervals extend it by no more than half of what the values need, so that curves do not
    become flat.
    """
    low, high = min(values), max(values)
    most = max(0.02, (high - low) / 2)
    ends = [v for one in intervals for v in (one.low, one.high) if math.isfinite(v)]
    low, high = max(low - most, min([low, *ends])), min(high + most, max([high, *ends]))
    return max(0.0, low - 0.01), min(1.0, high + 0.01)


def whole_percent(share: float) -> str:
    """Write a share in whole percent."""
    return f"{100 * share:.0f} %"


def millions(tokens: float) -> str:
    """Write a number of tokens, in millions where that is shorter."""
    return f"{tokens / 1e6:.3g} M" if tokens >= 1e5 else f"{tokens:,.0f}"


# Charts.


@dataclass(frozen=True)
class Line:
    """One line of a chart: intervals by x, drawn as a band or whiskers, and lines of seeds."""

    name: str
    stroke: str
    points: Sequence[tuple[float, Interval]]
    seeds: Sequence[Sequence[Place]] = ()
    band: float = 0.0  # opacity; 0: whiskers where intervals are bounded
    dots: bool = True
    width: float = 2.5
    dash: str = ""
    notes: Mapping[float, str] = field(default_factory=dict)  # by x, for the pointer


@dataclass(frozen=True)
class Axis:
    """The horizontal axis: its name, places of ticks, how they are written, and titles of hover."""

    name: str
    ticks: Sequence[float]
    words: Format
    title: Format
    log: bool = False


def line_chart(
    title: str,
    lines: Sequence[Line],
    axis: Axis,
    limits: tuple[float, float],
    frame: Frame,
    *,
    y_words: Format = whole_percent,
    diagonal: bool = False,
) -> Picture:
    """Draw lines with their intervals, their names at the right end, and values for the pointer.

    Parameters
    ----------
    limits : the range of the vertical axis.
    diagonal : whether to draw the line on which both axes agree.
    """
    frame = frame.with_room_for([line.name for line in lines])
    picture = Picture(frame, title)
    flat = [math.log(x) if axis.log else x for line in lines for x, _ in line.points]
    flat += [] if axis.log else list(axis.ticks)
    low, high = min(flat), max(flat)
    low, high = (low - 1, high + 1) if axis.log and low == high else (low, high)
    across = frame.x(low, high, 24 if axis.log else 0)
    y = frame.y(*limits)
    for tick in ticks(*limits):
        grid: list[Place] = [(frame.left, y(tick)), (frame.width - frame.right, y(tick))]
        picture.add(_line(grid, "var(--rule)", 1))
        picture.add(_text(frame.left - 8, y(tick) + 4, y_words(tick), "end"))
    place: Scale = (lambda x: across(math.log(x))) if axis.log else across
    picture.add(_x_axis(frame, place, axis.ticks, axis.words, axis.name))
    if diagonal:
        start = max(low, limits[0])
        ends = [(across(start), y(start)), (across(high), y(high))]
        picture.add(_line(ends, "var(--soft)", 1, "2 4"))
    hover: dict[float, list[list[str]]] = {}
    for k, line in enumerate(lines):
        aside = 4 * (k - (len(lines) - 1) / 2) if axis.log else 0.0  # keeps whiskers apart
        _add_line(picture, line, place, y, limits, aside)
        for x, value in line.points:
            note = line.notes.get(x) or percent(value)
            hover.setdefault(x, []).append([line.stroke, line.name, note])
    _label_ends(picture, lines, place, y)
    picture.hover = [
        {"x": place(x), "title": axis.title(x), "rows": rows} for x, rows in sorted(hover.items())
    ]
    return picture


def _add_line(
    picture: Picture, line: Line, x: Scale, y: Scale, limits: tuple[float, float], aside: float
) -> None:
    ends = [
        (x(at) + aside, y(min(limits[1], value.high)), y(max(limits[0], value.low)))
        for at, value in line.points
        if value.bounded and value.low < value.high
    ]
    if line.band and len(ends) > 1:
        area = [(at, top) for at, top, _ in ends] + [(at, bottom) for at, _, bottom in ends[::-1]]
        shade = f'fill="{line.stroke}" fill-opacity="{line.band}"'
        picture.add(f'<path class="band" d="{_path(area)}Z" {shade}/>')
    elif not line.band:
        marks = [_line([(at, top), (at, bottom)], line.stroke, 1.5) for at, top, bottom in ends]
        picture.add(f'<g class="whiskers" opacity="0.45">{"".join(marks)}</g>')
    seeds = [[(x(at) + aside, y(value)) for at, value in one] for one in line.seeds]
    if line.dots:
        single = [_dot(*place, line.stroke, 3) for one in seeds for place in one]
    else:
        single = [_line(one, line.stroke, 1) for one in seeds]
    picture.add(f'<g class="seeds">{"".join(single)}</g>')
    places = [(x(at) + aside, y(value.value)) for at, value in line.points]
    mean = _line(places, line.stroke, line.width, line.dash)
    picture.add(f'<g class="mean">{mean}</g>')
    if line.dots:
        picture.add(*(_dot(*place, line.stroke) for place in places))


def _label_ends(picture: Picture, lines: Sequence[Line], x: Scale, y: Scale) -> None:
    """Write names next to the ends of the lines, moved apart where they would overlap."""
    frame = picture.frame
    ends = [(x(line.points[-1][0]), y(line.points[-1][1].value)) for line in lines]
    places = spread([end for _, end in ends], 16, frame.top, frame.height - frame.bottom)
    start = frame.width - frame.right + 14
    for line, end, place in zip(lines, ends, places, strict=True):
        if abs(place - end[1]) > 3:
            path = _path([(end[0] + 5, end[1]), (start - 3, place)])
            style = f'stroke="{line.stroke}" stroke-width="0.8" opacity="0.6"'
            picture.add(f'<path d="{path}" fill="none" {style}/>')
        picture.add(
            _text(start, place + 4, line.name, fill=line.stroke.replace(")", "-text)"), weight=600)
        )


def epoch_chart(
    curves: Sequence[Curve], frame: Frame, limits: tuple[float, float], metric: str
) -> Picture:
    """Draw the validation score by epoch: mean and band over seeds of every arm."""
    longest = max((len(curve.mean) for curve in curves), default=1)
    shown = sorted({1, *(int(t) for t in ticks(1, longest, 4) if t >= 1), longest})
    shown = [t for t in shown if t in (1, longest) or longest - t > longest / 8]
    lines = [
        Line(
            arm_label(curve.series[0]),
            colour(curve.series[0]),
            list(enumerate(curve.mean, 1)),
            [list(enumerate(values[:longest], 1)) for values in curve.seeds.values()],
            band=0.1,
            dots=False,
        )
        for curve in curves
    ]
    axis = Axis("epoch", shown, lambda v: f"{v:.0f}", lambda v: f"epoch {v:.0f}")
    title = f"Validation {metric} by epoch, mean and 95 % interval over seeds"
    return line_chart(title, lines, axis, limits, frame)


def loss_chart(objective: str, points: Sequence[Mapping[str, Any]], frame: Frame) -> Picture:
    """Draw the loss of pretraining by tokens, in training and on held-out text."""
    lines = []
    for key, name, stroke, width in (
        ("train_loss", "training", "var(--soft)", 1.5),
        ("held_out_loss", "held out", "var(--accent)", 2.5),
    ):
        known = {p["tokens"]: p[key] for p in points if p.get(key) is not None}
        notes = {tokens: f"{loss:.3f}" for tokens, loss in known.items()}
        if known:
            exact = [(tokens, Interval(loss, loss, loss)) for tokens, loss in known.items()]
            lines.append(Line(name, stroke, exact, dots=False, width=width, notes=notes))
    values = [value.value for line in lines for _, value in line.points]
    room = 0.05 * (max(values) - min(values))
    shown = ticks(0, max(p["tokens"] for p in points), 3 if frame.narrow else 5)
    axis = Axis(
        "tokens; loss in nats per token", shown, millions, lambda v: f"{millions(v)} tokens"
    )
    title, limits = f"Loss of {objective} pretraining by tokens", (min(values) - room, max(values))
    return line_chart(title, lines, axis, limits, frame, y_words=lambda v: f"{v:g}")


def difference_chart(
    groups: Sequence[Sequence[tuple[str, Difference]]], frame: Frame, metric: str
) -> Picture:
    """Draw named differences with their intervals, a group for each budget, on one scale.

    Names are at the right; on a phone, above the lines.
    """
    picture = Picture(frame, f"Differences in test {metric} by number of labels, with intervals")
    every = [one.interval for group in groups for _, one in group]
    low, high = min(0.0, *(i.low for i in every)), max(0.0, *(i.high for i in every))
    margin = 0.06 * (high - low or 0.01)
    x, base = frame.x(low - margin, high + margin), frame.height - frame.bottom
    shown = ticks(low, high, 3 if frame.narrow else 5)
    for tick in shown:
        stroke = "var(--rule)" if tick else "var(--ink)"
        picture.add(_line([(x(tick), frame.top), (x(tick), base)], stroke, 1))
    name = f"points of test {metric}"
    picture.add(_x_axis(frame, x, shown, lambda v: signed(v).removesuffix(".0"), name))
    step = (base - frame.top) / (sum(map(len, groups)) + 0.5 * (len(groups) - 1))
    y = frame.top + 0.5 * step
    for group in groups:
        budget = labels_name(group[0][1].labels)
        if not frame.narrow:
            picture.add(_text(frame.left - 8, y + 4, budget, "end"))
        for name, one in group:
            reference = find_arm(one.second[0]).is_reference
            stroke = colour(one.second[0] if reference else one.first[0])
            plus = "+" if one.interval.value > 0 else ""
            label = f"{plus}{signed(one.interval.value)} {name}"
            place = (frame.width - frame.right + 10, y + 4)
            if frame.narrow:
                label, place = f"{label}, {budget}", (frame.left, y - 4)
            weight, at = 700 if one.significant else 400, y + 8 if frame.narrow else y
            picture.add(_text(*place, label, fill=stroke.replace(")", "-text)"), weight=weight))
            picture.add(_line([(x(one.interval.low), at), (x(one.interval.high), at)], stroke))
            picture.add(_dot(x(one.interval.value), at, stroke, 5))
            y += step
        y += 0.5 * step
    return picture
