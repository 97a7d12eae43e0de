"""The pictures of the report, each drawn from the numbers of the analysis."""

import math
from collections.abc import Callable, Sequence

from headstart.evaluation.metrics import Interval
from headstart.studies.analysis import Analysis, Curve, Gap
from headstart.studies.arms import arm_label, arms
from headstart.studies.comparison import Series
from headstart.studies.report.rows import Calibration
from headstart.studies.report.svg import (
    Frame,
    Picture,
    Scale,
    band,
    colour,
    dot,
    line,
    rule,
    spread,
    text,
    ticks,
    x_axis,
    y_axis,
)
from headstart.studies.results import PretrainingCurve, Study
from headstart.studies.words import exact, labelled, percent, series_name, signed

GROUP_ROOM = 0.5  # between two groups of lines, in lines


def dash(series: Series, study: Study) -> str:
    """The first objective is drawn solid, the second dashed: colour belongs to the arm."""
    objectives = [part.objective for part in study.pretraining]
    return "" if not objectives or series[1] in ("", objectives[0]) else "6 4"


def gap_chart(groups: Sequence[Sequence[tuple[str, Gap]]], frame: Frame) -> Picture:
    """Differences in accuracy, a group of named ones for each budget, on one scale.

    A line that crosses zero may be noise.
    """
    picture = Picture(frame, "Differences in accuracy by number of labels, with 95 % intervals")
    ends = [0.0] + [v for group in groups for _, gap in group for v in _ends(gap.difference)]
    low, high = min(ends), max(ends)
    margin = 0.06 * (high - low or 0.01)
    x = frame.x(low - margin, high + margin)
    base = frame.height - frame.bottom
    shown = ticks(low, high, 3 if frame.narrow else 5)
    for tick in shown:
        picture.add(rule(x(tick), frame.top, x(tick), base, "ink" if tick == 0 else "rule"))
    name = "points of accuracy" if frame.narrow else "points of test accuracy"
    picture.add(x_axis(frame, x, shown, lambda v: signed(v).removesuffix(".0"), name))
    lines = sum(map(len, groups)) + GROUP_ROOM * (len(groups) - 1)
    step = (base - frame.top) / max(1, lines)
    y = frame.top + 0.5 * step
    for group in groups:
        picture.add(text(frame.left - 8, y + 4, labelled(group[0][1].labels), anchor="end"))
        for what, gap in group:
            beside = arms().get(gap.second[0])
            fill = colour(gap.second[0] if beside and beside.is_reference else gap.first[0])
            picture.add(line([(x(gap.difference.low), y), (x(gap.difference.high), y)], fill))
            picture.add(dot(x(gap.difference.value), y, fill, 5))
            plus = "+" if gap.difference.value > 0 else ""
            words = f"{plus}{signed(gap.difference.value)} {what}"
            edge = frame.width - frame.right + 10
            picture.add(text(edge, y + 4, words, fill=ink_of(fill), weight=600))
            y += step
        y += GROUP_ROOM * step
    return picture


def _ends(interval: Interval) -> list[float]:
    return [v for v in (interval.value, interval.low, interval.high) if math.isfinite(v)]


def epoch_chart(
    curves: Sequence[Curve],
    frame: Frame,
    limits: tuple[float, float],
    contenders: Sequence[Series],
) -> Picture:
    """Validation accuracy by epoch, of one objective: every arm's mean and band over seeds."""
    frame = frame.with_room_for([arm_label(curve.series[0]) for curve in curves])
    picture = Picture(frame, "Validation accuracy by epoch, mean and 95 % band over seeds")
    epochs = max((len(line) for c in curves for line in c.seeds.values()), default=1)
    x, y = frame.x(1, max(2, epochs)), frame.y(*limits)
    picture.add(y_axis(frame, y, ticks(*limits), percent))
    shown = sorted({1, *(int(t) for t in ticks(1, epochs, 4) if t >= 1), epochs})
    shown = [t for t in shown if t in (1, epochs) or epochs - t > epochs / 8]
    picture.add(x_axis(frame, x, shown, lambda v: f"{v:.0f}", "epoch"))
    hover: list[dict[str, object]] = [
        {"x": x(e + 1), "title": f"epoch {e + 1}", "rows": []} for e in range(epochs)
    ]
    ends = []
    for curve in curves:
        stroke, mean = colour(curve.series[0]), curve.mean
        name = arm_label(curve.series[0])
        reaches = [(e + 1, m) for e, m in enumerate(mean) if m.bounded]
        if len(reaches) > 1:
            upper = [(x(e), y(min(limits[1], m.high))) for e, m in reaches]
            lower = [(x(e), y(max(limits[0], m.low))) for e, m in reaches]
            main = curve.series[0] in {arm for arm, _ in contenders}
            picture.add(band(upper, lower, stroke, 0.15 if main else 0.07))
        seeds = "".join(
            line([(x(e + 1), y(v)) for e, v in enumerate(values)], stroke, width=1)
            for values in curve.seeds.values()
        )
        picture.add(f'<g class="seeds">{seeds}</g>')
        points = [(x(e + 1), y(m.value)) for e, m in enumerate(mean)]
        picture.add(f'<g class="mean">{line(points, stroke, width=2.5)}</g>')
        ends.append((points[-1], name, stroke))
        for e, m in enumerate(mean):
            hover[e]["rows"].append([stroke, name, exact(m)])  # type: ignore[attr-defined]
    label_ends(picture, ends)
    picture.hover = hover
    return picture


