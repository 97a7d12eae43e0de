"""What every arm says about itself, and what its training is given and returns."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:  # arms are listed by `headstart compare --help`, which must not wait for NumPy
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from headstart.studies.context import ArmContext
    from headstart.studies.outcomes import Measure, Outcome, RunKey
    from headstart.studies.recipe import StudyRecipe
    from headstart.tasks.task import Task

Need = Literal["tokenizer", "vectors", "base", "start", "arms"]
HeldOutPart = Literal["validation", "test"]
START = "start"  # the folder of a base's weights before the first step, inside the base's own
BYTES_PER_TOKEN = 4.0  # about, before there is a tokenizer


@dataclass(frozen=True)
class Colours:
    """An arm's colour in pictures, and a darker (or lighter) one for letters in it."""

    light: str
    dark: str
    light_text: str
    dark_text: str


@dataclass(frozen=True)
class Amounts:
    """How much text a study has, as far as files tell; tokens are an estimate."""

    text_tokens: float  # of a labelled text, at most the length that is read
    batch_size: int
    validation_rows: int
    test_rows: int
    corpus_bytes: int
    train_rows: int = 0  # with all labels
    dropout_share: float = 0.0  # of the tokens, which a training's steps leave out

    def megabytes(self, rows: int) -> float:
        """So many labelled rows."""
        return rows * self.text_tokens * BYTES_PER_TOKEN / 1e6


@dataclass(frozen=True)
class Effort:
    """How much a training of a network tries."""

    epochs: int  # of the usual setting
    tries: int = 2  # settings among which it chooses; none where validation chooses
    fixed: bool = False  # whether the epochs were given
    chosen: bool = False  # whether another seed has chosen already


@dataclass(frozen=True)
class Speed:
    """Measured seconds; of fine-tuning for one training alone, with one job's threads."""

    pretrain_step: dict[str, float]  # by objective
    trained_token: float
    read_token: float


@dataclass(frozen=True)
class Fitted:
    """What `Arm.fit` returns: how to answer, and what is worth keeping.

    `answer` takes "validation" or "test" and gives probabilities (rows × classes), or the answers
    of a task without classes in the form of `Task.join`. `seconds` are those of training; where
    they are None, fitting and answering are timed together. `own` are probabilities of rows of the
    budget itself by models that were not trained on them, and `own_rows` their numbers: what a
    stack, a temperature and the choice of the best arm rest on.
    """

    answer: Callable[[HeldOutPart], Any]
    facts: dict[str, Any] = field(default_factory=dict)
    measures: Sequence[Measure] = ()
    seconds: float | None = None
    own: NDArray[np.floating[Any]] | None = None
    own_rows: NDArray[np.int64] | None = None
    save: Callable[[Path], None] | None = None  # write the fitted classifier as a run


class Arm(ABC):
    """One way to get a classifier from labelled rows. An instance holds no state.

    Subclass it, set the attributes, write `fit`, and `register` an instance.
    """

    name: ClassVar[str]  # on the command line and in files
    label: ClassVar[str]  # for people
    description: ClassVar[str]  # one sentence
    colours: ClassVar[Colours] = Colours("#5c5c5c", "#a5a5a2", "#5c5c5c", "#a5a5a2")
    position: ClassVar[int] = 100  # among the arms of the same stage
    default: ClassVar[bool] = False  # whether a study that names no arms has it
    needs: ClassVar[frozenset[Need]] = frozenset()
    uses_objective: ClassVar[bool] = False  # trained once for each pretraining objective
    varies_with_seed: ClassVar[bool] = True  # also where the training rows are the same
    is_network: ClassVar[bool] = False  # trains in epochs, in a process of its own; keeps a run
    class_only: ClassVar[bool] = False  # gives probabilities of classes, and nothing else
    stackable: ClassVar[bool] = False  # may be joined by an arm that needs "arms"
    is_reference: ClassVar[bool] = False  # the headline arm is held against it, too, in words
    compared_with: ClassVar[str] = ""  # the arm that lacks only what this one is about …
    effect: ClassVar[str] = ""  # … and what that is called in a sentence
    between: ClassVar[tuple[str, ...]] = ()  # arms with a part of it, from that one to this

    @property
    def phrase(self) -> str:
        """What it does, as a part of a sentence: "what … needs all labels for"."""
        return self.label

    @property
    def stage(self) -> int:
        """When it can be trained: 0 at once, 1 with the tokenizer, 2 with bases, 3 after others."""
        if "arms" in self.needs:
            return 3
        if self.is_network or "base" in self.needs:
            return 2
        return 1 if self.needs else 0

    @property
    def needs_corpus(self) -> bool:
        """Whether text without labels is needed (a base that exists already may replace it)."""
        return bool(self.needs & {"vectors", "base"})

    def is_usual(self, task: type[Task[Any]] | None, *, classes: bool) -> bool:
        """Whether a study of this task that names no arms has it (none: one class per text)."""
        return self.default and (classes or not self.class_only)

    def seconds(self, labels: int, effort: Effort, amounts: Amounts, speed: Speed) -> float:
        """An estimate of one training, for the plan."""
        return 0.0

    def objectives(self, recipe: StudyRecipe) -> list[str]:
        """The objectives it is trained for; one empty name where it depends on none."""
        return recipe.objectives if self.uses_objective else [""]

    def members(self, run: RunKey, recipe: StudyRecipe) -> list[RunKey]:
        """The trainings that must be finished before this one; for arms that need "arms"."""
        return []

    def problems(self, recipe: StudyRecipe) -> list[str]:
        """What keeps it from being a part of this study, in words."""
        return []

    def prepare(self, context: ArmContext) -> None:  # noqa: B027 - most have nothing to share
        """Work that its trainings share, done once before the first of them."""

    @abstractmethod
    def fit(self, context: ArmContext) -> Fitted:
        """Train on the context's rows, from a checkpoint if there is one."""

    def train(self, context: ArmContext) -> Outcome:
        """Fit, and answer for validation and test, once.

        Parameters
        ----------
        context : ArmContext
            The rows, the study's files, and a function to report epochs to.

        Returns
        -------
        Outcome
            Measured values and probabilities, ready to be written.
        """
        from headstart.studies.outcomes import make_outcome

        started = time.monotonic()
        fitted = self.fit(context)
        validation = fitted.answer("validation")
        answering = time.monotonic()
        test = fitted.answer("test")
        ended = time.monotonic()
        # Choosing included; after a kill, at least what the training itself has counted.
        seconds = max(ended - started, fitted.seconds or 0.0)
        if fitted.save is not None and context.may_be_best:
            fitted.save(context.folder)
        facts = {**fitted.facts, "test_seconds": round(ended - answering, 3)}
        if "arms" not in self.needs and context.folder.is_dir():  # a stack's are its members'
            files = [file for file in context.folder.rglob("*") if file.is_file()]
            facts["bytes"] = sum(file.stat().st_size for file in files)
        return make_outcome(
            context.run,
            context.splits,
            validation,
            test,
            task=context.task,
            measures=fitted.measures,
            seconds=seconds,
            facts=facts,
            own=fitted.own,
            own_rows=fitted.own_rows,
        )
