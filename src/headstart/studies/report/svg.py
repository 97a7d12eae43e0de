"""Scales, axes and marks: the few pieces of SVG that every picture is drawn with."""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from html import escape

from headstart.studies.arms import arms

Point = tuple[float, float]
Scale = Callable[[float], float]

# Colours of the page are CSS variables, so that light and dark are one picture; a file for a paper
# gets these instead.
LIGHT = {
    "ink": "#1a1a1a",
    "soft": "#5c5c5c",
    "rule": "#dedede",
    "paper": "#ffffff",
    "accent": "#0072b2",
}


@dataclass(frozen=True)
class Frame:
    """The size of a picture and the room around its plot."""

    width: int
    height: int
    left: int = 52
    right: int = 120
    top: int = 14
    bottom: int = 40

    def x(self, low: float, high: float) -> Scale:
        span = (high - low) or 1
        return lambda value: self.left + (value - low) / span * self._plot_width

    def y(self, low: float, high: float) -> Scale:
        span = (high - low) or 1
        room = self.height - self.top - self.bottom
        return lambda value: self.height - self.bottom - (value - low) / span * room

    def with_room_for(self, names: Sequence[str]) -> "Frame":
        """The same frame with room on the right for the longest of `names`."""
        longest = max((len(name) for name in names), default=0)
        return replace(self, right=round(longest * (7.5 if self.narrow else 8.1)) + 18)

    @property
    def _plot_width(self) -> int:
        return self.width - self.left - self.right

    @property
    def narrow(self) -> bool:
        return self.width < 500


@dataclass
class Picture:
    """An SVG in the making; `hover` lists what to say at each place along x."""

    frame: Frame
    title: str
    parts: list[str] = field(default_factory=list)
    hover: list[dict[str, object]] = field(default_factory=list)

    def add(self, *parts: str) -> None:
        self.parts += parts

    def svg(self, *, standalone: bool = False) -> str:
        """The picture; standalone, with real colours instead of the page's variables."""
        w, h, size = self.frame.width, self.frame.height, 12 if self.frame.narrow else 13
        data = "" if standalone else f' data-hover="{escape(json.dumps(self.hover), quote=True)}"'
        paper = f'<rect width="{w}" height="{h}" fill="var(--paper)"/>' if standalone else ""
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" '
            f'height="{h}" role="img" aria-label="{escape(self.title, quote=True)}" '
            f'font-family="system-ui, Roboto, Helvetica, Arial, sans-serif" '
            f'font-size="{size}"{data}>'
            f"{paper}{''.join(self.parts)}</svg>"
        )
        if standalone:
            text = re.sub(r'<g class="seeds">.*?</g>', "", text)
            known = LIGHT | {variable(name): arm.colours.light for name, arm in arms().items()}
            text = re.sub(r"var\(--([a-z0-9-]+?)(-text)?\)", lambda found: known[found[1]], text)
        return text


def colour(arm: str) -> str:
    """The colour of an arm, the same in every picture; ink if the arm is no longer installed."""
    return f"var(--{variable(arm)})" if arm in arms() else "var(--ink)"


def variable(arm: str) -> str:
    """The name of the CSS variable that holds an arm's colour."""
    return "arm-" + re.sub(r"[^a-z0-9]+", "-", arm.lower())


def arm_style() -> str:
    """The colours of all arms as CSS, for light, dark and paper."""
    light, dark = (
        "".join(
            f"--{variable(name)}:{plain};--{variable(name)}-text:{text};"
            for name, plain, text in colours
        )
        for colours in (
            [(name, a.colours.light, a.colours.light_text) for name, a in arms().items()],
            [(name, a.colours.dark, a.colours.dark_text) for name, a in arms().items()],
        )
    )
    return (
        f":root{{{light}}}\n"
        f'@media (prefers-color-scheme: dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f':root[data-theme="dark"]{{{dark}}}\n'
        f"@media print{{:root,:root[data-theme]{{{light}}}}}\n"
    )


def text(
    x: float, y: float, words: str, *, anchor: str = "start", fill: str = "soft", weight: int = 400
) -> str:
    """Words at a place; `fill` is the name of a colour of the page, or a CSS variable."""
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    ink = fill if fill.startswith("var(") else f"var(--{fill})"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{ink}"{bold}>'
        f"{escape(words)}</text>"
    )


def line(points: Sequence[Point], stroke: str, *, width: float = 2, dash: str = "") -> str:
    """A line through the points."""
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<path class="line" d="{path}" fill="none" stroke="{stroke}" stroke-width="{width}" '
        f'stroke-linejoin="round" stroke-linecap="round"{dashed}/>'
    )


def band(upper: Sequence[Point], lower: Sequence[Point], fill: str, opacity: float) -> str:
    """The area between two lines."""
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in [*upper, *reversed(lower)])
    return f'<path class="band" d="{path}Z" fill="{fill}" fill-opacity="{opacity}"/>'


def dot(x: float, y: float, fill: str, radius: float = 4) -> str:
    """A point with a thin edge in the colour of the paper."""
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" '
        'stroke="var(--paper)" stroke-width="1.5"/>'
    )


def rule(x1: float, y1: float, x2: float, y2: float, stroke: str = "rule") -> str:
    """A thin straight line, such as one of a grid."""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--{stroke})"/>'
    )


def y_axis(frame: Frame, scale: Scale, ticks: Sequence[float], say: Callable[[float], str]) -> str:
    """Few light lines across, each with its number."""
    right = frame.width - frame.right
    return "".join(
        rule(frame.left, scale(t), right, scale(t))
        + text(frame.left - 8, scale(t) + 4, say(t), anchor="end")
        for t in ticks
    )


def x_axis(
    frame: Frame, scale: Scale, ticks: Sequence[float], say: Callable[[float], str], name: str
) -> str:
    """Numbers below the plot, and what they count."""
    base = frame.height - frame.bottom
    marks = "".join(text(scale(t), base + 17, say(t), anchor="middle") for t in ticks)
    middle = (frame.left + frame.width - frame.right) / 2
    return marks + text(middle, frame.height - 5, name, anchor="middle")


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers between `low` and `high`, about `wanted` of them."""
    if high <= low:
        return [low]
    raw = (high - low) / wanted
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart until none overlaps, as little as need be, and keep them inside."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [places[i] for i in order]
    for k in range(1, len(moved)):
        moved[k] = max(moved[k], moved[k - 1] + gap)
    if moved and moved[-1] > high:
        moved[-1] = high
        for k in range(len(moved) - 2, -1, -1):
            moved[k] = min(moved[k], moved[k + 1] - gap)
    found = [0.0] * len(places)
    for k, i in enumerate(order):
        found[i] = max(moved[k], low) if k == 0 else moved[k]
    return found
