"""A base as a language model: continue a prompt, fill gaps, measure perplexity."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headstart.data.dataset import batched
from headstart.errors import HeadstartError
from headstart.model.config import LanguageModelingConfig
from headstart.objectives import Batch
from headstart.progress import ProgressCallback
from headstart.run import NetworkRun

# What a base with a causal mask, or without it, cannot do.
OTHER_MASK = {
    True: (
        "causal",
        "the causal mask hides what follows the gap",
        "use headstart generate with it, or pretrain with --objective masked",
    ),
    False: (
        "masked",
        "it was trained to predict masked tokens from both sides, not to continue a text",
        "use headstart fill with it, or pretrain with --objective causal",
    ),
}


def open_language_model(folder: Path, *, causal: bool, to: str) -> NetworkRun:
    """Open a run; `to` names the action in the error of a run that does not support it."""
    run = NetworkRun.open(folder)
    if not isinstance(run.model.head_config, LanguageModelingConfig):
        raise HeadstartError(
            f"this run has no language-modelling head, so it cannot {to}",
            where=folder,
            fix="name a run of headstart pretrain",
        )
    if run.causal != causal:
        name, why, fix = OTHER_MASK[run.causal]
        raise HeadstartError(f"a {name} base cannot {to}: {why}", where=folder, fix=fix)
    return run


@torch.no_grad()
def generate(
    run: NetworkRun,
    prompt: str,
    *,
    tokens: int,
    temperature: float = 0.8,
    top_p: float = 1.0,
    seed: int = 0,
) -> Iterator[int]:
    """Yield up to `tokens` new tokens, until the end of the text; temperature 0 is greedy."""
    tokenizer, model = run.tokenizer, run.model
    ids = [*run.encoding.before, *tokenizer.encode([prompt])[0]]
    if not ids:
        raise HeadstartError("there is nothing to continue", fix="give a prompt")
    generator = torch.Generator().manual_seed(seed)
    never = [i for role, i in tokenizer.specials.items() if role != "end"]
    cache = model.base.new_cache()
    fresh = torch.tensor([ids])
    for _ in range(tokens):
        hidden = model.base(fresh, cache=cache)[:, -1:]  # (1, 1, d)
        scores = model.head(hidden)[0, -1].float()  # type: ignore[misc]
        scores[never] = float("-inf")
        scores[tokenizer.vocab_size :] = float("-inf")  # padding of the vocabulary
        token = pick(scores, generator, temperature, top_p)
        yield token
        if token == tokenizer.end_id:
            return
        fresh = torch.tensor([[token]])


def pick(scores: Tensor, generator: torch.Generator, temperature: float, top_p: float = 1) -> int:
    """Sample a token from scores (V,)."""
    if temperature == 0:
        return int(scores.argmax())
    ordered, order = (scores / temperature).softmax(-1).sort(descending=True, stable=True)
    # Keep the fewest tokens that reach top_p; the first one always stays.
    ordered[ordered.cumsum(-1) - ordered >= top_p] = 0
    return int(order[torch.multinomial(ordered, 1, generator=generator)])


@torch.no_grad()
def fill(run: NetworkRun, text: str, *, candidates: int = 5) -> list[list[tuple[str, float]]]:
    """Predict the most probable tokens for each `[MASK]` of a text, with their probabilities."""
    tokenizer = run.tokenizer
    if tokenizer.mask_id is None:
        raise HeadstartError("this run's tokenizer has no mask token", where=run.folder)
    parts = text.split("[MASK]")
    if len(parts) < 2:
        raise HeadstartError("the text has no [MASK]", fix="write [MASK] where a word is missing")
    # A space before a gap belongs to the token that fills it.
    encoded = tokenizer.encode([part.rstrip(" ") for part in parts[:-1]] + [parts[-1]])
    ids = [*run.encoding.before, *encoded[0]]
    for part in encoded[1:]:
        ids += [tokenizer.mask_id, *part]
    tokens = torch.tensor([[*ids, *run.encoding.after]])
    scores = run.model(tokens)[0].float()  # (T, V)
    scores[:, sorted(tokenizer.specials.values())] = float("-inf")
    scores[:, tokenizer.vocab_size :] = float("-inf")  # padding of the vocabulary
    filled = []
    for gap in scores[tokens[0] == tokenizer.mask_id]:
        best = gap.softmax(-1).topk(min(candidates, len(gap)))
        words = [tokenizer.decode([token]) for token in best.indices.tolist()]
        filled.append(list(zip(words, best.values.tolist(), strict=True)))
    return filled


@torch.no_grad()
def perplexity(
    run: NetworkRun,
    documents: Iterable[str],
    *,
    length: int = 512,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Compute the mean loss, in nats, over all tokens and ends of text, in windows of `length`."""
    total, tokens, size, count = 0.0, 0, 0, 0
    rows = max(1, 4_096 // (length + 1))  # at once
    for texts in batched(documents, count=256):
        windows: list[list[int]] = []
        for document in run.tokenizer.encode(texts):
            ids = [*run.encoding.before, *document, *run.encoding.after]
            starts = range(0, len(ids) - 1, length)
            windows += [ids[start : start + length + 1] for start in starts]
        windows.sort(key=len)  # little padding
        for first in range(0, len(windows), rows):
            total += _summed_loss(run, windows[first : first + rows])
        tokens += sum(len(window) - 1 for window in windows)
        size += sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        count += len(texts)
        if progress is not None:
            progress(count, None)
    if not tokens:
        raise HeadstartError("there is no text to measure")
    return {
        "documents": count,
        "tokens": tokens,
        "bytes": size,
        "loss": total / tokens,
        "perplexity": math.exp(min(total / tokens, 50.0)),
        "bits_per_byte": total / math.log(2) / size,
    }


def _summed_loss(run: NetworkRun, windows: list[list[int]]) -> float:
    """Sum the losses of all tokens but the first of each window, without padding."""
    width = max(map(len, windows))
    tokens = torch.tensor([window + [0] * (width - len(window)) for window in windows])
    lengths = torch.tensor([len(window) - 1 for window in windows])
    real = torch.arange(width - 1) < lengths[:, None]  # (B, T)
    batch = Batch(tokens[:, :-1], real.flatten().nonzero().squeeze(1), tokens[:, 1:][real])
    return float(batch.run(run.model).tokens)
