"""Continue a prompt, one token at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.model.cache import KeyValueCache
from headstart.run_folder import Run


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a token is chosen. Temperature 0 is greedy: always the most probable one."""

    temperature: float = 0.8
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise HeadstartError(f"temperature is {self.temperature}; it must be 0 or more")
        if self.top_k < 0:
            raise HeadstartError(f"top-k is {self.top_k}; it must be 0 (all) or more")
        if not 0 < self.top_p <= 1:
            raise HeadstartError(f"top-p is {self.top_p}; it must be above 0 and at most 1")


@dataclass(frozen=True)
class GeneratedToken:
    """One new token, and the most probable ones at its place."""

    token: int
    alternatives: list[tuple[int, float]]  # before top-k and top-p


@torch.no_grad()
def generate(
    run: Run, prompt: str, *, tokens: int, sampling: Sampling, alternatives: int = 5
) -> Iterator[GeneratedToken]:
    """Yield up to `tokens` tokens; the end of the text ends it."""
    tokenizer, model = run.tokenizer, run.model
    begin = [] if tokenizer.begin_id is None else [tokenizer.begin_id]
    ids = [*begin, *tokenizer.encode([prompt])[0]]
    if not ids:
        raise HeadstartError("there is nothing to continue", fix="give a prompt")
    generator = torch.Generator().manual_seed(sampling.seed)
    never = [i for role, i in tokenizer.specials.items() if role != "end"]
    cache = KeyValueCache(model.base.config.layers)
    fresh = torch.tensor([ids])
    for _ in range(tokens):
        hidden = model.base(fresh, cache=cache)[:, -1:]  # (1, 1, d)
        scores = model.head(hidden)[0, -1].float()  # type: ignore[misc]
        scores[never] = float("-inf")
        probable = scores.softmax(-1).topk(min(alternatives, scores.numel()))
        token = pick(scores, sampling, generator)
        pairs = zip(probable.indices.tolist(), probable.values.tolist(), strict=True)
        yield GeneratedToken(token, list(pairs))
        if token == tokenizer.end_id:
            return
        fresh = torch.tensor([[token]])


def pick(scores: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """Choose a token from its scores (V)."""
    if sampling.temperature == 0:
        return int(scores.argmax())
    probabilities = (scores / sampling.temperature).softmax(-1)
    ordered, order = probabilities.sort(descending=True, stable=True)
    if sampling.top_k:
        ordered[sampling.top_k :] = 0
    # Keep the fewest tokens that reach top_p; the first one always stays.
    ordered[ordered.cumsum(-1) - ordered >= sampling.top_p] = 0
    return int(order[torch.multinomial(ordered, 1, generator=generator)])
