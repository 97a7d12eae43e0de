"""The executor `ray`: trainings as tasks of a cluster, which runs those of a lost machine again.

A task works in the study's folder where its machine has it (shared storage). Elsewhere it is given
a copy of what it reads, and Ray brings back what it wrote (`parcel.py`).
"""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Iterator
from contextlib import chdir, suppress
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import HeadstartError
from headstart.machine import usable_cores
from headstart.studies.executors.attempt import attempt
from headstart.studies.executors.parcel import (
    Parcel,
    forget_marker,
    pack,
    sees_folder,
    unpacked,
    write_marker,
)
from headstart.studies.executors.protocol import (
    GOES_ON,
    RETRIES,
    Executor,
    Resources,
    Session,
    TrainingEvent,
)
from headstart.studies.outcomes import RunKey
from headstart.training.trainer import Interrupted

if TYPE_CHECKING:
    from headstart.studies.context import StudyContext
    from headstart.studies.recipe import StudyRecipe

PATIENCE = 30.0  # seconds that trainings are given to save and end
PAUSE = 0.5  # seconds between two looks
REPORT_SECONDS = 10.0  # that a training waits to be heard; it goes on unheard
STORE_BYTES = 200_000_000  # of a Ray that is started here: results are small
INSTALL = "pip install 'headstart[ray]'"


class RayExecutor(Executor):
    """A Ray cluster at `--address`, or Ray on this machine without one."""

    name = "ray"
    takes = frozenset({"address", "cores", "memory", "gpus"})

    def at_once(self, recipe: StudyRecipe, resources: Resources) -> int:
        connect(resources.address)
        room = room_for(_alive_nodes(), resources)
        if recipe.jobs or room:
            return recipe.jobs or room
        raise HeadstartError(
            f"no machine of the Ray cluster has {resources.words()}",
            fix="ask for less, or give --jobs N where the cluster grows on demand",
        )

    def words(self, resources: Resources) -> str:
        connect(resources.address)
        nodes = len(_alive_nodes())
        machines = "1 machine" if nodes == 1 else f"{nodes} machines"
        return f"Ray with {machines}: {resources.words()}"

    def open(self, study: StudyContext, resources: Resources) -> RaySession:
        return RaySession(study, resources)


class RaySession(Session):
    """Tasks under way, and a queue on the driver's machine through which they report."""

    def __init__(self, study: StudyContext, resources: Resources) -> None:
        ray = self._ray = connect(resources.address)
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._folder = study.folder
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._queue = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})
        self._marker = write_marker(study.folder)
        # In a list, Ray does not fetch what it refers to: only machines that need it do.
        self._parcel = [ray.put(pack(study))] if _may_be_elsewhere(resources.address) else []
        self._study = ray.put(study)
        self._train = ray.remote(train_in_task).options(
            num_cpus=resources.cores,
            num_gpus=resources.gpus,
            memory=round(resources.memory * 1e9) or None,
            max_retries=RETRIES,
        )
        self._runs: dict[Any, RunKey] = {}  # by the reference of the task's result

    def submit(self, run: RunKey) -> None:
        place = (str(Path.cwd()), self._marker)
        reference = self._train.remote(self._study, run, place, self._queue, self._parcel)
        self._runs[reference] = run

    def events(self) -> Iterator[TrainingEvent]:
        ready, _ = self._ray.wait(list(self._runs), timeout=PAUSE)
        yield from self._reports()  # a training has been heard before it ends
        for reference in ready:
            yield self._collect(reference, self._runs.pop(reference))

    def close(self) -> None:
        tasks = list(self._runs)
        for reference in tasks:
            self._ray.cancel(reference)  # as Ctrl-C does: a training saves what it has
        if tasks:
            _, left = self._ray.wait(tasks, num_returns=len(tasks), timeout=PATIENCE)
            for reference in left:
                self._ray.cancel(reference, force=True)
        self._runs.clear()
        self._queue.shutdown(force=True)
        forget_marker(self._folder)

    def _reports(self) -> Iterator[TrainingEvent]:
        count = self._queue.qsize()
        for parts, kind, *content in self._queue.get_nowait_batch(count) if count else ():
            run = RunKey(*parts)
            if kind == "start":
                yield TrainingEvent("start", run, node=self._node_name(content[0]))
            else:
                yield TrainingEvent("epoch", run, epoch=content[0], value=content[1])

    def _collect(self, reference: Any, run: RunKey) -> TrainingEvent:
        from ray.exceptions import RayError

        try:
            parcel, error = self._ray.get(reference)
        except RayError as lost:
            return TrainingEvent("error", run, error=_lost(run, lost))
        if isinstance(error, Interrupted):
            return TrainingEvent("died", run, error=_lost(run, error))
        if error is not None:
            return TrainingEvent("error", run, error=error)
        if parcel is not None:
            parcel.bring_to(self._folder)
        return TrainingEvent("done", run)

    def _node_name(self, number: str) -> str:
        """As it was named when it joined the cluster, or else as it calls itself."""
        for node in self._ray.nodes():
            if node["NodeID"] == number:
                named = node["NodeName"] != node["NodeManagerAddress"]
                return str(node["NodeName" if named else "NodeManagerHostname"])
        return ""


