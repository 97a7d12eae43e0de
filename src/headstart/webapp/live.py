"""A study while it runs: its stage, the time left and the curves."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headstart.evaluation import metric_name
from headstart.study.analysis import Series, make_curves
from headstart.study.progress import read_progress
from headstart.study.report.charts import PHONE, WIDE, epoch_chart, limits_of, loss_chart
from headstart.training.callbacks import METRICS_FILE, loss_curve, read_metrics

Cell = tuple[Series, int]  # an arm with its objective, and a label budget
Epochs = dict[tuple[int, int, int], float]  # a seed, a fold and an epoch: the metric


def live_document(folder: Path, *, running: bool) -> dict[str, Any]:
    """Return everything that the page shows of a study under way, from its events."""
    plan: dict[str, Any] = {}
    spent = left = left_at = last = 0.0  # seconds of all sessions; seconds to come, and since when
    finished, epochs = set[tuple[Any, ...]](), defaultdict[Cell, Epochs](dict)
    latest, now, stage = None, time.time(), ""
    for event in read_progress(folder):
        kind, at = event["event"], event["time"]
        cell: Any = (event.get("arm"), event.get("objective")), event.get("labels")
        if kind == "plan":
            plan, left, left_at = event, event["seconds"] - spent, at
        else:  # the time between two sessions does not count
            spent += at - last
        last = at
        names = {
            "plan": "starting",
            "stage": event.get("name", ""),
            "pretraining": f"pretraining, {event.get('objective')}",
            "finished": "finished",
        }
        stage = names.get(kind, "training")
        if kind == "epoch":
            epochs[cell][event["seed"], event["fold"], event["epoch"]] = event["value"]
            latest = cell
        elif kind == "done":
            if "left" in event:
                left, left_at = event["left"], at
            if "value" in event:  # a selection has none
                finished.add((cell, event["seed"], event["fold"]))
    if not plan:
        return {"stage": "reading the data", "trainings": None}
    figures = [_epoch_figure(epochs, latest, metric_name(plan["metric"]))] if latest else []
    for objective in plan["objectives"]:
        newest = sorted((folder / "bases").glob(f"{objective}*/{METRICS_FILE}"))[-1:]
        lines = [line for path in newest for line in read_metrics(path)]
        if len(lines) > 1:
            pictures = [loss_chart(objective, loss_curve(lines), frame) for frame in (WIDE, PHONE)]
            figures.append(_figure(f"Pretraining, {objective}: loss by tokens", pictures))
    waiting = running and len(finished) < plan["trainings"]  # else only the report is left
    return {
        "stage": stage,
        "trainings": plan["trainings"],
        "finished": len(finished),
        "spent": spent + (max(0.0, now - last) if running else 0.0),
        "seconds_left": max(1.0, left - (now - left_at)) if waiting else None,
        "figures": figures,
    }


def _epoch_figure(epochs: Mapping[Cell, Epochs], latest: Cell, metric: str) -> dict[str, Any]:
    """Draw the curves of the objective and label budget that are being trained."""
    (_, objective), labels = latest
    lines: dict[Cell, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell, values in epochs.items():
        if cell[0][1] == objective and cell[1] == labels:
            for seed, fold, epoch in sorted(values):
                if fold <= 1:
                    lines[cell][seed].append(values[seed, fold, epoch])
    curves = make_curves(lines)
    scores = [value for curve in curves for line in curve.seeds.values() for value in line]
    limits = limits_of(scores, [mean for curve in curves for mean in curve.mean])
    pictures = [epoch_chart(curves, frame, limits, metric) for frame in (WIDE, PHONE)]
    return _figure(f"Validation {metric} by epoch, {labels:,} labels", pictures, seeds=True)


def _figure(caption: str, pictures: Sequence[str], *, seeds: bool = False) -> dict[str, Any]:
    wide, phone = pictures
    return {"caption": caption, "wide": wide, "phone": phone, "seeds": seeds}