def label_chart(analysis: Analysis, study: Study, frame: Frame) -> Picture:
    """Test accuracy by number of labels, on a log scale, with its interval over seeds."""
    every = list(dict.fromkeys(score.series for score in analysis.scores))
    frame = frame.with_room_for([series_name(series, study) for series in every])
    picture = Picture(frame, "Test accuracy by number of labels, mean and 95 % interval")
    values = [v for s in analysis.scores for v in s.seeds.values()]
    low, high = limits_of(values, [s.accuracy for s in analysis.scores])
    x = _log_scale(frame, study.budgets)
    middle, y = x, frame.y(low, high)
    picture.add(y_axis(frame, y, ticks(low, high), percent))
    picture.add(x_axis(frame, x, study.budgets, lambda v: f"{v:,.0f}", "labelled rows (log scale)"))
    hover: dict[int, list[list[str]]] = {labels: [] for labels in study.budgets}
    ends = []
    for k, series in enumerate(every):
        stroke, name = colour(series[0]), series_name(series, study)
        x = _log_scale(frame, study.budgets, aside=4 * (k - (len(every) - 1) / 2))
        scores = sorted((s for s in analysis.scores if s.series == series), key=lambda s: s.labels)
        points = [(x(s.labels), y(s.accuracy.value)) for s in scores]
        whiskers = [
            line(
                [
                    (x(s.labels), y(max(low, s.accuracy.low))),
                    (x(s.labels), y(min(high, s.accuracy.high))),
                ],
                stroke,
                width=1.5,
            )
            for s in scores
            if s.accuracy.bounded
        ]
        picture.add(f'<g class="whiskers" opacity="0.45">{"".join(whiskers)}</g>')
        seeds = [dot(x(s.labels), y(v), stroke, 3) for s in scores for v in s.seeds.values()]
        picture.add(f'<g class="seeds">{"".join(seeds)}</g>')
        picture.add(line(points, stroke, width=2.5, dash=dash(series, study)))
        picture.add(*(dot(px, py, stroke) for px, py in points))
        ends.append((points[-1], name, stroke))
        for s in scores:
            hover.setdefault(s.labels, []).append([stroke, name, exact(s.accuracy)])
    label_ends(picture, ends)
    picture.hover = [
        {"x": middle(k), "title": f"{k:,} labels", "rows": rows} for k, rows in hover.items()
    ]
    return picture


def _log_scale(frame: Frame, budgets: Sequence[int], aside: float = 0) -> Scale:
    """Labels on a log scale; `aside` keeps the whiskers of different arms apart."""
    inner = Frame(frame.width, frame.height, frame.left + 24, frame.right + 24)
    low, high = math.log(budgets[0]), math.log(budgets[-1])
    if low == high:
        low, high = low - 1, high + 1
    place = inner.x(low, high)
    return lambda labels: place(math.log(labels)) + aside


