"""From labelled rows and a base (or none) to something that can be fine-tuned."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.base_source import is_foreign
from headstart.errors import HeadstartError
from headstart.machine import choose_threads
from headstart.model.config import BaseConfig
from headstart.model.model import Model, build_model
from headstart.model.presets import preset, preset_of, stock_head
from headstart.model.swap import SwapRow, match_vocabulary, swap_head
from headstart.run_folder import Run, open_run
from headstart.tasks import find_task
from headstart.tasks.examples import Examples, Long, TextEncoding
from headstart.tasks.task import Parts, Task
from headstart.tasks.token_dropout import TokenDropout
from headstart.text.checking.splits import take_budget
from headstart.text.reading.dataset import Splits
from headstart.text.reading.sources import check_outside
from headstart.text.store.token_source import LengthBatches
from headstart.text.tokenizers.tokenizer import Tokenizer, hash_of, load_tokenizer
from headstart.text.tokenizers.train_tokenizer import train_tokenizer
from headstart.training.bases import base_fingerprint, overlap_note
from headstart.training.checkpoints import Checkpoints
from headstart.training.listener import Listener
from headstart.training.prepare import Stages, quiet
from headstart.training.recipe import NONE, FinetuneRecipe
from headstart.training.recipe_file import (
    FILE,
    check_identity,
    read_values,
    refuse_a_second_run,
    resumed,
)


def read_splits(recipe: FinetuneRecipe, stages: Stages = quiet) -> Parts[Any]:
    """The parts of the recipe's dataset, the same ones every time."""
    parts: Parts[Any] = find_task(recipe.task).read(
        recipe.dataset,
        **recipe.reading(),
        second_column=recipe.second_column or None,
        progress=stages("reading the dataset"),
    )
    if not recipe.labels:
        return parts
    train = take_budget(parts.train, recipe.labels, recipe.seed)
    return Splits(train, parts.validation, parts.test)


PRETRAINING_LENGTH = 128  # of a base that does not say, and of none
CUT_LENGTH = 512  # of texts that are not read in windows


@dataclass(frozen=True)
class Start:
    """A tokenizer, and a model with a fresh head."""

    tokenizer: Tokenizer
    model: Model
    swap: list[SwapRow]  # what became of the base's parts; empty from scratch
    length: int = PRETRAINING_LENGTH  # tokens of a row that the base was pretrained on


@dataclass(frozen=True)
class FinetuneSetup:
    """What a fine-tuning works with: the result of `prepare_finetuning`."""

    recipe: FinetuneRecipe
    folder: Path
    resume: bool
    splits: Parts[Any]
    task: Task[Any]
    start: Start
    encoding: TextEncoding
    train: Examples
    validation: Examples
    weights: NDArray[np.float32]  # how much each training example counts
    dropout: TokenDropout | None  # what steps leave out; none where nothing is
    dropout_share: float  # of the training texts' tokens
    lengths: NDArray[np.int64]  # the longest row that each training example needs then
    order: LengthBatches
    notes: tuple[str, ...] = ()  # about the rows and the base, for a person to read
    save_seconds: float = 60.0  # between two checkpoints; changes no bit, so no setting

    @property
    def model(self) -> Model:
        return self.start.model

    @property
    def epochs(self) -> int:
        return self.recipe.epochs_that_fit or self.recipe.epochs

    @property
    def steps(self) -> int:
        return self.epochs * self.order.steps_per_epoch

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.folder / "checkpoints")

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """How many rows of a batch each training example takes."""
        return self.train.rows


def prepare_finetuning(
    recipe: FinetuneRecipe,
    folder: Path,
    *,
    splits: Parts[Any] | None = None,
    validation: Callable[[TextEncoding], Examples] | None = None,
    resume: bool = False,
    listener: Listener | None = None,
    save_seconds: float = 60.0,
) -> FinetuneSetup:
    """Read and encode the labelled rows, and give the base its new head."""
    listener = listener or Listener()
    check_outside(folder, recipe.dataset if splits is None else [])
    if resume:
        recipe = resumed(recipe, folder)
    else:
        refuse_a_second_run(folder)
    torch.set_num_threads(choose_threads(recipe.threads or None))
    own = overlap_note(recipe) if splits is None else None
    splits = read_splits(recipe, listener.stage) if splits is None else splits
    task: Task[Any] = find_task(recipe.task).of(splits.train)
    start = find_start(recipe, task, task.texts(splits.train), stages=listener.stage)
    if resume:
        check_identity(identity_of(recipe, splits, start.tokenizer), folder)
    start.model.base.embedding.sparse = True  # rows that no text of a step uses cost nothing
    encoding = encoding_for(recipe, task, start)
    train = task.encode(splits.train, encoding, progress=listener.stage("reading"))
    weights = task.balanced(splits.train, train) if recipe.balance else train.weights
    dropout = find_dropout(recipe, task, encoding, train)
    lengths, share = train.lengths, 0.0
    if dropout is not None:
        kept = train.kept_after(dropout)
        lengths = np.array([rows.max() for rows in kept], dtype=np.int64)
        tokens = sum(len(ids) for ids in train.tokens)
        share = 1 - sum(int(rows.sum()) for rows in kept) / max(1, tokens)
    encode = validation or (lambda encoding: task.encode(splits.validation, encoding))
    return FinetuneSetup(
        recipe=recipe,
        folder=folder,
        resume=resume,
        splits=splits,
        task=task,
        start=start,
        encoding=encoding,
        train=train,
        validation=encode(encoding),
        weights=weights,
        dropout=dropout if share else None,
        dropout_share=share,
        lengths=lengths,
        order=LengthBatches(lengths, batch_size=recipe.batch_size, seed=recipe.seed),
        notes=(*getattr(splits, "notes", ()), *([own] if own else [])),
        save_seconds=save_seconds,
    )


