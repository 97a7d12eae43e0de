"""The recipe of a study: every setting that was given, in one small TOML file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from headstart import lab
from headstart.base_source import source_of
from headstart.errors import HeadstartError
from headstart.machine import Precision
from headstart.model.checkpoint import CONFIG, read_config
from headstart.objectives import OBJECTIVES, find_objective
from headstart.studies.arms import arms, find_arm
from headstart.studies.arms.arm import Arm
from headstart.studies.arms.foreign import know_foreign_arms
from headstart.studies.executors import EXECUTORS, find_executor
from headstart.studies.executors.protocol import Resources
from headstart.tasks import find_task
from headstart.tasks.task import Task
from headstart.training.recipe import PretrainRecipe
from headstart.training.recipe_file import FILE, Recipe, read_values

DEFAULT_LABELS = ("100", "400", "all")
# A study trains its network dozens of times: half as wide and half as deep as the preset, it takes
# a sixth of the time, and what it learns from a few million tokens transfers as well
# (docs/recipes.md, "Depth").
STUDY_WIDTH, STUDY_LAYERS = 128, 2
DATASET, CORPUS = "rotten-tomatoes", "imdb"
CLASS_TASKS = ("classification", "pairs")


@dataclass(frozen=True, kw_only=True)
class StudyRecipe(Recipe):
    """Zero or nothing means "not given": the study decides, and its plan says how."""

    dataset: list[str]
    name: str = ""  # what the report calls the dataset; by default its file
    task: str = "classification"
    validation: str = ""
    test: str = ""
    text_column: str = ""
    second_column: str = ""  # of pairs
    label_column: str = ""
    encoding: str = "utf-8"
    drop_overlap: bool = False
    split_seed: int = 0
    corpus: list[str]
    documents: str = ""  # what one document of a plain text corpus is
    held_out: float = 0.0  # share of the corpus's documents; by default as the corpus needs it
    task_text: Literal["on", "off"] = "on"  # whether the training texts join the corpus
    tokenizer: str = ""  # a file; without one, a tokenizer is trained on the corpus
    base: str = ""  # an existing run; nothing is pretrained then
    tokens: int = 0  # of pretraining, for each objective
    arms: list[str]
    objectives: list[str]
    labels: list[str]
    seeds: int = 3
    bases: int = 1  # pretrainings of each objective; the seeds take turns with them
    # Who pays for choices of epochs, strengths, weights and temperatures: the label budget itself,
    # or labelled validation rows beside it. With "nothing", networks take all their epochs and keep
    # the last one; no rows are spent on choosing.
    choose_by: Literal["budget", "validation", "nothing"] = "budget"
    epochs: int = 0
    minutes: float = 0.0
    preset: str = "small"
    vocab_size: int = 0
    width: int = 0
    layers: int = 0
    heads: int = 0
    feed_forward_width: int = 0
    length: int = 0  # tokens of a labelled text that are read
    threads: int = 0
    precision: Precision = "fp32"  # not what is faster here: studies are alike everywhere
    # Where trainings run, and what is asked for each; a resumed study may choose anew.
    executor: str = "local"
    jobs: int = 0  # trainings at a time
    address: str = ""  # of the executor's cluster
    cores: int = 0
    memory: float = 0.0  # GB
    gpus: int = 0
    partition: str = ""  # Slurm's
    time_limit: int = 0  # minutes of a Slurm job

    may_differ: ClassVar[frozenset[str]] = frozenset(
        ("executor", "jobs", "address", "cores", "memory", "gpus", "partition", "time_limit")
    )

    def _smallest(self, name: str) -> int:
        return 1 if name in ("seeds", "bases") else 0

    def _cross_problems(self) -> list[str]:
        know_foreign_arms(self.arms)
        problems = _unknown("arm", self.arms, list(arms())) + _unknown(
            "objective", self.objectives, list(OBJECTIVES)
        )
        problems += _unknown("executor", [self.executor], list(EXECUTORS.entries()))
        if problems:
            return problems
        if self.uses_own_texts and self.task_text == "off":
            problems.append(
                "--task-text off leaves no text to pretrain on; give --corpus FILE or choose "
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
            memory=self.memory,
            gpus=self.gpus,
            address=self.address,
            partition=self.partition,
            time_limit=self.time_limit,
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
    chosen = given.pop("arms", None) or default_arms(corpus, given.get("base", ""), task)
    know_foreign_arms(chosen)
    if not given.get("base") and given.get("preset", "small") == "small":
        given.setdefault("width", STUDY_WIDTH)
        given.setdefault("layers", STUDY_LAYERS)
    if given.get("preset") == lab.PRESET:
        given.setdefault("choose_by", "nothing")  # the lab's protocol: all epochs
    wanted = in_order(given.pop("objectives", None) or [], list(OBJECTIVES))
    if given.get("base"):
        wanted = _of_base(Path(given["base"]), wanted)
    return StudyRecipe(
        dataset=dataset,
        corpus=corpus,
        arms=in_order(chosen, list(arms())),
        objectives=wanted or [PretrainRecipe.objective],
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
    return "causal" if find_objective(objective).attention == "causal" else "masked"


def _of_base(base: Path, wanted: list[str]) -> list[str]:
    """A base has the objective that it was pretrained with."""
    if source_of(base) is not None:
        from headstart.training.further import usual_objective  # which needs PyTorch

        own = usual_objective(str(base))
    else:
        attention = read_config(base / CONFIG)["base"].get("attention", "causal")
        own = next(name for name, kind in OBJECTIVES.items() if kind.attention == attention)
    if (base / FILE).is_file():
        own = str(read_values(base).get("objective", own))
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
