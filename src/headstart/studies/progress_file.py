"""`progress.jsonl`: the events of a study, one line each, for whoever watches it from outside."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from headstart.progress import ProgressCallback
from headstart.studies.arms import find_arm
from headstart.studies.outcomes import RunKey, read_training
from headstart.studies.run import StudyListener, StudyRun
from headstart.training.callbacks import Callback

FILE = "progress.jsonl"
SECONDS_BETWEEN_LINES = 1.0  # of one stage


class ProgressFile:
    """Appends the events of a study to a file in its folder, over all of its sessions.

    A study makes its folder when its plan is there; what happens before is written then. Steps of
    pretraining are not repeated here: they stand in `bases/…/metrics.jsonl`.

    Parameters
    ----------
    folder : Path
        The study's folder.
    clock : callable
        Seconds since 1970.

    Example
    -------
    A line is a JSON object with `time`, `event` and what belongs to it:
    `{"time": 1763.2, "event": "epoch", "arm": "scratch", "objective": "causal", "labels": 100,
    "seed": 0, "epoch": 1, "value": 0.63}`
    """

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock = folder / FILE, clock
        self._waiting: list[dict[str, Any]] | None = []  # until the folder exists
        self._study: StudyRun | None = None

    def listener(self) -> StudyListener:
        """What a study reports to."""
        return StudyListener(
            stages=self.stage,
            on_plan=self.on_plan,
            pretraining=self.pretraining,
            on_epoch=self.on_epoch,
            on_done=self.on_done,
            on_start=self.on_start,
        )

    def stage(self, name: str) -> ProgressCallback:
        """A stage begins; returns what is called with its progress."""
        self.write("stage", name=name)
        last = self._clock()

        def progress(done: int, total: int | None) -> None:
            nonlocal last
            if self._clock() - last >= SECONDS_BETWEEN_LINES:
                last = self._clock()
                self.write("stage", name=name, done=done, total=total)

        return progress

    def on_plan(self, study: StudyRun) -> None:
        self._study = study
        before, self._waiting = self._waiting or [], None
        with suppress(OSError):
            if self.path.is_file() and not self.path.read_bytes().endswith(b"\n"):
                self._append_text("\n")  # a kill cut the last line of the session before short
        self._append(before)
        self.write(
            "plan",
            trainings=len(study.runs),
            finished=len(study.runs) - len(study.left(study.recipe.arm_objects)),
            seconds=study.plan.seconds,
            work=sum(work_of(run, study.plan.epochs) for run in study.runs),
            pretrain_steps=study.plan.pretrain_steps,
            budgets=study.plan.budgets,
            seeds=study.plan.seeds,
            arms=study.recipe.arms,
            objectives=study.recipe.objectives if study.recipe.needs_base else [],
            metric=study.data.task.metric,
            executor=study.recipe.executor,
            jobs=study.plan.jobs,
        )

    @contextmanager
    def pretraining(self, objective: str) -> Iterator[Callback]:
        self.write("pretraining", objective=objective)
        yield Callback()
        self.write("base", objective=objective)

    def on_start(self, run: RunKey, node: str) -> None:
        self.write("start", **vars(run), node=node)

    def on_epoch(self, run: RunKey, epoch: int, value: float) -> None:
        self.write("epoch", **vars(run), epoch=epoch, value=value)

    def on_done(self, run: RunKey) -> None:
        assert self._study is not None
        outcome = read_training(self._study.folder, run)
        value = outcome.measure("validation", self._study.data.task.metric)
        self.write("done", **vars(run), value=value, work=work_of(run, self._study.plan.epochs))

    def write(self, event: str, **content: Any) -> None:
        """Append one event."""
        line = {"time": round(self._clock(), 3), "event": event, **content}
        if self._waiting is None:
            self._append([line])
        else:
            self._waiting.append(line)

    def _append(self, lines: list[dict[str, Any]]) -> None:
        self._append_text("".join(json.dumps(line) + "\n" for line in lines))

    def _append_text(self, text: str) -> None:
        # To be watched is no condition of a study: it goes on where this cannot be written.
        with suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(text)


def work_of(run: RunKey, epochs: Mapping[int, int]) -> float:
    """How much of a study's work one training is, roughly: texts that are read, and a start."""
    if not find_arm(run.arm).is_network:
        return 20.0
    return 300.0 + epochs[run.labels] * run.labels


def read_progress(folder: Path) -> list[dict[str, Any]]:
    """The events of a study so far; a line that a kill cut short is left out."""
    path = folder / FILE
    if not path.is_file():
        return []
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            found.append(event)
    return found