def find_dropout(
    recipe: FinetuneRecipe, task: Task[Any], encoding: TextEncoding, train: Examples
) -> TokenDropout | None:
    """What the recipe's steps leave out of these texts, if anything."""
    long = recipe.long_token_dropout if (train.rows > 1).any() else 0.0
    if not task.whole_texts or not (recipe.token_dropout or long):
        return None
    special = frozenset(encoding.tokenizer.specials.values())
    return TokenDropout(recipe.token_dropout, recipe.long_token_dropout, special)


def identity_of(recipe: FinetuneRecipe, splits: Parts[Any], tokenizer: Tokenizer) -> dict[str, str]:
    """Fingerprints of what a run is made of."""
    parts = [
        {name: value for name, value in vars(part).items() if value is not None}
        for part in (splits.train, splits.validation)
    ]
    identity = {
        "dataset": hash_of(json.dumps(parts, default=list).encode()),
        "tokenizer": tokenizer.fingerprint,
    }
    if recipe.base != NONE:
        identity["base"] = base_fingerprint(recipe.base)
    return identity


def find_start(
    recipe: FinetuneRecipe, task: Task[Any], texts: Sequence[str], *, stages: Stages
) -> Start:
    """The tokenizer, and a model with a fresh head for the task, drawn from the recipe's seed."""
    if recipe.base == NONE:
        tokenizer = _tokenizer(recipe, texts, stages)
        sizes = {**recipe.sizes(), "vocab_size": tokenizer.vocab_size}
        chosen = preset(recipe.preset, objective=recipe.objective, **sizes)  # type: ignore[arg-type]
        headless = build_model(chosen.base, seed=recipe.seed)
    else:
        run = _open_base(recipe)
        tokenizer, headless = run.tokenizer, run.model
        if recipe.match_vocabulary:
            tokenizer = load_tokenizer(Path(recipe.match_vocabulary))
            headless = match_vocabulary(headless, run.tokenizer, tokenizer)
        chosen = preset_of(headless.base.config)
        if recipe.fresh:
            headless = build_model(headless.base.config, seed=recipe.seed)
    length = PRETRAINING_LENGTH if recipe.base == NONE else reading_length(run, recipe.base)
    pooling: Any = recipe.pooling or None
    head = task.head(chosen, pooling)
    if recipe.head == "huggingface":
        head = stock_head(head, chosen.base, chosen_pooling=bool(recipe.pooling))
    swapped, rows = swap_head(headless, head, seed=recipe.seed)
    pretrained = recipe.base != NONE and not recipe.fresh
    return Start(tokenizer, swapped.to(recipe.device), rows if pretrained else [], length)


def reading_length(base: Run, name: str) -> int:
    """The rows that a base is used to: those of its pretraining, or of its own fine-tuning."""
    if is_foreign(name):
        return min(base.model.base.config.max_length, CUT_LENGTH)
    if base.task is not None and base.long == "windows":
        return base.length
    if base.task is not None or not (base.folder / FILE).is_file():
        return PRETRAINING_LENGTH
    return int(read_values(base.folder).get("length", 0)) or PRETRAINING_LENGTH


def encoding_for(recipe: FinetuneRecipe, task: Task[Any], start: Start) -> TextEncoding:
    """How texts are read: by default in windows as long as the base's rows in pretraining."""
    long: Long = recipe.long if recipe.long != "auto" else "windows" if task.windows else "cut"
    length = recipe.length or (start.length if long == "windows" else CUT_LENGTH)
    base = start.model.base.config
    if not recipe.length and base.positions == "learned":
        length = min(length, base.max_length)
    _check_length(length, base)
    return TextEncoding(start.tokenizer, length, long)


def _tokenizer(recipe: FinetuneRecipe, texts: Sequence[str], stages: Stages) -> Tokenizer:
    if recipe.tokenizer:
        return load_tokenizer(Path(recipe.tokenizer))
    objective: Any = recipe.objective
    vocab_size = preset(recipe.preset, objective=objective, **recipe.sizes()).base.vocab_size
    return train_tokenizer(
        texts,
        vocab_size=vocab_size,
        kind=recipe.tokenizer_kind,
        progress=stages("training the tokenizer"),
    )


def _open_base(recipe: FinetuneRecipe) -> Run:
    run = open_run(Path(recipe.base))
    if recipe.tokenizer:
        given = load_tokenizer(Path(recipe.tokenizer))
        if given.fingerprint != run.tokenizer.fingerprint:
            raise HeadstartError(
                f"the base has a vocabulary of its own: {run.tokenizer.vocab_size:,} pieces, and "
                f"the tokenizer that was given has {given.vocab_size:,} others",
                where=recipe.tokenizer,
                fix="leave --tokenizer out to use the base's, or carry the shared pieces over "
                f"with --match-vocabulary {recipe.tokenizer}",
            )
    return run


def _check_length(length: int, base: BaseConfig) -> None:
    if base.positions == "learned" and length > base.max_length:
        raise HeadstartError(
            f"a length of {length} is more than this base has positions: {base.max_length}",
            fix=f"give --length {base.max_length} or less; for longer texts add --long windows",
        )