def train_in_task(
    study: StudyContext, run: RunKey, place: tuple[str, str], queue: Any, parcels: list[Any]
) -> tuple[Parcel | None, BaseException | None]:
    """What runs on a machine of the cluster: one attempt at a training.

    Parameters
    ----------
    study, run
        Which training of which study.
    place : tuple
        The driver's working directory, and the study folder's marker.
    queue : ray.util.queue.Queue
        Receives the machine and the epochs.
    parcels : list
        A reference to what trainings read, for machines without the study's folder.

    Returns
    -------
    tuple
        What must be brought back, and what went wrong.
    """
    import ray

    def report(*event: Any) -> None:
        # To be watched is no condition of a training.
        with suppress(Exception):
            put = queue.actor.put_nowait.remote((astuple(run), *event))
            ray.get(put, timeout=REPORT_SECONDS)

    def on_epoch(_: RunKey, epoch: int, value: float) -> None:
        report("epoch", epoch, value)

    report("start", ray.get_runtime_context().get_node_id())
    folder, marker = place
    try:
        if sees_folder(Path(folder) / study.folder, marker):
            with chdir(folder):
                return None, attempt(run, study, on_epoch)
        with unpacked(ray.get(parcels[0]), study) as moved:
            error = attempt(run, moved, on_epoch)
            return (None, error) if error else (Parcel.of_training(run, moved, study), None)
    except Interrupted as stopped:  # cancelled, or its machine is about to go
        return None, stopped


def connect(address: str) -> Any:
    """Ray, connected once: to the cluster at `address`, or to one that is started here."""
    if importlib.util.find_spec("ray") is None:
        raise HeadstartError("Ray is not installed", fix=INSTALL)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told
    import ray

    if ray.is_initialized():
        return ray
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    given = address or os.environ.get("RAY_ADDRESS", "")
    try:
        if given:
            ray.init(address=given, **quiet)
        else:
            quiet |= {"num_cpus": usable_cores(), "object_store_memory": STORE_BYTES}
            ray.init(address="local", include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        where = f"at {given}" if given else "on this machine"
        raise HeadstartError(
            f"no Ray cluster can be used {where}: {error}",
            fix="start one with: ray start --head, and give its --address HOST:6379; "
            "Ray and Python need the same versions there and here",
        ) from error
    return ray


def room_for(nodes: list[dict[str, float]], resources: Resources) -> int:
    """How many trainings fit on machines with these resources, side by side.

    Example
    -------
    >>> room_for([{"CPU": 4.0}, {"CPU": 2.0}], Resources(cores=2))
    3
    """
    wanted = {"CPU": resources.cores, "memory": resources.memory * 1e9, "GPU": resources.gpus}
    return sum(
        min(int(node.get(name, 0) // amount) for name, amount in wanted.items() if amount)
        for node in nodes
    )


def _alive_nodes() -> list[dict[str, Any]]:
    import ray

    return [
        {**node["Resources"], "NodeManagerHostname": node["NodeManagerHostname"]}
        for node in ray.nodes()
        if node["Alive"]
    ]


def _may_be_elsewhere(address: str) -> bool:
    """Whether the cluster has, or may get, a machine other than this one."""
    others = {node["NodeManagerHostname"] for node in _alive_nodes()} - {platform.node()}
    return bool(others or address or os.environ.get("RAY_ADDRESS"))


def _lost(run: RunKey, error: BaseException) -> HeadstartError:
    cause = getattr(error, "cause", None) or error  # a task's own words, without its traceback
    first = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    return HeadstartError(
        f"the training {run.arm}, {run.labels:,} labels, seed {run.seed} came to nothing on Ray: "
        f"{first}",
        fix="where memory ran out, ask for more with --memory; every machine needs the same "
        f"Headstart, Ray and Python; {GOES_ON}",
    )


EXECUTOR = RayExecutor()
