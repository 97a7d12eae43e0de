"""How fast this machine trains this network: a few real steps, on made-up tokens.

Speed depends on the sizes alone, so the steps need neither the corpus nor a tokenizer, and a plan
can be shown before either is read.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from headstart.model.model import build_model
from headstart.model.presets import Preset
from headstart.objectives import find_objective
from headstart.objectives.objective import Batch
from headstart.training.optimizer import make_optimizer
from headstart.training.recipe import PretrainRecipe

TRIED = 3
READ_ROWS = 64


@dataclass(frozen=True)
class Pace:
    """Seconds; of fine-tuning for one training alone, with one job's share of the threads."""

    pretrain_step: dict[str, float]  # by objective
    trained_token: float
    read_token: float


def measure_finetuning(
    chosen: Preset, *, classes: int, batch_size: int, length: int, threads: int
) -> tuple[float, float]:
    """Seconds a token of training, and of reading without learning."""
    torch.set_num_threads(threads)
    model = build_model(chosen.base, chosen.classification(classes))
    optimizer = make_optimizer(model, learning_rate=1e-4, weight_decay=0.01, betas=(0.9, 0.999))
    tokens = _tokens(chosen, batch_size, length)
    labels = torch.zeros(batch_size, dtype=torch.long)

    def step() -> None:
        F.cross_entropy(model(tokens, torch.ones_like(tokens)), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    many = _tokens(chosen, READ_ROWS, length)

    @torch.no_grad()
    def read() -> None:
        model(many, torch.ones_like(many))

    return _seconds(step) / tokens.numel(), _seconds(read) / many.numel()


def measure_pretraining(chosen: Preset, recipe: PretrainRecipe) -> float:
    """Seconds of a step."""
    torch.set_num_threads(recipe.threads)
    objective = find_objective(recipe.objective)(mask_share=recipe.mask_share)
    model = build_model(chosen.base, objective.head(chosen))
    optimizer = make_optimizer(model, learning_rate=1e-4, weight_decay=0.1, betas=(0.9, 0.98))
    tokens = _tokens(chosen, recipe.rows, recipe.length)
    asked = tokens.numel() if objective.can_generate else round(tokens.numel() * recipe.mask_share)
    places = torch.randperm(tokens.numel())[:asked].sort().values
    pairs = recipe.objective.endswith("next-sentence")
    batch = Batch(
        tokens=tokens,
        positions=places,
        targets=tokens.flatten()[places],
        segments=torch.ones_like(tokens) if pairs else None,
        token_types=torch.zeros_like(tokens) if pairs else None,
        follows=torch.zeros(recipe.rows, dtype=torch.long) if pairs else None,
    )

    def step() -> None:
        (objective.loss(model, batch).total / asked).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return _seconds(step)


def _tokens(chosen: Preset, rows: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(chosen.base.vocab_size, (rows, length), generator=generator)


def _seconds(once: Callable[[], None]) -> float:
    once()  # the first one also warms up
    times = []
    for _ in range(TRIED):
        start = time.monotonic()
        once()
        times.append(time.monotonic() - start)
    return statistics.median(times)
