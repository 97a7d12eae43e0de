"""Small networks of every kind, for tests."""

import torch

from headstart.model.model import Model, build_model
from headstart.model.presets import preset

TINY = {"vocab_size": 30, "width": 16, "layers": 2, "heads": 2, "feed_forward_width": 24}
KINDS = [
    (name, objective)
    for name in ("lab", "small", "bert", "gpt2")
    for objective in ("causal", "masked")
]


def tiny(
    name: str = "lab", objective: str | None = None, head: str | None = None, **sizes
) -> Model:
    chosen = preset(name, objective=objective, **{**TINY, **sizes})
    config = {
        None: None,
        "language_modeling": chosen.language_modeling,
        "classification": chosen.classification(3),
    }[head]
    return build_model(chosen.base, config, seed=1).eval()


def tokens(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(30, shape, generator=torch.Generator().manual_seed(seed))
