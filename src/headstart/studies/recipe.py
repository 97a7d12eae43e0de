"""The recipe of a study: everything that was asked for, in one small TOML file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.model.checkpoint import CONFIG, read_config
from headstart.training.recipe_file import FILE, Recipe, read_values

ARMS = ("tfidf", "cooccurrence", "scratch", "pretrained", "frozen", "stack")
DEFAULT_ARMS = ("tfidf", "cooccurrence", "scratch", "pretrained", "stack")
WITHOUT_NETWORK = ("tfidf", "cooccurrence")
NETWORKS = ("scratch", "pretrained", "frozen")
NEED_A_BASE = ("pretrained", "frozen")
STACKED = ("tfidf", "cooccurrence", "pretrained")
OBJECTIVES = ("causal", "masked", "masked+next-sentence")
DEFAULT_LABELS = ("100", "400", "all")
# A study trains its network dozens of times: half as wide as the preset, it takes a third of the
# time, and pretraining sees twice the text in the same minutes.
STUDY_WIDTH = 128
DATASET, CORPUS = "rotten-tomatoes", "imdb"


@dataclass(frozen=True, kw_only=True)
class StudyRecipe(Recipe):
    """Zero or nothing means "not given": the study decides, and its plan says how."""

    dataset: list[str]
    validation: str = ""
    test: str = ""
    text_column: str = ""
    label_column: str = ""
    encoding: str = "utf-8"
    drop_overlap: bool = False
    split_seed: int = 0
    corpus: list[str]
    base: str = ""  # an existing run; nothing is pretrained then
    tokens: int = 0  # of pretraining, for each objective
    arms: list[str]
    objectives: list[str]
    labels: list[str]
    seeds: int = 3
    epochs: int = 0
    minutes: float = 0.0
    preset: str = "small"
    vocab_size: int = 0
    width: int = 0
    layers: int = 0
    heads: int = 0
    feed_forward_width: int = 0
    length: int = 0  # tokens of a labelled text that are read
    jobs: int = 0
    threads: int = 0

    def _smallest(self, name: str) -> int:
        return 1 if name == "seeds" else 0

    def _cross_problems(self) -> list[str]:
        problems = _unknown("arm", self.arms, ARMS) + _unknown(
            "objective", self.objectives, OBJECTIVES
        )
        needy = [arm for arm in self.arms if arm in (*NEED_A_BASE, "cooccurrence")]
        if needy and not self.corpus and not (self.base and "cooccurrence" not in needy):
            problems.append(
                f"{', '.join(needy)}: there is no text to learn from without labels; "
                "give --corpus FILE or choose --arms tfidf,scratch"
            )
        if "stack" in self.arms and len(self.stacked) < 2:
            problems.append(
                f"a stack joins two or more of {', '.join(STACKED)}; "
                f"--arms has {', '.join(self.stacked) or 'none of them'}"
            )
        if self.base and self.sizes():
            problems.append(f"the base decides about {', '.join(self.sizes())}; leave it out")
        return problems

    @property
    def stacked(self) -> list[str]:
        """The arms that the stack joins."""
        return [arm for arm in STACKED if arm in self.arms]

    @property
    def needs_base(self) -> bool:
        return any(arm in self.arms for arm in NEED_A_BASE)


def make_study_recipe(**given: Any) -> StudyRecipe:
    """A recipe from what was given; the usual arms, labels and data fill the gaps."""
    dataset = given.pop("dataset", None) or [DATASET]
    corpus = given.pop("corpus", None) or ([CORPUS] if dataset == [DATASET] else [])
    arms = in_order(given.pop("arms", None) or default_arms(corpus, given.get("base", "")), ARMS)
    if not given.get("base") and given.get("preset", "small") == "small":
        given.setdefault("width", STUDY_WIDTH)
    objectives = in_order(given.pop("objectives", None) or [], OBJECTIVES)
    if given.get("base"):
        objectives = _of_base(Path(given["base"]), objectives)
    return StudyRecipe(
        dataset=dataset,
        corpus=corpus,
        arms=arms,
        objectives=objectives or ["causal"],
        labels=given.pop("labels", None) or [],
        **given,
    )


def default_arms(corpus: Sequence[str], base: str) -> list[str]:
    """Without a corpus there is nothing to count co-occurrences in."""
    if not corpus and not base:
        raise HeadstartError(
            "no corpus was given: there is no text to pretrain on",
            fix="add --corpus FILE (text without labels) or --base RUN; "
            "or compare without pretraining: --arms tfidf,scratch",
        )
    return [arm for arm in DEFAULT_ARMS if corpus or arm != "cooccurrence"]


def _of_base(base: Path, wanted: list[str]) -> list[str]:
    """A base has the objective that it was pretrained with."""
    attention = read_config(base / CONFIG)["base"].get("attention", "causal")
    own = "causal" if attention == "causal" else "masked"
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
