"""Co-occurrence vectors of a prepared corpus, counted and decomposed once and then kept."""

import json
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from headstart.cache import cache_folder
from headstart.files import replacing
from headstart.text.cooccurrence import cooccurrence_decomposition, scale_columns
from headstart.text.tokenizers.tokenizer import hash_of

if TYPE_CHECKING:
    from headstart.training.prepare import Prepared, Stages

FORMAT = 1  # of the kept files: raise it when other vectors are counted from the same tokens


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
    settings = json.dumps([width, seed, FORMAT])
    name = hash_of(store.folder.name.encode(), settings.encode())[:32]
    path = cache_folder() / "cooccurrences" / f"{name}.safetensors"
    try:
        kept = load_file(path)
        return scale_columns(kept["vectors"], kept["values"], power=power)
    except (OSError, SafetensorError, KeyError):
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
        save_file({"vectors": vectors, "values": values}, temporary)
    return scale_columns(vectors, values, power=power)
