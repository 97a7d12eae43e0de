"""Recipes of pretraining and fine-tuning: every setting, in a TOML file that can be run again."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from headstart.base_source import is_foreign
from headstart.machine import Precision
from headstart.model.config import POOLINGS
from headstart.training.recipe_file import Recipe, protocol_of, read_recipe_as
from headstart.training.schedule import Shape, Strategy

NONE = "none"
NETWORK = "network"
# Weights that somebody trained for weeks forget at the rates with which ours are trained.
OTHERS_PRETRAINING: dict[str, Any] = {"learning_rate": 1e-4}
OTHERS_FINETUNING: dict[str, Any] = {"learning_rate": 5e-5}


@dataclass(frozen=True, kw_only=True)
class PretrainRecipe(Recipe):
    """Zero means "not given": the preset's size, or the amount that another setting decides."""

    corpus: list[str]
    base: str = NONE  # a run's folder, or hf:…, whose pretraining goes on
    match_vocabulary: str = ""  # a tokenizer that the base goes over to
    objective: str = "causal"
    preset: str = "small"
    vocab_size: int = 0
    width: int = 0
    layers: int = 0
    heads: int = 0
    feed_forward_width: int = 0
    tokenizer: str = ""  # a file; without one, a tokenizer is trained on the corpus
    tokenizer_kind: Literal["bpe", "unigram"] = "bpe"
    text_column: str = ""
    encoding: str = "utf-8"
    documents: str = ""
    task_text: str = ""  # a labelled dataset whose training texts join the corpus, mostly last
    length: int = 128
    batch_tokens: int = 1_024  # few tokens are learned best in many small steps
    micro_batch_tokens: int = 8_192  # what is held in memory at once
    separate: bool = False  # keep the texts of a packed row from seeing each other
    mask_share: float = 0.3
    output: Literal["auto", "full", "candidates"] = "auto"  # what a step's output layer scores
    frequent: int = 512  # candidates: this many of the most frequent pieces,
    drawn: int = 512  # and this many draws from the others, beside the step's targets
    embedding_start: Literal["cooccurrence", "random"] = "cooccurrence"
    start_deviation: float = 0.05
    minutes: float = 0.0
    epochs: float = 0.0
    tokens: int = 0
    steps: int = 0
    learning_rate: float = 2e-3
    embedding_learning_rate: float = 0.0  # of embedding and output rows; 0 is the same rate
    warmup: float = 0.05
    weight_decay: float = 0.1
    held_out: float = 0.0  # share of the documents; by default as the corpus needs it
    evaluations: int = 10
    seed: int = 0
    device: str = "cpu"
    threads: int = 0  # without a number, as many as are faster; of each process
    processes: int = 1  # that share every batch; they change nothing but the rounding
    shard: bool = False  # whether they share the blocks' weights and moments, too
    precision: Precision = "fp32"

    may_differ: ClassVar[frozenset[str]] = frozenset({"shard"})  # but for rounding

    def _smallest(self, name: str) -> int:
        if name == "length":
            return 2
        return 1 if name.endswith("batch_tokens") or name == "processes" else 0

    def _cross_problems(self) -> list[str]:
        problems = []
        if not self.corpus:
            problems.append("no corpus was given")
        given = [name for name in AMOUNTS if getattr(self, name)]
        if len(given) > 1:
            problems.append(f"--{' and --'.join(given)} cannot go together; give one")
        if not self.learning_rate:
            problems.append("learning_rate is 0; nothing would be learned")
        if self.base == NONE and self.match_vocabulary:
            problems.append("match_vocabulary needs a base")
        if self.base != NONE and (given := [*self.sizes(), *["tokenizer"] * bool(self.tokenizer)]):
            problems.append(f"the base decides about {', '.join(given)}; leave it out")
        if self.processes > self.rows:
            problems.append(
                f"processes is {self.processes}, and a step has only {self.rows} rows to share"
            )
        if self.shard and self.device != "cpu":
            problems.append(f"shard is for processors, and device is {self.device}; use cpu")
        if self.shard and self.precision != "fp32":
            problems.append("shard needs precision fp32: in bf16 each process keeps every block")
        if not 0 < self.mask_share < 1:
            problems.append(f"mask_share is {self.mask_share}; it must lie between 0 and 1")
        return problems

    @property
    def rows(self) -> int:
        """Rows of a step."""
        return max(1, self.batch_tokens // self.length)


OutputLayer = Literal["full", "candidates"]
AMOUNTS = ("minutes", "epochs", "tokens", "steps")


def make_pretrain_recipe(**given: Any) -> PretrainRecipe:
    """A recipe from what was given; some presets bring settings of their own with them."""
    usual = OTHERS_PRETRAINING if _others(given) else {}
    return PretrainRecipe(**{**usual, **protocol_of(given.get("preset"), "pretraining"), **given})


def read_recipe(folder: Path) -> PretrainRecipe:
    """The recipe of a pretraining's run folder."""
    return read_recipe_as(PretrainRecipe, folder)


@dataclass(frozen=True, kw_only=True)
class FinetuneRecipe(Recipe):
    """Zero or nothing means "not given": what the preset, the base or another setting decides."""

    dataset: list[str]
    task: str = "classification"
    validation: str = ""
    test: str = ""
    text_column: str = ""
    second_column: str = ""  # of pairs
    label_column: str = ""
    encoding: str = "utf-8"
    drop_overlap: bool = False
    split_seed: int = 0  # of the parts that are cut from the dataset; not the training's seed
    labels: str = ""  # how many of the training rows, drawn by the seed: 100, 10%; else all
    arm: str = NETWORK  # or a classifier without one (tfidf, …), or a stack of both
    base: str = NONE  # a run's folder, or hf:…
    fresh: bool = False  # draw the base's weights anew: the same network, from scratch
    objective: str = "causal"  # what a network without a base looks like: causal or masked
    preset: str = "small"
    vocab_size: int = 0
    width: int = 0
    layers: int = 0
    heads: int = 0
    feed_forward_width: int = 0
    tokenizer: str = ""  # a file or a run; without one it is trained on the training texts
    tokenizer_kind: Literal["bpe", "unigram"] = "bpe"
    match_vocabulary: str = ""  # a tokenizer to go over to
    pooling: str = ""
    head: Literal["own", "huggingface"] = "own"  # or the one that stock transformers has
    new_head: Literal["fitted", "drawn"] = "fitted"  # by regression, or at random
    strategy: Strategy = "full"
    layer_decay: float = 1.0
    epochs: int = 5
    minutes: float = 0.0  # fewer epochs, where more would take longer
    epochs_that_fit: int = 0  # measured: as many as the minutes allow
    patience: int = 0  # epochs without a better one, then training ends; 0 never does
    # Which epoch is kept: the best on validation by the task's metric or by its loss, or the last
    # one, whatever validation says.
    choose_by: Literal["metric", "loss", "last"] = "metric"
    batch_size: int = 16
    micro_batch_tokens: int = 8_192  # what is held in memory at once
    length: int = 0  # tokens of a row; by default those of the base's pretraining, or 512 cut
    long: Literal["auto", "cut", "windows"] = "auto"  # windows, where the task can use them
    learning_rate: float = 3e-4
    schedule: Shape = "linear"
    warmup: float = 0.1
    weight_decay: float = 0.01
    balance: bool = False
    label_smoothing: float = 0.0
    token_dropout: float = 0.0  # share of each text's tokens left out, others in every epoch
    long_token_dropout: float = 0.35  # the same of a text that does not fit into one window
    average: float = 0.0  # share of the epochs, counted from the end, whose weights are averaged;
    # ^ a training that patience ends before them has none
    seed: int = 0
    device: str = "cpu"
    threads: int = 0  # without a number, as many as are faster
    precision: Precision = "fp32"

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        return for_long_texts({"token_dropout": 0.0, **values})

    def _smallest(self, name: str) -> int:
        return 1 if name in ("epochs", "batch_size", "micro_batch_tokens") else 0

    def _cross_problems(self) -> list[str]:
        problems = []
        if not self.dataset:
            problems.append("no dataset was given")
        if self.choose_by == "last" and self.patience:
            problems.append("patience waits for a better epoch, and choose_by last takes the last")
        if self.pooling and self.pooling not in POOLINGS:
            problems.append(f"pooling is {self.pooling!r}; it can be {', '.join(POOLINGS)}")
        if self.objective not in ("causal", "masked"):
            problems.append(f"objective is {self.objective!r}; it can be causal, masked")
        if not 0 < self.layer_decay <= 1:
            problems.append(f"layer_decay is {self.layer_decay}; it must be above 0, at most 1")
        if not self.learning_rate:
            problems.append("learning_rate is 0; nothing would be learned")
        if self.label_smoothing >= 1:
            problems.append(f"label_smoothing is {self.label_smoothing}; it must be below 1")
        if self.token_dropout >= 1 or self.long_token_dropout >= 1:
            share = max(self.token_dropout, self.long_token_dropout)
            problems.append(f"token_dropout is {share}; it must be below 1")
        if self.labels and self.task != "classification":
            problems.append(f"labels is {self.labels!r}; a budget is for classification only")
        if self.base == NONE and (self.fresh or self.match_vocabulary):
            problems.append("fresh and match_vocabulary need a base")
        if self.base != NONE and self.sizes():
            problems.append(f"the base decides about {', '.join(self.sizes())}; leave it out")
        return problems


def make_recipe(**given: Any) -> FinetuneRecipe:
    """A recipe from what was given; some presets bring settings of their own with them."""
    usual = OTHERS_FINETUNING if _others(given) else {}
    settings = {**usual, **protocol_of(given.get("preset"), "finetuning"), **given}
    return FinetuneRecipe(**for_long_texts(settings))


def for_long_texts(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, where a `token_dropout` that was given is that of long texts, too."""
    if "token_dropout" not in settings:
        return settings
    return {"long_token_dropout": settings["token_dropout"], **settings}


def _others(given: Mapping[str, Any]) -> bool:
    """Whether the base is somebody else's, such as `hf:PATH`."""
    return is_foreign(str(given.get("base", NONE)))


def read_finetune_recipe(folder: Path) -> FinetuneRecipe:
    """The recipe of a fine-tuning's run folder."""
    return read_recipe_as(FinetuneRecipe, folder)
