"""A study while it runs: its stage, the time left, the finished trainings and the curves."""

import math
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.arms import arm_label
from headstart.errors import HeadstartError
from headstart.evaluation import metric_name
from headstart.study.analysis import Series, make_curves
from headstart.study.progress import read_progress
from headstart.study.report.charts import (
    PHONE,
    WIDE,
    epoch_chart,
    limits_of,
    loss_chart,
    variable,
)
from headstart.training.callbacks import METRICS_FILE, loss_curve, read_metrics

Cell = tuple[Series, int]  # an arm with its objective, and a label budget
Training = tuple[int, int]  # a seed and a fold


@dataclass
class LiveStudy:
    """What the events of a study say.

    Attributes
    ----------
    share : of the stage, if it is known.
    objective : of the pretraining under way.
    spent, last : seconds of all sessions up to the latest event, and when that was.
    left, left_at : seconds that the study expected to need, and when.
    finished, epochs : the metric of finished trainings, and of all trainings by epoch.
    latest : the cell of the latest epoch.
    """

    plan: dict[str, Any] = field(default_factory=dict)
    stage: str = ""
    share: float | None = None
    objective: str = ""
    spent: float = 0.0
    last: float = 0.0
    left: float = 0.0
    left_at: float = 0.0
    finished: dict[Cell, dict[Training, float]] = field(default_factory=lambda: defaultdict(dict))
    epochs: dict[Cell, dict[tuple[int, int, int], float]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    latest: Cell | None = None

    def take(self, event: dict[str, Any]) -> None:
        """Add one event."""
        kind, now = event["event"], float(event["time"])
        if kind == "plan":
            self.plan, self.left, self.left_at = event, event["seconds"] - self.spent, now
        else:  # the time between two sessions does not count
            self.spent += now - self.last
        self.last, total = now, event.get("total")
        self.objective = event["objective"] if kind == "pretraining" else ""
        names = {"plan": "starting", "stage": event.get("name", ""), "finished": "finished"}
        self.stage = f"pretraining, {self.objective}" if self.objective else ""
        self.stage = self.stage or names.get(kind, "training")
        self.share = min(1.0, event["done"] / total) if total else None
        if kind == "epoch":
            self.latest = _cell(event)
            self.epochs[self.latest][event["seed"], event["fold"], event["epoch"]] = event["value"]
        elif kind == "done":
            if "value" in event:  # what trains only `best/` has none
                self.finished[_cell(event)][event["seed"], event["fold"]] = event["value"]
            if "left" in event:
                self.left, self.left_at = event["left"], now

    @property
    def trainings(self) -> int:
        """How many are finished."""
        return sum(map(len, self.finished.values()))

    def seconds_left(self, now: float) -> float | None:
        """Return the time left; none when only the report is left to write."""
        if self.trainings >= self.plan["trainings"]:
            return None
        return max(1.0, self.left - (now - self.left_at))

    def rows(self) -> list[dict[str, Any]]:
        """Return the table of arms × label budgets: mean and number of finished trainings."""
        arms: list[str] = self.plan["arms"]
        seen = {series for series, _ in (*self.finished, *self.epochs)}
        seen |= {(arm, "") for arm in set(arms) - {arm for arm, _ in seen}}
        found = []
        for arm, objective in sorted(seen, key=lambda one: (arms.index(one[0]), one[1])):
            cells = []
            for labels in self.plan["budgets"]:
                values = self.finished.get(((arm, objective), labels), {}).values()
                mean = sum(values) / len(values) if values else None
                cells.append({"value": mean, "trainings": len(values)})
            name = arm_label(arm)
            if objective and len(self.plan["objectives"]) > 1:
                name += f" · {objective}"
            found.append({"name": name, "colour": f"--{variable(arm)}", "cells": cells})
        return found

    def epoch_figures(self, metric: str) -> list[dict[str, Any]]:
        """Draw the curves of the objective and label budget that are being trained."""
        if self.latest is None:
            return []
        (_, objective), labels = self.latest
        lines: dict[Cell, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for cell, values in self.epochs.items():
            if cell[0][1] == objective and cell[1] == labels:
                for seed, fold, epoch in sorted(values):
                    if fold <= 1:
                        lines[cell][seed].append(values[seed, fold, epoch])
        curves = make_curves(lines)
        scores = [value for curve in curves for line in curve.seeds.values() for value in line]
        limits = limits_of(scores, [mean for curve in curves for mean in curve.mean])
        pictures = [epoch_chart(curves, frame, limits, metric) for frame in (WIDE, PHONE)]
        caption = f"Validation {metric} by epoch, {labels:,} labels"
        return [_figure(caption, pictures, seeds=True)]


def _cell(event: dict[str, Any]) -> Cell:
    return (event["arm"], event["objective"]), event["labels"]


def _figure(caption: str, pictures: Sequence[str], *, seeds: bool = False) -> dict[str, Any]:
    wide, phone = pictures
    return {"caption": caption, "wide": wide, "phone": phone, "seeds": seeds}


def live_document(folder: Path, *, running: bool) -> dict[str, Any]:
    """Return everything that the page shows of a study under way."""
    study, now = LiveStudy(), time.time()
    for event in read_progress(folder):
        study.take(event)
    if not study.plan:
        return {"stage": "reading the data", "plan": None}
    metric, pretraining = metric_name(study.plan["metric"]), None
    figures = study.epoch_figures(metric)
    for objective in study.plan["objectives"]:
        lines = _read_steps(folder, objective)
        if len(lines) > 1:
            pictures = [loss_chart(objective, loss_curve(lines), frame) for frame in (WIDE, PHONE)]
            figures.append(_figure(f"Pretraining, {objective}: loss by tokens", pictures))
            if objective == study.objective:
                pretraining = {**lines[-1], "steps": study.plan["pretrain_steps"]}
    return {
        "stage": study.stage,
        "share": study.share,
        "plan": {name: study.plan[name] for name in ("trainings", "budgets", "seeds")},
        "metric": metric,
        "finished": study.trainings,
        "spent": study.spent + (max(0.0, now - study.last) if running else 0.0),
        "seconds_left": study.seconds_left(now) if running else None,
        "pretraining": pretraining if running else None,
        "arms": study.rows(),
        "figures": figures,
    }


def _read_steps(folder: Path, objective: str) -> list[dict[str, Any]]:
    """Read the steps of the newest base of an objective, as far as they can be drawn."""
    paths = sorted((folder / "bases").glob(f"{objective}*/{METRICS_FILE}"))
    try:
        lines = read_metrics(paths[-1]) if paths else []
    except (OSError, HeadstartError):  # it is being written
        return []
    return lines if all(math.isfinite(line["loss"]) for line in lines) else []
