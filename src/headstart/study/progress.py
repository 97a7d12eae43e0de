"""How a study reports its progress: `StudyCallback`, and `progress.jsonl` for other processes."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headstart.progress import ProgressCallback
from headstart.training.callbacks import Callback, Callbacks

if TYPE_CHECKING:  # which imports this module
    from headstart.study.plan import Job
    from headstart.study.study import Study

PROGRESS_FILE = "progress.jsonl"
JobEvent = Literal["start", "epoch", "done"]


class StudyCallback(Callback):
    """Receives the events of a study, and of its pretraining. Override those of interest."""

    def on_plan(self, study: "Study") -> None:
        """The plan is made, and the study begins."""

    def on_pretraining(self, objective: str, number: int) -> None:
        """The pretraining of a base begins; in a study in folds, each may have one."""

    def on_job(
        self, job: "Job", event: JobEvent, epoch: int | None = None, value: float | None = None
    ) -> None:
        """A job started, has ended an epoch, or is done; `value` is its validation metric."""


class StudyCallbacks(Callbacks, StudyCallback):
    """Pass every event on to several callbacks, in their order."""

    events = (*Callbacks.events, "on_plan", "on_pretraining", "on_job")


class ProgressFile(StudyCallback):
    """Append the events of a study to a file in its folder, over all of its sessions.

    A line is a JSON object with `time`, `event` and what belongs to it. Steps of pretraining are
    in `bases/…/metrics.jsonl`.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / PROGRESS_FILE
        self._study: Study | None = None

    def stage(self, name: str) -> ProgressCallback:
        self.write("stage", name=name)
        last = time.time()

        def progress(done: int, total: int | None) -> None:
            nonlocal last
            if time.time() - last >= 1:
                last = time.time()
                self.write("stage", name=name, done=done, total=total)

        return progress

    def on_plan(self, study: "Study") -> None:
        self._study = study
        self._append("\n")  # a kill may have cut the last line of the session before
        config = study.config
        self.write(
            "plan",
            **vars(study.plan),
            trainings=len(study.trainings),
            all_jobs=[list(vars(job).values()) for job in study.jobs],
            arms=config.arms,
            objectives=config.objectives if config.needs_base else [],
            metric=study.data.task.metric,
            executor=config.executor,
        )

    def on_pretraining(self, objective: str, number: int) -> None:
        self.write("pretraining", objective=objective)

    def on_job(
        self, job: "Job", event: JobEvent, epoch: int | None = None, value: float | None = None
    ) -> None:
        more: dict[str, Any] = {"epoch": epoch, "value": value}
        if event == "done" and self._study is not None:
            more["seconds"] = self._study.results[job].facts["seconds"]
            more["left"] = self._study.seconds_left()
        self.write(event, **vars(job), **{k: one for k, one in more.items() if one is not None})

    def write(self, event: str, **content: Any) -> None:
        """Append one event, once the study has begun."""
        if self._study is not None:
            line = {"time": round(time.time(), 3), "event": event, **content}
            self._append(json.dumps(line) + "\n")

    def _append(self, text: str) -> None:
        # A study continues if its progress cannot be written.
        with suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(text)


def read_progress(folder: Path) -> list[dict[str, Any]]:
    """Read the events of a study so far, without a line that a kill cut short."""
    path, found = folder / PROGRESS_FILE, list[dict[str, Any]]()
    for line in path.read_bytes().splitlines() if path.is_file() else []:
        with suppress(ValueError):  # empty, or cut by a kill
            found.append(json.loads(line))
    return found
