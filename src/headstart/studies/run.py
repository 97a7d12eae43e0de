"""A study from its recipe to its report. Killed and started again, it resumes where it was.

    recipe.toml    the settings that were given     plan.json     what will be done
    bases/         the pretrained bases: one per objective, or --bases of them
    trainings/     one file for each finished training
    progress.jsonl what happened so far, for whoever watches from outside (`progress_file.py`)
    runs/          trainings that are under way, and those that may become the best
    best/          the best classifier, whatever its kind, ready for `headstart predict`
and, at the end, what `results.py` and `report/` write. `format.json` holds the format of the
folder.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from headstart.config import PRESET_SETTINGS, PretrainConfig, is_run
from headstart.data.sources import check_outside
from headstart.data.tokenizers import load_tokenizer
from headstart.files import IDENTITY, check_folder, remove_leftovers, write_text
from headstart.lock import locked
from headstart.progress import ProgressCallback
from headstart.studies.arms import find_arm
from headstart.studies.arms.arm import START, Arm
from headstart.studies.bases import (
    pretrain_base,
    pretrain_recipe,
    train_task_tokenizer,
    write_vectors,
)
from headstart.studies.context import OnEpoch, StudyContext, ignore
from headstart.studies.data import StudyData, read_data
from headstart.studies.executors import find_executor
from headstart.studies.executors.attempt import run_one
from headstart.studies.executors.local import run_here
from headstart.studies.executors.protocol import OnDone, OnStart, run_trainings
from headstart.studies.outcomes import RunKey, is_finished
from headstart.studies.plan import StudyPlan, make_plan, study_preset
from headstart.studies.plan_file import adapt_plan, check_plan, parse_plan, read_plan, write_plan
from headstart.studies.recipe import StudyRecipe
from headstart.training.callbacks import Callback, Callbacks
from headstart.training.corpus import PretrainData, prepare_corpus
from headstart.training.initialization import local_base
from headstart.training.run_files import check_identity

MINUTES = "minutes.txt"


@dataclass(frozen=True)
class StudyListener:
    """Receives progress events; the default ignores them."""

    stages: Callable[[str], ProgressCallback] = Callback().stage
    on_plan: Callable[["StudyRun"], None] = ignore
    pretraining: Callable[[str], AbstractContextManager[Callback]] = lambda objective: nullcontext(
        Callback()
    )
    on_epoch: OnEpoch = ignore
    on_done: OnDone = ignore
    on_start: OnStart = ignore


def join_listeners(*listeners: StudyListener) -> StudyListener:
    """One listener that passes every event on to each of several, in their order."""

    def stages(name: str) -> ProgressCallback:
        callbacks = [one.stages(name) for one in listeners]

        def progress(done: int, total: int | None) -> None:
            for callback in callbacks:
                callback(done, total)

        return progress

    @contextmanager
    def pretraining(objective: str) -> Iterator[Callback]:
        with ExitStack() as stack:
            yield Callbacks([stack.enter_context(one.pretraining(objective)) for one in listeners])

    def each(name: str) -> Callable[..., None]:
        def pass_on(*event: object) -> None:
            for one in listeners:
                getattr(one, name)(*event)

        return pass_on

    events = {name: each(name) for name in ("on_plan", "on_epoch", "on_done", "on_start")}
    return StudyListener(stages=stages, pretraining=pretraining, **events)


class _Stages(Callback):
    """Passes the stages of a preparation on to a study's listener."""

    def __init__(self, listener: StudyListener) -> None:
        self.stage = listener.stages  # type: ignore[assignment, method-assign]


