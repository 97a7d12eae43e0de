"""What a fine-tuning starts from: a base that was pretrained, or the same network from scratch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headstart.errors import HeadstartError
from headstart.model.config import BaseConfig, Pooling
from headstart.model.model import Model, build_model
from headstart.model.presets import Preset, preset, preset_of
from headstart.run_folder import Run, open_run
from headstart.tasks.examples import Long, TextEncoding
from headstart.tasks.task import Task
from headstart.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from headstart.text.tokenizers.train_tokenizer import train_tokenizer
from headstart.training.finetune_recipe import NONE, FinetuneRecipe
from headstart.training.prepare import Stages
from headstart.training.recipe_file import read_values
from headstart.transfer.match_vocabulary import match_vocabulary
from headstart.transfer.swap import SwapRow, swap_head

PRETRAINING_LENGTH = 128  # of a base that does not say, and of none
CUT_LENGTH = 512  # of texts that are not read in windows


@dataclass(frozen=True)
class Start:
    tokenizer: Tokenizer
    model: Model
    swap: list[SwapRow]  # what became of the base's parts; empty from scratch
    length: int = PRETRAINING_LENGTH  # tokens of a row that the base was pretrained on


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
    length = PRETRAINING_LENGTH
    if recipe.base != NONE:
        length = int(read_values(Path(recipe.base)).get("length", 0)) or PRETRAINING_LENGTH
    swapped, rows = swap_head(headless, _head(task, chosen, recipe.pooling), seed=recipe.seed)
    pretrained = recipe.base != NONE and not recipe.fresh
    moved = swapped.to(torch.device(recipe.device))
    return Start(tokenizer, moved, rows if pretrained else [], length)


def reading_for(recipe: FinetuneRecipe, task: Task[Any], start: Start) -> TextEncoding:
    """How texts are read: by default in windows as long as the base's rows in pretraining."""
    long: Long = recipe.long if recipe.long != "auto" else "windows" if task.windows else "cut"
    length = recipe.length or (start.length if long == "windows" else CUT_LENGTH)
    base = start.model.base.config
    if not recipe.length and base.positions == "learned":
        length = min(length, base.max_length)
    _check_length(length, base)
    return TextEncoding(start.tokenizer, length, long)


def _head(task: Task[Any], chosen: Preset, pooling: str) -> Any:
    given: Pooling | None = pooling or None  # type: ignore[assignment]
    return task.head(chosen, given)


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
