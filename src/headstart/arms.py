"""The arms of a study: the ways to get a model from labelled rows that a study compares.

An arm is a row of `ARMS`. Networks differ only in what they start from and in settings of
`FinetuneConfig`; linear arms name their estimator. To add an arm, add an entry. Nothing heavy is
imported here: `headstart compare --help` lists the arms.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from headstart.errors import HeadstartError

FOREIGN = "hf:"  # how the name of an arm begins whose base comes from Hugging Face
CLASS_TASKS = ("classification", "pairs")  # one class per row, and a probability for each class
LINEAR_TASKS = ("multi-label", "tagging")
OTHER_TASKS = (*LINEAR_TASKS, "spans")
ALL_TASKS = (*CLASS_TASKS, *OTHER_TASKS)

Need = Literal["tokenizer", "vectors", "base", "arms"]


class Colours(NamedTuple):
    """The colour of an arm in charts, and darker (or lighter) ones for text in it."""

    light: str
    dark: str
    light_text: str
    dark_text: str


@dataclass(frozen=True)
class Arm:
    """One way to get a model from labelled rows.

    Parameters
    ----------
    name : on the command line and in files.
    label : for people.
    description : one sentence.
    fit : how it is trained, a key of `jobs.FITS`.
    estimator : as "module:class"; saved runs of this class name the arm. The linear arm of tasks
        without classes has several.
    start : what a network starts from: the weights of the base, those before its first step of
        pretraining, or random ones.
    settings : in which a network differs from fine-tuning the base, for `FinetuneConfig`.
    needs : what must exist before it is trained.
    tasks : those that it can be trained for.
    usual : those whose studies have it where no arms are named.
    stackable : whether a stack combines it.
    is_reference : whether the last arm of `CHAIN` is compared with it, too.
    effect : what an arm of `CHAIN` adds to the one before it, as a part of a sentence.
    """

    name: str
    label: str
    description: str
    fit: str
    colours: Colours
    estimator: str = ""
    start: Literal["", "random", "initial", "base"] = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs: frozenset[Need] = frozenset()
    tasks: Sequence[str] = ALL_TASKS
    usual: Sequence[str] = ()
    stackable: bool = False
    is_reference: bool = False
    effect: str = ""

    @property
    def is_network(self) -> bool:
        """Whether it is a fine-tuned Transformer, which is trained in epochs."""
        return self.fit == "network"

    @property
    def is_foreign(self) -> bool:
        """Whether its base comes from Hugging Face: `hf:NAME`."""
        return self.name.startswith(FOREIGN)

    @property
    def uses_objective(self) -> bool:
        """Whether it is trained once for each pretraining objective."""
        return "arms" in self.needs or (self.is_network and not self.is_foreign)

    @property
    def varies_with_seed(self) -> bool:
        """Whether the seed changes anything where the training rows are the same."""
        return self.is_network or "arms" in self.needs


_TEXT: frozenset[Need] = frozenset({"tokenizer"})
_BASE: frozenset[Need] = frozenset({"tokenizer", "base"})

# In the order in which they are trained and listed. Okabe and Ito's palette, safe for colour-blind
# readers; the reference is grey.
ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(
            name="trivial",
            label="without reading",
            description="The majority class, the most frequent labels, no entity, or the first "
            "sentence.",
            fit="trivial",
            colours=Colours("#9b9b9b", "#7d7d7d", "#6f6f6f", "#a8a8a8"),
            usual=("pairs", *OTHER_TASKS),
        ),
        Arm(
            name="tfidf",
            label="TF-IDF",
            description="Word and character n-grams with TF-IDF weights, and a logistic "
            "regression.",
            fit="linear",
            estimator="headstart.baselines.linear:TfidfClassifier",
            colours=Colours("#767676", "#9a9a9a", "#666666", "#b0b0b0"),
            tasks=CLASS_TASKS,
            usual=CLASS_TASKS,
            stackable=True,
            is_reference=True,
        ),
        Arm(
            name="linear",
            label="linear model",
            description="TF-IDF and one logistic regression per label, or a linear tagger of "
            "words.",
            fit="linear",
            colours=Colours("#767676", "#9a9a9a", "#666666", "#b0b0b0"),
            tasks=LINEAR_TASKS,
            usual=LINEAR_TASKS,
            is_reference=True,
        ),
        Arm(
            name="nb",
            label="naive Bayes",
            description="Words and pairs of words, scaled by log-count ratios, and a logistic "
            "regression.",
            fit="linear",
            estimator="headstart.baselines.linear:NaiveBayesClassifier",
            colours=Colours("#7a8b99", "#9fb0bd", "#5d6d7a", "#b4c3cf"),
            tasks=CLASS_TASKS,
            stackable=True,
        ),
        Arm(
            name="cooc-lr",
            label="co-occurrence LR",
            description="Mean and maximum of PPMI-SVD token vectors of the corpus, and a logistic "
            "regression.",
            fit="linear",
            estimator="headstart.baselines.linear:CooccurrenceClassifier",
            colours=Colours("#cc79a7", "#e09ac1", "#a3507e", "#e09ac1"),
            needs=frozenset({"tokenizer", "vectors"}),
            tasks=CLASS_TASKS,
            usual=CLASS_TASKS,
            stackable=True,
        ),
        Arm(
            name="scratch",
            label="scratch",
            description="The network from random weights, trained on the labelled rows.",
            fit="network",
            start="random",
            colours=Colours("#d55e00", "#f0803c", "#b34f00", "#f0803c"),
            needs=_TEXT,
            usual=ALL_TASKS,
        ),
        Arm(
            name="cooc-init",
            label="co-occurrence init",
            description="The network with PPMI-SVD embeddings of the corpus, not pretrained; all "
            "weights are fine-tuned.",
            fit="network",
            start="initial",
            colours=Colours("#8a6d3b", "#c9a66b", "#735a2e", "#d3b57f"),
            needs=_BASE,
            usual=ALL_TASKS,
            effect="co-occurrence initialisation",
        ),
        Arm(
            name="pretrained",
            label="pretrained",
            description="The network after pretraining, with a new head; all weights are "
            "fine-tuned.",
            fit="network",
            start="base",
            colours=Colours("#0072b2", "#3d9fdc", "#0067a1", "#5cb3e8"),
            needs=_BASE,
            usual=ALL_TASKS,
            stackable=True,
            effect="pretraining",
        ),
        Arm(
            name="frozen",
            label="frozen",
            description="The network after pretraining, frozen; only its head is trained.",
            fit="network",
            start="base",
            settings={"freeze": True},
            colours=Colours("#56b4e9", "#9bd4f5", "#2077a8", "#9bd4f5"),
            needs=_BASE,
        ),
        Arm(
            name="stack",
            label="stack",
            description="The probabilities of other arms, combined with weights fitted to "
            "out-of-fold predictions.",
            fit="stack",
            estimator="headstart.baselines.stack:Stack",
            colours=Colours("#009e73", "#2cc496", "#007a59", "#2cc496"),
            needs=frozenset({"arms"}),
            tasks=CLASS_TASKS,
            usual=CLASS_TASKS,
        ),
    )
}

# What a study is about: each arm has one ingredient more than the one before.
CHAIN = ("scratch", "cooc-init", "pretrained")


def find_arm(name: str) -> Arm:
    """Return the arm of this name; `hf:NAME` is one, too. An unknown name is an error."""
    if name in ARMS:
        return ARMS[name]
    if not name.startswith(FOREIGN):
        raise HeadstartError(f"unknown arm {name!r}; the arms are {', '.join(ARMS)} and hf:NAME")
    short = Path(name.removeprefix(FOREIGN).partition("@")[0]).name
    return Arm(
        name=name,
        label=f"hf:{short}",
        description=f"{short}, with a new head; all weights are fine-tuned.",
        fit="network",
        start="base",
        colours=Colours("#8c6d1f", "#d9b44a", "#7a5f1a", "#e0c06a"),
        stackable=True,
    )


def arm_label(name: str) -> str:
    """Return the label of an arm."""
    return find_arm(name).label


def arm_order(names: Collection[str]) -> list[str]:
    """Sort names of arms as they are trained and listed: stacks last, `hf:NAME` before them."""
    order = {name: place for place, name in enumerate(ARMS)}
    order["stack"] = len(order) + 1
    return sorted(dict.fromkeys(names), key=lambda name: order.get(name, len(ARMS)))


def usual_arms(task: str, *, missing: Collection[str] = ()) -> list[str]:
    """List the arms of a study that names none, without those that need what is `missing`."""
    return [
        name
        for name, arm in ARMS.items()
        if task in arm.usual and not arm.needs & set(missing) and arm.start not in missing
    ]
