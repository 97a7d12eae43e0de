"""Further pretraining: the base that a pretraining goes on from, ours or somebody else's."""

from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.model.config import BaseConfig, LanguageModelingConfig, MaskedNextSentenceConfig
from headstart.model.model import Model, new_head
from headstart.model.presets import preset_of
from headstart.model.swap import match_vocabulary
from headstart.objectives import find_objective
from headstart.run_folder import open_run
from headstart.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from headstart.training.recipe import PretrainRecipe


def usual_objective(base: str) -> str:
    """The objective that goes on with what a base has learned."""
    run = open_run(Path(base))
    if run.causal:
        return "causal"
    both = isinstance(run.model.head_config, MaskedNextSentenceConfig)
    return "masked+next-sentence" if both else "masked"


def base_tokenizer(recipe: PretrainRecipe) -> Tokenizer:
    """The base's own tokenizer, or the one that it goes over to."""
    if recipe.match_vocabulary:
        return load_tokenizer(Path(recipe.match_vocabulary))
    return open_run(Path(recipe.base)).tokenizer


def further_model(recipe: PretrainRecipe, tokenizer: Tokenizer) -> Model:
    """The base with a head for the recipe's objective: its own where it fits, else a fresh one."""
    run = open_run(Path(recipe.base))
    objective = find_objective(recipe.objective)
    _check(recipe, run.model.base.config, objective.attention)
    model = run.model
    if recipe.match_vocabulary:
        model = match_vocabulary(model, run.tokenizer, tokenizer)
    usual = objective.head(preset_of(model.base.config))
    if _answers(model.head_config, usual):
        return model.train()
    return Model(model.base, new_head(model.base, usual, seed=recipe.seed)).train()


def _answers(head: Any, usual: Any) -> bool:
    """Whether a head answers the objective's questions, with or without a bias and a transform."""
    predicts = isinstance(head, LanguageModelingConfig)
    return type(head) is type(usual) and (predicts or head == usual)


def _check(recipe: PretrainRecipe, base: BaseConfig, attention: str) -> None:
    if base.attention != attention:
        fitting = "causal" if base.attention == "causal" else "masked"
        raise HeadstartError(
            f"the base's attention is {base.attention}, and the objective {recipe.objective} needs "
            f"a {attention} one",
            where=recipe.base,
            fix=f"use --objective {fitting}, or another base",
        )
    if base.positions == "learned" and recipe.length > base.max_length:
        raise HeadstartError(
            f"rows of {recipe.length} tokens; the base has learned {base.max_length} positions",
            where=recipe.base,
            fix=f"give --length {base.max_length} or less",
        )
