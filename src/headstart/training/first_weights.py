"""The weights before the first step: drawn, counted from the corpus, or somebody else's."""

import json
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.checksums import load_arrays, save_arrays
from headstart.errors import HeadstartError
from headstart.files import cache_folder, mark_used, replacing
from headstart.model.attention import SelfAttention
from headstart.model.heads import Transform
from headstart.model.model import Model, build_model
from headstart.objectives import find_objective
from headstart.text.cooccurrence import cooccurrence_decomposition, scale_columns
from headstart.text.tokenizers.tokenizer import hash_of
from headstart.training.further import further_model
from headstart.training.prepare import Prepared, Stages, find_preset, quiet
from headstart.training.recipe import NONE, PretrainRecipe

HANDED_ON = 0.5  # of the neighbours' mean; 0.2 learned more slowly


def first_model(recipe: PretrainRecipe, prepared: Prepared, *, stages: Stages = quiet) -> Model:
    """The base's weights, or fresh ones; by default their embedding starts from co-occurrence."""
    if recipe.base != NONE:
        return further_model(recipe, prepared.tokenizer).to(torch.device(recipe.device))
    chosen = find_preset(recipe, vocab_size=prepared.tokenizer.vocab_size)
    head = find_objective(recipe.objective).head(chosen)
    model = build_model(chosen.base, head, seed=recipe.seed)
    if recipe.embedding_start == "cooccurrence":
        start_embedding(model, recipe, prepared, stages=stages)
    return model.to(torch.device(recipe.device))


def start_embedding(
    model: Model, recipe: PretrainRecipe, prepared: Prepared, *, stages: Stages
) -> None:
    """Tokens that keep the same company start close to each other."""
    width = model.base.config.width
    vectors = count_vectors(prepared, width=width, power=0.5, seed=recipe.seed, stages=stages)
    deviation = float(vectors.std()) or 1.0
    scaled = torch.from_numpy(vectors * np.float32(recipe.start_deviation / deviation))
    met = torch.from_numpy(np.abs(vectors).sum(axis=1) > 0)
    with torch.no_grad():
        for weight in model.vocabulary_rows:
            if weight.ndim == 2:  # an output layer of its own starts from the same vectors
                weight[met] = scaled[met].to(weight.dtype)
    if model.base.config.attention == "bidirectional":
        pass_neighbours_on(model)


@torch.no_grad()
def pass_neighbours_on(model: Model) -> None:
    """Let attention hand on the neighbours' vectors as they are, and the head read them off.

    A causal base sees the token whose neighbour it must predict, so counted vectors help it at
    once. Where a token is hidden, only attention brings its neighbours in: through matrices of
    noise nothing of the counting would arrive. `bench/start.py` measures both.
    """
    width = model.base.config.width
    for module in model.modules():
        if isinstance(module, SelfAttention):
            module.query_key_value.weight[2 * width :] = torch.eye(width)  # the values
            module.output.weight.copy_(HANDED_ON * torch.eye(width))
        elif isinstance(module, Transform):
            module.dense.weight.copy_(torch.eye(width))


VECTORS_FORMAT = 1  # raise it when other vectors are counted from the same tokens


def count_vectors(
    prepared: "Prepared", *, width: int, power: float, seed: int = 0, stages: "Stages"
) -> NDArray[np.float32]:
    """U·S^power of the training text's co-occurrences (vocab_size × width).

    Parameters
    ----------
    prepared : Prepared
        The tokenized corpus; its store's name stands for text and tokenizer.
    width, seed : int
        Of the decomposition.
    power : float
        How much of the singular values the vectors carry. It is applied to what is kept, so that
        the start of a base (0.5) and a classifier on the vectors (1) share one counting.
    stages : callable
        Receives the progress of counting.
    """
    store = prepared.train.store
    settings = json.dumps([width, seed, VECTORS_FORMAT])
    name = hash_of(store.folder.name.encode(), settings.encode())[:32]
    path = cache_folder() / "cooccurrences" / f"{name}.safetensors"
    try:
        kept: dict[str, Any] = load_arrays(path, fix="delete the file")
        mark_used(path)
        return scale_columns(kept["vectors"], kept["values"], power=power)
    except (OSError, HeadstartError, KeyError):
        pass  # not counted yet, or damaged
    report = stages("counting co-occurrences")
    bytes_per_token = prepared.held_out_bytes / prepared.held_out.store.tokens
    vectors, values = cooccurrence_decomposition(
        store,
        vocab_size=prepared.tokenizer.vocab_size,
        width=width,
        ignore=sorted(prepared.tokenizer.specials.values()),
        seed=seed,
        progress=lambda done, total: report(
            round(done * bytes_per_token), round(store.tokens * bytes_per_token)
        ),
    )
    with replacing(path) as temporary:
        save_arrays({"vectors": vectors, "values": values}, temporary)
    return scale_columns(vectors, values, power=power)