class StudyRun:
    """One study in one folder.

    Parameters
    ----------
    recipe : StudyRecipe
        Must be the folder's own where the study is started again.
    folder : Path
        Nothing is written into it before `run`.
    listener : StudyListener, optional
        Receives progress events.
    plan : Path, optional
        A plan that was made before for this recipe and data; a study that is started again has
        its own.
    """

    def __init__(
        self,
        recipe: StudyRecipe,
        folder: Path,
        *,
        listener: StudyListener | None = None,
        plan: Path | None = None,
    ) -> None:
        self.folder, self.listener = folder, listener or StudyListener()
        self._started = time.monotonic()
        check_folder(folder)
        check_outside(folder, [*recipe.dataset, *recipe.corpus])
        self.is_resumed = is_run(folder)
        self.recipe = recipe.resumed(folder) if self.is_resumed else recipe
        self.data: StudyData = read_data(self.recipe, self.listener.stages)
        if self.is_resumed:
            check_identity(self.identity, folder)
        saved = read_plan(folder) if self.is_resumed else None
        if saved is None and plan is not None:
            saved = check_plan(parse_plan(plan, "make it again"), plan, self.recipe, self.data)
        self.plan: StudyPlan = (
            make_plan(self.recipe, self.data) if saved is None else adapt_plan(saved, self.recipe)
        )
        self.runs = self.plan.runs(self.recipe)
        self._before = _read_minutes(folder) if self.is_resumed else 0.0

    def run(self) -> None:
        """Do what is not done yet."""
        with locked(self.folder, "study"):
            if not self.is_resumed:
                write_plan(self.plan, self.folder)
                write_text(self.folder / IDENTITY, json.dumps(self.identity, indent=2) + "\n")
                self.recipe.save(self.folder)  # last: with it, this is a study
            self.listener.on_plan(self)
            # The quick ones first: something to look at within a minute.
            for stage, before in enumerate((None, self._prepare_text, self._pretrain, None)):
                arms = [arm for arm in self.recipe.arm_objects if arm.stage == stage]
                later = [arm for arm in self.recipe.arm_objects if stage <= arm.stage < 3]
                if before is not None and self.left(later):
                    before()
                self._train(arms)
            # Every training is finished, so nobody writes there any more.
            remove_leftovers(self.folder / "trainings")

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same when the study goes on: its data, and how its preset is trained."""
        protocol = PRESET_SETTINGS.get(self.recipe.preset, {}).get("finetune", {})
        known = {"preset's protocol": json.dumps(protocol, sort_keys=True)} if protocol else {}
        return {**self.data.identity, **known}

    @property
    def minutes(self) -> float:
        """Over all sessions; a kill loses those since the last finished training."""
        return self._before + (time.monotonic() - self._started) / 60

    def left(self, arms: Sequence[Arm]) -> list[RunKey]:
        """The trainings of these arms that are not finished."""
        names = {arm.name for arm in arms}
        return [run for run in self.runs if run.arm in names and not is_finished(self.folder, run)]

    @cached_property
    def context(self) -> StudyContext:
        """What every training of the study shares."""
        bases = {
            name: [str(self.base_folder(name, number)) for number in range(self.recipe.bases)]
            for name in self.recipe.objectives
        }
        return StudyContext(
            folder=self.folder,
            recipe=self.recipe,
            splits=self.data.splits,
            epochs=self.plan.epochs,
            tries=self.plan.tries,
            bases=bases if self.recipe.needs_base else {},
            tokenizer=str(self.folder / "tokenizer"),
            vectors=str(self.folder / "vectors.safetensors"),
            threads=self.plan.threads,
            arms=tuple(self.recipe.arm_objects),
        )

    def base_folder(self, objective: str, number: int = 0) -> Path:
        """Where a base is: the one that was given, or the study's own of this number."""
        folder = self.folder / "bases" / (f"{objective}-{number}" if number else objective)
        return local_base(self.recipe.base, folder) if self.recipe.base else folder

    def _train(self, arms: Sequence[Arm]) -> None:
        """The trainings of one stage: those with a network by the executor, the others first."""
        here = self.left([arm for arm in arms if not arm.is_network])
        networks = self.left([arm for arm in arms if arm.is_network])
        executor = find_executor(self.recipe.executor)
        if executor.is_here(len(networks), self.plan.jobs):
            here, networks = [*here, *networks], []
        # One training for each arm and objective: what these need is what all of them need.
        for run in {(run.arm, run.objective): run for run in [*here, *networks]}.values():
            find_arm(run.arm).prepare(self.context.for_run(run))
        heard: dict[str, Any] = {
            "on_start": self.listener.on_start,
            "on_epoch": self.listener.on_epoch,
            "on_done": self._done,
        }
        run_here(here, self.context, **heard)
        if networks:
            resources = self.recipe.resources(self.plan.threads)
            jobs = self.plan.jobs
            run_trainings(executor, networks, self.context, resources, jobs=jobs, **heard)

    def _done(self, run: RunKey) -> None:
        write_text(self.folder / MINUTES, f"{self.minutes:.3f}\n")
        if run.labels != self.plan.budgets[-1]:
            shutil.rmtree(self.context.run_folder(run), ignore_errors=True)  # cannot be the best
        self.listener.on_done(run)
        for waiting in self.left([arm for arm in self.recipe.arm_objects if arm.stage == 3]):
            members = find_arm(waiting.arm).members(waiting, self.recipe)
            if run in members and all(is_finished(self.folder, one) for one in members):
                run_one(waiting, self.context, self.listener.on_epoch)
                self.listener.on_done(waiting)

    def _prepare_text(self) -> None:
        """The tokenizer and, for arms that need them, the counted vectors."""
        place = self.folder / "tokenizer"
        width = study_preset(self.recipe).base.width
        if self.data.corpus is None:
            if self.recipe.tokenizer:
                place.mkdir(parents=True, exist_ok=True)
                load_tokenizer(Path(self.recipe.tokenizer)).save(place)
            elif not self.recipe.needs_base and not any(place.glob("*.json")):
                size = study_preset(self.recipe).base.vocab_size
                texts = self.data.task.texts(self.data.splits.train)
                train_task_tokenizer(texts, size, place)
            return
        place.mkdir(parents=True, exist_ok=True)
        self.prepared.tokenizer.save(place)
        if self.left([arm for arm in self.recipe.arm_objects if "vectors" in arm.needs]):
            path = self.folder / "vectors.safetensors"
            write_vectors(self.prepared, width, path, _Stages(self.listener))

    @cached_property
    def prepared(self) -> PretrainData:
        assert self.data.corpus is not None
        recipe = self._pretrain_recipe(self.recipe.objectives[0])
        return prepare_corpus(recipe, callback=_Stages(self.listener), corpus=self.data.corpus)

    def _pretrain_recipe(self, objective: str, seed: int = 0) -> PretrainConfig:
        return pretrain_recipe(
            self.recipe,
            objective,
            seed=seed,
            steps=self.plan.pretrain_steps or None,
            threads=self.plan.pretrain_threads,
        )

    def _pretrain(self) -> None:
        if self.recipe.base or not self.recipe.needs_base:
            return
        assert self.data.corpus is not None
        several = product(self.recipe.objectives, range(self.recipe.bases))
        for objective, number in several:
            recipe = self._pretrain_recipe(objective, number)
            with self.listener.pretraining(objective) as listener:
                folder = self.base_folder(objective, number)
                start = START if self.recipe.has_need("start") else None
                pretrain_base(recipe, folder, self.data.corpus, listener, keep_start=start)


def _read_minutes(folder: Path) -> float:
    path = folder / MINUTES
    return float(path.read_text(encoding="utf-8")) if path.is_file() else 0.0
