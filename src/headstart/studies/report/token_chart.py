"""The picture of accuracy by tokens of pretraining, and the words under it."""

from headstart.studies.report.charts import label_ends, limits_of, millions
from headstart.studies.report.report_data import ReportData, paragraph
from headstart.studies.report.svg import (
    Frame,
    Picture,
    dot,
    line,
    ticks,
    x_axis,
    y_axis,
)
from headstart.studies.token_series import TokenSeries
from headstart.studies.words import labelled, percent, signed, within

SHADES = ("6 4", "2 4", "")  # the most labels are drawn solid


def token_chart(series: TokenSeries, frame: Frame) -> Picture:
    """Test accuracy by tokens read, a line for each budget; no tokens is counting alone."""
    budgets = sorted({point.labels for point in series.points})
    frame = frame.with_room_for([labelled(labels) for labels in budgets])
    picture = Picture(frame, "Test accuracy by tokens of pretraining, with 95 % intervals")
    intervals = [point.accuracy for point in series.points]
    low, high = limits_of([one.value for one in intervals], intervals)
    most = max(point.tokens for point in series.points)
    x, y = frame.x(0, most), frame.y(low, high)
    picture.add(y_axis(frame, y, ticks(low, high), percent))
    shown = ticks(0, most, 3 if frame.narrow else 5)
    picture.add(x_axis(frame, x, shown, millions, "tokens of pretraining"))
    ends = []
    for place, labels in enumerate(budgets):
        points = sorted((p for p in series.points if p.labels == labels), key=lambda p: p.tokens)
        for point in points:
            bounds = (max(low, point.accuracy.low), min(high, point.accuracy.high))
            whisker = [(x(point.tokens), y(bound)) for bound in bounds]
            picture.add(f'<g class="whiskers" opacity="0.45">{line(whisker, "var(--accent)")}</g>')
        places = [(x(point.tokens), y(point.accuracy.value)) for point in points]
        dash = SHADES[max(place - len(budgets), -len(SHADES))]
        picture.add(line(places, "var(--accent)", width=2.5, dash=dash))
        picture.add(*(dot(*at, "var(--accent)") for at in places))
        ends.append((places[-1], labelled(labels), "var(--accent)"))
    label_ends(picture, ends)
    return picture


def token_figure(data: ReportData, series: TokenSeries) -> str:
    """The picture, and what each larger amount added."""
    said = [
        f"from {millions(before)} to {millions(after)} {signed(gain.value)} ({within(gain)})"
        for before, after, gain in series.gains
        if gain.bounded
    ]
    words = f"Points added, mean over all budgets: {'; '.join(said)}." if said else "One seed."
    figure = data.figure(
        f"tokens-{series.objective}",
        "Is it worth pretraining longer? Test accuracy by tokens",
        lambda frame: token_chart(series, frame),
        Frame(780, 320),
    )
    return figure + paragraph(words, "note")