def loss_chart(part: PretrainingCurve, frame: Frame) -> Picture:
    """Pretraining's own curve: loss in training and on held-out text, by tokens read."""
    picture = Picture(frame, f"Loss of {part.objective} pretraining by tokens read")
    kinds: list[tuple[str, str, str]] = [
        ("train_loss", "training", "var(--soft)"),
        ("held_out_loss", "held out", "var(--accent)"),
    ]
    lines = {
        key: [(p["tokens"], p[key]) for p in part.points if p.get(key) is not None]
        for key, _, _ in kinds
    }
    values = [float(v) for points in lines.values() for _, v in points if v is not None]
    tokens = max(float(p["tokens"] or 0) for p in part.points)
    low, high = min(values), max(values)
    x, y = frame.x(0, tokens), frame.y(low - 0.05 * (high - low), high)
    picture.add(y_axis(frame, y, ticks(low, high), lambda v: f"{v:g}"))
    shown = ticks(0, tokens, 3 if frame.narrow else 5)
    picture.add(x_axis(frame, x, shown, millions, "tokens read; loss in nats per token"))
    ends = []
    for key, name, stroke in kinds:
        points = [(x(float(t or 0)), y(float(v or 0))) for t, v in lines[key]]
        if points:
            picture.add(line(points, stroke, width=2.5 if key == "held_out_loss" else 1.5))
            ends.append((points[-1], name, stroke))
    label_ends(picture, ends)
    for p in part.points:
        said = [
            [stroke, name, f"{p[key]:.3f}"] for key, name, stroke in kinds if p.get(key) is not None
        ]
        for key, name in (("perplexity", "perplexity"), ("bits_per_byte", "bits per byte")):
            if p.get(key) is not None:
                said.append(["transparent", name, f"{p[key]:.2f}"])
        title = f"step {p['step']:,.0f}, {millions(float(p['tokens'] or 0))} tokens"
        picture.hover.append({"x": x(float(p["tokens"] or 0)), "title": title, "rows": said})
    return picture


def calibration_chart(found: Sequence[Calibration], study: Study, frame: Frame) -> Picture:
    """Share right by stated confidence; on the diagonal both agree."""
    frame = frame.with_room_for([series_name(one.series, study) for one in found])
    picture = Picture(frame, "Calibration: share right by stated confidence")
    start = math.floor(10 * min(c for f in found for c, _, _ in f.bins)) / 10
    bottom = min(start, math.floor(10 * min(r for f in found for _, r, _ in f.bins)) / 10)
    x, y = frame.x(start, 1), frame.y(bottom, 1)
    picture.add(y_axis(frame, y, ticks(bottom, 1), percent))
    picture.add(x_axis(frame, x, ticks(start, 1), percent, "how sure the classifier says it is"))
    picture.add(line([(x(start), y(start)), (x(1), y(1))], "var(--soft)", width=1, dash="2 4"))
    ends = []
    for one in found:
        stroke, name = colour(one.series[0]), series_name(one.series, study)
        points = [(x(c), y(r)) for c, r, _ in one.bins]
        picture.add(
            line(points, stroke, dash=dash(one.series, study)), *(dot(*p, stroke) for p in points)
        )
        ends.append((points[-1], name, stroke))
        for c, r, count in one.bins:
            said = [[stroke, name, f"right {100 * r:.0f} % of {count:,}"]]
            picture.hover.append({"x": x(c), "title": f"sure to {100 * c:.0f} %", "rows": said})
    label_ends(picture, ends)
    return picture


def limits_of(values: Sequence[float], intervals: Sequence[Interval]) -> tuple[float, float]:
    """A range for accuracies and their intervals.

    Two or three seeds can have intervals so wide that the curves would be flat in them, so these
    widen the range by no more than half of what the values need.
    """
    low, high = min(values), max(values)
    most = max(0.02, (high - low) / 2)
    ends = [v for interval in intervals for v in _ends(interval)]
    low, high = max(low - most, min([low, *ends])), min(high + most, max([high, *ends]))
    return max(0.0, low - 0.01), min(1.0, high + 0.01)


def label_ends(picture: Picture, ends: Sequence[tuple[tuple[float, float], str, str]]) -> None:
    """Names beside the ends of the lines, moved apart where they would overlap."""
    frame = picture.frame
    places = spread([y for (_, y), _, _ in ends], 16, frame.top, frame.height - frame.bottom)
    edge = frame.width - frame.right
    for ((x, y), name, stroke), place in zip(ends, places, strict=True):
        start = edge + 14
        if abs(place - y) > 3:
            picture.add(
                f'<path d="M{x + 5:.1f} {y:.1f}L{start - 3:.1f} {place:.1f}" fill="none" '
                f'stroke="{stroke}" stroke-width="0.8" opacity="0.6"/>'
            )
        picture.add(text(start, place + 4, name, fill=ink_of(stroke), weight=600))


def ink_of(stroke: str) -> str:
    """The shade of a colour that letters are written in."""
    return stroke.replace(")", "-text)") if stroke.startswith("var(--") else stroke


def millions(tokens: float) -> str:
    """A number of tokens, in millions where that is shorter."""
    return f"{tokens / 1e6:.3g} M" if tokens >= 1e5 else f"{tokens:,.0f}"


Draw = Callable[[Frame], Picture]
