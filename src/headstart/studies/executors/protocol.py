"""What an executor is, and how a study uses one: submit, listen, collect, and cancel at the end.

Files are the truth: a training is finished when its file is in the study's folder, whichever
machine or attempt wrote it. So an executor may lose trainings, or run them twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.studies.context import OnEpoch, StudyContext
    from headstart.studies.outcomes import RunKey
    from headstart.studies.recipe import StudyRecipe

OnStart = Callable[["RunKey", str], None]  # a run, and the machine that it runs on; "" is this one
OnDone = Callable[["RunKey"], None]
RETRIES = 3  # of one training, after which its death has a cause
GOES_ON = "start the study again: it resumes, with any --executor"
FOR_OTHERS = {  # settings of a recipe that only some executors have a use for
    "address": "--address",
    "cores": "--cores",
    "memory": "--memory",
    "gpus": "--gpus",
    "partition": "--partition",
    "time_limit": "--time-limit",
}


@dataclass(frozen=True)
class Resources:
    """What is asked for each training, and from whom."""

    cores: int = 1
    memory: float = 0.0  # GB; 0 is whatever there is
    gpus: int = 0
    address: str = ""  # of the cluster, as the executor reads it
    partition: str = ""  # Slurm's
    time_limit: int = 0  # minutes; 0 is the executor's own

    def words(self) -> str:
        """For people.

        Example
        -------
        >>> Resources(cores=2, memory=1.5).words()
        '2 cores and 1.5 GB for each training'
        """
        parts = ["1 core" if self.cores == 1 else f"{self.cores} cores"]
        parts += [f"{self.memory:g} GB"] if self.memory else []
        parts += [f"{self.gpus} GPU" + "s" * (self.gpus > 1)] if self.gpus else []
        return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) + " for each training"


@dataclass(frozen=True)
class TrainingEvent:
    """News of one training.

    A training that `died` left no word (its machine is gone, it was preempted or killed) and may
    be tried again; one with an `error` would only fail again.
    """

    kind: Literal["start", "epoch", "done", "died", "error"]
    run: RunKey
    node: str = ""  # of a start
    epoch: int = 0
    value: float = 0.0  # of an epoch: the validation metric
    error: BaseException | None = None  # of `died` and `error`


class Session(ABC):
    """Trainings under way with one executor. It is used from one thread."""

    @abstractmethod
    def submit(self, run: RunKey) -> None:
        """Start a training, or put it into the engine's queue."""

    @abstractmethod
    def events(self) -> Iterable[TrainingEvent]:
        """Wait a moment, and give the news since the last call."""

    @abstractmethod
    def close(self) -> None:
        """Cancel what still runs, with time to save a checkpoint, and release everything."""


class Executor(ABC):
    """One way to run trainings. An instance holds no state; `open` returns what does.

    Subclass it, set the attributes, write `at_once` and `open`, and `register` an instance.
    """

    name: ClassVar[str]  # on the command line and in files
    takes: ClassVar[frozenset[str]] = frozenset()  # those of `FOR_OTHERS` that it has a use for
    retries: ClassVar[int] = RETRIES  # how often a training that died is submitted again

    def problems(self, recipe: StudyRecipe) -> list[str]:
        """Settings that do not fit this executor, in words."""
        given = [name for name in FOR_OTHERS if name not in self.takes and getattr(recipe, name)]
        options = ", ".join(FOR_OTHERS[name] for name in given)
        return [f"--executor {self.name} has no use for {options}"] if given else []

    def threads(self, recipe: StudyRecipe, jobs: int, available: int) -> int:
        """Threads of each training; the bits of a training depend on their number."""
        return recipe.cores or 1

    @abstractmethod
    def at_once(self, recipe: StudyRecipe, resources: Resources) -> int:
        """How many trainings run side by side. A missing package or cluster is an error here."""

    def words(self, resources: Resources) -> str:
        """Where trainings run and with what, for people; empty for this machine."""
        return f"{self.name}: {resources.words()}"

    def is_here(self, trainings: int, jobs: int) -> bool:
        """Whether so many trainings are better run in the study's own process."""
        return False

    @abstractmethod
    def open(self, study: StudyContext, resources: Resources) -> Session:
        """Be ready for trainings of this study."""


def run_trainings(
    executor: Executor,
    runs: Sequence[RunKey],
    study: StudyContext,
    resources: Resources,
    *,
    jobs: int,
    on_start: OnStart,
    on_epoch: OnEpoch,
    on_done: OnDone,
) -> None:
    """Run all trainings, `jobs` at a time; the first error ends them all.

    Parameters
    ----------
    executor : Executor
    runs : sequence of RunKey
        In the order in which they are submitted.
    study : StudyContext
        What they share.
    resources : Resources
        What is asked for each.
    jobs : int
        How many are submitted and not finished at any time.
    on_start, on_epoch, on_done
        Receive the news; a training that died and is tried again starts twice.
    """
    waiting = deque(runs)
    running: set[RunKey] = set()
    deaths: Counter[RunKey] = Counter()
    session = executor.open(study, resources)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                run = waiting.popleft()
                running.add(run)
                session.submit(run)
            for event in session.events():
                run = event.run
                if run not in running:
                    continue  # late news of an attempt that no longer counts
                if event.kind == "start":
                    on_start(run, event.node)
                elif event.kind == "epoch":
                    on_epoch(run, event.epoch, event.value)
                elif event.kind == "done":
                    running.remove(run)
                    on_done(run)
                elif event.kind == "died" and deaths[run] < executor.retries:
                    deaths[run] += 1
                    session.submit(run)
                else:
                    raise event.error or HeadstartError(f"{run.arm} died", fix=GOES_ON)
    finally:
        session.close()
