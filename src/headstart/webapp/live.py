"""A study while it runs: its stage, the time left, what is finished, and the report's curves."""

import math
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.arms import arm_label
from headstart.errors import HeadstartError
from headstart.evaluation import metric_name
from headstart.study.analysis import Curve, Series, make_curves
from headstart.study.plan import REPORT_SECONDS, Job, seconds_left
from headstart.study.progress import PROGRESS_FILE, read_progress
from headstart.study.report.build import Figure
from headstart.study.report.charts import (
    HALF,
    PHONE,
    WIDE,
    epoch_chart,
    limits_of,
    loss_chart,
    variable,
)
from headstart.study.verdict import labels_name
from headstart.training.callbacks import METRICS_FILE, loss_curve, read_metrics

TRAINING = ("start", "epoch", "done")  # the events of trainings
PACE_STEPS = 50  # of the latest steps, whose pace is the pace now


@dataclass
class LiveStudy:
    """What a study's progress file says, put in order."""

    folder: Path
    plan: dict[str, Any] | None = None
    stage: str = ""
    stage_share: float | None = None
    pretraining: str | None = None  # the objective of the one under way
    epochs: dict[Job, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    finished: dict[Job, float] = field(default_factory=dict)  # trainings, and their metric
    seconds: dict[Job, float] = field(default_factory=dict)  # of finished jobs
    running: dict[Job, float] = field(default_factory=dict)  # when they started
    latest: int | None = None  # the label budget of the latest epoch
    spent: float = 0.0  # seconds of all sessions up to the latest event
    last: float | None = None  # when that was
    ended: bool = False
    _metrics: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "LiveStudy":
        study = cls(folder)
        for event in read_progress(folder):
            study._take(event)
        return study

    def _take(self, event: dict[str, Any]) -> None:
        kind, now = event["event"], float(event["time"])
        self.stage = "training" if kind in TRAINING else self.stage
        if kind == "plan":
            self.plan, self.stage, self.ended = event, "starting", False
            self.running.clear()  # with the session before
        elif self.last is not None:
            self.spent += now - self.last
        self.last = now
        if kind in ("stage", "pretraining"):
            self.pretraining = event.get("objective")
            self.stage = "pretraining" if self.pretraining else event["name"]
            total = event.get("total")
            self.stage_share = min(1.0, event["done"] / total) if total else None
        elif kind in TRAINING:
            self.pretraining = None
            self._take_job(event, now)
        self.ended = kind == "finished"

    def _take_job(self, event: dict[str, Any], now: float) -> None:
        job = Job(**{name: event[name] for name in Job.__match_args__})
        if event["event"] == "start":
            self.running[job] = now
        elif event["event"] == "epoch":
            self.epochs[job][event["epoch"]] = event["value"]
            self.latest = event["labels"]
        else:
            self.running.pop(job, None)
            self.seconds[job] = event["seconds"]
            if "value" in event:
                self.finished[job] = event["value"]

    @property
    def curves(self) -> list[Curve]:
        """The epochs so far, as the report draws them."""
        finished = {((run.arm, run.objective), run.labels) for run in self.finished}
        seeds: dict[tuple[Series, int], dict[int, list[float]]] = defaultdict(dict)
        # A mean ends with its shortest seed: finished seeds are not cut by those under way.
        for run, epochs in self.epochs.items():
            key = ((run.arm, run.objective), run.labels)
            if (run in self.finished or key not in finished) and run.fold <= 1:
                seeds[key][run.seed] = [epochs[number] for number in sorted(epochs)]
        return make_curves(seeds)

    def base_folder(self, objective: str) -> Path:
        """The newest base of an objective: with `--bases` there are several."""
        found = [self.folder / "bases" / objective]
        found += sorted((self.folder / "bases").glob(f"{objective}-[0-9]*"))
        there = [path for path in found if (path / METRICS_FILE).is_file()]
        return there[-1] if there else found[0]

    def metrics(self, objective: str) -> list[dict[str, Any]]:
        """The lines of a base's metrics, read once; none while one of them is half written."""
        if objective not in self._metrics:
            try:
                self._metrics[objective] = read_metrics(self.base_folder(objective) / METRICS_FILE)
            except (OSError, HeadstartError):
                self._metrics[objective] = []
        return self._metrics[objective]

    def pretraining_now(self) -> dict[str, Any] | None:
        """Step, loss, tokens per second and seconds left of the pretraining under way."""
        if self.pretraining is None or self.plan is None:
            return None
        lines = [line for line in self.metrics(self.pretraining) if "held_out" not in line]
        if not lines:
            return None
        last, first = lines[-1], lines[-min(len(lines), PACE_STEPS)]
        seconds, steps = last["seconds"] - first["seconds"], last["step"] - first["step"]
        left = self.plan["pretrain_steps"] - last["step"]
        return {
            "step": last["step"],
            "steps": self.plan["pretrain_steps"],
            "loss": last["loss"] if math.isfinite(last["loss"]) else None,
            "tokens": last["tokens"],
            "tokens_per_second": (last["tokens"] - first["tokens"]) / seconds if seconds else None,
            "seconds_left": left * seconds / steps if steps else None,
        }

    def seconds_since(self, now: float) -> float:
        """Since the latest event."""
        return max(0.0, now - self.last) if self.last is not None else 0.0

    def seconds_left(self, now: float, *, running: bool) -> float | None:
        """By the plan at first; by finished jobs of the same kind as soon as there are some."""
        if self.plan is None or not running:
            return None
        by_plan = float(self.plan["seconds"]) - self.spent - self.seconds_since(now)
        own = (self.pretraining_now() or {}).get("seconds_left") or 0.0
        jobs, parallel = [Job(*one) for one in self.plan["all_jobs"]], self.plan["jobs"]
        left = seconds_left(jobs, self.seconds, parallel=parallel)
        if self.pretraining or left is None:
            return max(by_plan, own, 1.0)
        elapsed = sum(now - started for started in self.running.values()) / parallel
        return max(1.0, left - elapsed) + REPORT_SECONDS


def live_document(folder: Path, *, running: bool) -> dict[str, Any]:
    """Everything that the page shows of a study under way; pictures are SVG of our own making."""
    study = LiveStudy.read(folder)
    plan = study.plan
    if plan is None:
        return {"stage": "reading the data and making the plan", "plan": None, "figures": []}
    return {
        "stage": study.stage,
        "stage_share": study.stage_share,
        "plan": {key: plan[key] for key in ("trainings", "seconds", "budgets", "seeds")},
        "metric": metric_name(plan["metric"]),
        "finished": len(study.finished),
        "spent": study.spent + (study.seconds_since(time.time()) if running else 0.0),
        "seconds_left": study.seconds_left(time.time(), running=running),
        "pretraining": study.pretraining_now() if running else None,
        "objective": study.pretraining,
        "arms": _arm_rows(study),
        "figures": [*_epoch_figures(study), *_loss_figures(study)],
    }


def version_of(folder: Path) -> str:
    """Changes whenever there is something new to see."""
    files = [
        folder / PROGRESS_FILE,
        folder / "report.html",
        *sorted((folder / "bases").glob("*/" + METRICS_FILE)),
    ]
    return "-".join(f"{p.stat().st_size}" for p in files if p.is_file()) or "0"


def _arm_rows(study: LiveStudy) -> list[dict[str, Any]]:
    assert study.plan is not None
    rows = []
    several = len(study.plan["objectives"]) > 1
    every = dict.fromkeys((run.arm, run.objective) for run in [*study.finished, *study.epochs])
    known = [arm for arm, _ in every]
    waiting = [(arm, "") for arm in study.plan["arms"] if arm not in known]
    order = {arm: place for place, arm in enumerate(study.plan["arms"])}
    for series in sorted([*every, *waiting], key=lambda one: order.get(one[0], 99)):
        cells = []
        for labels in study.plan["budgets"]:
            values = [
                value
                for run, value in study.finished.items()
                if (run.arm, run.objective, run.labels) == (*series, labels)
            ]
            mean = sum(values) / len(values) if values else None
            cells.append({"labels": labels, "value": mean, "seeds": len(values)})
        name = arm_label(series[0]) + (f" · {series[1]}" if several and series[1] else "")
        rows.append({"name": name, "colour": f"--{variable(series[0])}", "cells": cells})
    return rows


def _epoch_figures(study: LiveStudy) -> list[str]:
    """The budget that is being trained large, the others smaller, all on one scale."""
    curves = study.curves
    if not curves or study.plan is None:
        return []
    metric = metric_name(study.plan["metric"])
    values = [v for curve in curves for line in curve.seeds.values() for v in line]
    limits = limits_of(values, [m for curve in curves for m in curve.mean])
    budgets = sorted({curve.labels for curve in curves}, key=lambda n: (n != study.latest, n))
    objectives = sorted({curve.series[1] for curve in curves})
    found = []
    for labels in budgets:
        for objective in objectives:
            shown = [c for c in curves if c.labels == labels and c.series[1] in (objective, "")]
            if not shown:
                continue
            wide = WIDE if labels == study.latest and len(objectives) == 1 else HALF
            pictures = [epoch_chart(shown, frame, limits, metric) for frame in (wide, PHONE)]
            words = labels_name(labels) + (f", {objective}" if len(objectives) > 1 else "")
            name = f"epochs-{labels}-{objective or 'all'}"
            found.append(str(Figure(name, words, *pictures).html))
    return found


def _loss_figures(study: LiveStudy) -> list[str]:
    assert study.plan is not None
    found = []
    for objective in study.plan["objectives"]:
        points = loss_curve(study.metrics(objective))
        losses = [point["train_loss"] for point in points]
        if len(points) > 1 and all(math.isfinite(loss or 0.0) for loss in losses):
            wide, phone = (loss_chart(objective, points, frame) for frame in (WIDE, PHONE))
            caption = f"Pretraining, {objective}: loss by tokens"
            found.append(str(Figure(f"pretraining-{objective}", caption, wide, phone).html))
    return found
