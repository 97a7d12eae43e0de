"""The report's numbers as CSV, one file a table, for a paper or a spreadsheet."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from headstart.evaluation.interval import Interval, wilson_interval
from headstart.files import write_text
from headstart.studies.report.evidence import calibrations
from headstart.studies.report.report_data import ReportData
from headstart.studies.report.rows import confusion, of_series
from headstart.studies.results import Predictions


def write_tables(folder: Path, data: ReportData) -> list[Path]:
    """Write every table into `folder`; returns the files."""
    analysis = data.analysis
    return [
        _write(
            folder / "accuracy.csv",
            ("arm", "objective", "labels", "mean", "low", "high", "macro_f1", "seeds"),
            [
                (*s.series, s.labels, *_ends(s.accuracy), s.macro_f1, len(s.seeds))
                for s in analysis.scores
            ],
        ),
        _write(
            folder / "single_runs.csv",
            ("arm", "objective", "labels", "seed", "accuracy", "wilson_low", "wilson_high"),
            [(*_run(p), *_ends(wilson_interval(_right(p), len(p.gold)))) for p in data.predictions],
        ),
        _write(
            folder / "differences.csv",
            ("arm", "objective", "minus", "labels", "difference", "low", "high"),
            [(*g.first, g.second[0], g.labels, *_ends(g.difference)) for g in analysis.gaps],
        ),
        _write(
            folder / "mcnemar.csv",
            ("arm", "objective", "against", "seed", "only_first_right", "only_second_right", "p"),
            [
                (*t.first, t.second[0], t.seed, t.only_first, t.only_second, t.p)
                for t in analysis.mcnemar
            ],
        ),
        _write(
            folder / "learning.csv",
            ("arm", "objective", "labels", "epochs_to_95_percent", "area_under_curve"),
            [(*c.series, c.labels, c.epochs_to_95, c.area) for c in analysis.curves],
        ),
        _write(
            folder / "label_savings.csv",
            ("objective", "goal_accuracy", "all_labels", "labels", "low", "high"),
            [
                (objective, s.goal, s.all_labels, s.labels, s.low, s.high)
                for objective, s in analysis.savings.items()
            ],
        ),
        *_by_row(folder, data),
        _write(
            folder / "parameters.csv",
            ("objective", "part", "of", "formula", "count", "trainable"),
            [
                (objective, *(part[k] for k in ("name", "of", "formula", "count", "trainable")))
                for objective, document in data.study.parameters.items()
                for part in document.get("parts", [])
            ],
        ),
    ]


def _by_row(folder: Path, data: ReportData) -> list[Path]:
    found, names = calibrations(data), data.study.label_names
    mixed = []
    for one in found:
        runs = of_series(data.predictions, one.series, data.study.budgets[-1])
        counts = confusion(runs, len(names))
        mixed += [
            (*one.series, gold, said, int(counts[i, j]))
            for i, gold in enumerate(names)
            for j, said in enumerate(names)
        ]
    return [
        _write(
            folder / "calibration.csv",
            ("arm", "objective", "confidence", "share_right", "rows"),
            [(*one.series, *line) for one in found for line in one.bins],
        ),
        _write(folder / "confusion.csv", ("arm", "objective", "gold", "predicted", "rows"), mixed),
    ]


def _run(said: Predictions) -> tuple[str, str, int, int]:
    return said.run.arm, said.run.objective, said.run.labels, said.run.seed


def _right(said: Predictions) -> int:
    return int((said.predicted == said.gold).sum())


def _ends(interval: Interval) -> tuple[float, float, float]:
    return interval.value, interval.low, interval.high


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write one table; an unbounded end of an interval is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow(
            "" if cell is None or (isinstance(cell, float) and math.isinf(cell)) else cell
            for cell in row
        )
    write_text(path, text.getvalue())
    return path
