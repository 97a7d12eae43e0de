"""The recipe of a study: every setting that was given, in one small TOML file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headstart.config import PretrainConfig, StudyConfig, hf_name, is_run, read_settings
from headstart.errors import HeadstartError
from headstart.model.checkpoint import CONFIG, read_config
from headstart.objectives import OBJECTIVES
from headstart.studies.arms import arms, find_arm
from headstart.studies.arms.arm import Arm
from headstart.studies.arms.foreign import know_foreign_arms
from headstart.studies.executors import find_executor
from headstart.studies.executors.protocol import Resources
from headstart.tasks import find_task
from headstart.tasks.task import Task

DEFAULT_LABELS = ("100", "400", "all")
# A study trains its network dozens of times: half as wide and half as deep as the preset, it takes
# a sixth of the time, and what it learns from a few million tokens transfers as well
# (research/recipes.md, "Depth").
STUDY_WIDTH, STUDY_LAYERS = 128, 2
DATASET, CORPUS = "rotten-tomatoes", "imdb"
CLASS_TASKS = ("classification", "pairs")


@dataclass(kw_only=True)
class StudyRecipe(StudyConfig):
    """The settings of a study, with what follows from its arms."""

    def problems(self) -> list[str]:
        know_foreign_arms(self.arms)
        problems = _unknown("arm", self.arms, list(arms())) + _unknown(
            "objective", self.objectives, list(OBJECTIVES)
        )
        if problems:
            return problems
        if self.uses_own_texts and not self.task_text:
            problems.append(
                "--no-task-text leaves no text to pretrain on; give --corpus FILE or choose "
                f"--arms {arms_without_corpus()}"
            )
        for arm in self.arm_objects:
            problems += arm.problems(self)
            if arm.class_only and not self.has_classes:
                problems.append(f"{arm.name} is for one class per row, not for {self.task}")
        if self.base and self.tokenizer:
            problems.append("the base has a tokenizer of its own; leave --tokenizer out")
        if self.base and self.bases > 1:
            problems.append("--bases is about bases that the study pretrains; --base names one")
        if self.bases > self.seeds:
            problems.append(
                f"{self.bases} bases for {self.seeds} seeds: each seed is fine-tuned from one "
                f"base, so give --seeds {self.bases} or more"
            )
        if self.base and self.sizes():
            problems.append(f"the base decides about {', '.join(self.sizes())}; leave it out")
        return problems + find_executor(self.executor).problems(self)

    def resources(self, threads: int = 1) -> Resources:
        """What the executor is asked for: as many cores as threads, unless others were given."""
        return Resources(
            cores=self.cores or threads,
            memory=self.memory or 0.0,
            gpus=self.gpus or 0,
            address=self.address or "",
            partition=self.partition or "",
            time_limit=self.time_limit or 0,
        )

    @property
    def has_classes(self) -> bool:
        """Whether each row has one class; the other tasks have metrics of their own."""
        return self.task in CLASS_TASKS

    @property
    def arm_objects(self) -> list[Arm]:
        """The arms by name, as objects."""
        return [find_arm(name) for name in self.arms]

    def has_need(self, need: str) -> bool:
        """Whether an arm of the study needs this: a base, vectors, …"""
        return any(need in arm.needs for arm in self.arm_objects)

    @property
    def uses_own_texts(self) -> bool:
        """Whether the training texts are the corpus, because none was given and an arm needs one.

        A base that exists already replaces the corpus, except where vectors are counted in it.
        """
        needed = {"vectors"} if self.base else {"vectors", "base"}
        return not self.corpus and any(arm.needs & needed for arm in self.arm_objects)

    @property
    def needs_base(self) -> bool:
        return self.has_need("base")

    @property
    def has_networks(self) -> bool:
        return any(arm.is_network for arm in self.arm_objects)


def make_study_recipe(**given: Any) -> StudyRecipe:
    """A recipe from what was given; the usual arms, labels and data fill the gaps."""
    dataset = given.pop("dataset", None) or [DATASET]
    corpus = given.pop("corpus", None) or ([CORPUS] if dataset == [DATASET] else [])
    task = find_task(given.get("task", "classification"))
    chosen = given.pop("arms", None) or default_arms(corpus, given.get("base") or "", task)
    know_foreign_arms(chosen)
    if not given.get("base") and given.get("preset", "small") == "small":
        given.setdefault("width", STUDY_WIDTH)
        given.setdefault("layers", STUDY_LAYERS)
    wanted = in_order(given.pop("objectives", None) or [], list(OBJECTIVES))
    if given.get("base"):
        wanted = _of_base(Path(given["base"]), wanted)
    return StudyRecipe.create(
        dataset=dataset,
        corpus=corpus,
        arms=in_order(chosen, list(arms())),
        objectives=wanted or [PretrainConfig.objective],
        labels=given.pop("labels", None) or [],
        **given,
    )


def default_arms(
    corpus: Sequence[str], base: str, task: type[Task[Any]] | None = None
) -> list[str]:
    """The usual arms; a base without its corpus has nothing to count co-occurrences in."""
    missing = {"start"} if base else set[str]()
    missing |= {"vectors"} if base and not corpus else set()
    classes = task is None or task.name in CLASS_TASKS
    usual = [arm for arm in arms().values() if arm.is_usual(task, classes=classes)]
    return [arm.name for arm in usual if not arm.needs & missing]


def arms_without_corpus() -> str:
    """The usual arms that learn from labelled rows alone."""
    usual = [arm for arm in arms().values() if arm.default]
    return ",".join(arm.name for arm in usual if not arm.needs_corpus and "arms" not in arm.needs)


def network_kind(objective: str) -> Literal["causal", "masked"]:
    """The kind of network that an objective pretrains, as presets name it."""
    return "causal" if OBJECTIVES[objective].attention == "causal" else "masked"


def _of_base(base: Path, wanted: list[str]) -> list[str]:
    """A base has the objective that it was pretrained with."""
    if hf_name(base) is not None:
        from headstart.training.initialization import base_objective  # which needs PyTorch

        own = base_objective(str(base))
    else:
        attention = read_config(base / CONFIG)["base"].get("attention", "causal")
        own = next(name for name in OBJECTIVES if OBJECTIVES[name].attention == attention)
    if is_run(base):
        own = str(read_settings(base).get("objective", own))
    if wanted not in ([], [own]):
        raise HeadstartError(
            f"the base was pretrained with {own}, not with {', '.join(wanted)}",
            where=base,
            fix="leave --objective out",
        )
    return [own]


def in_order(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Each name once, the known ones in the order in which they run."""
    unique = list(dict.fromkeys(names))
    return sorted(unique, key=lambda name: known.index(name) if name in known else len(known))


def _unknown(what: str, names: Sequence[str], known: Sequence[str]) -> list[str]:
    return [
        f"unknown {what} {name!r}; there are {', '.join(known)}"
        for name in names
        if name not in known
    ]
