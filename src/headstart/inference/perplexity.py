"""How well a causal base predicts a text it has not seen."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from headstart.errors import HeadstartError
from headstart.model.heads import LanguageModeling
from headstart.model.vocabulary_loss import chunked_cross_entropy
from headstart.run_folder import Run


@dataclass(frozen=True)
class Perplexity:
    documents: int
    tokens: int
    bytes: int
    loss: float  # nats per token

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 50.0))

    @property
    def bits_per_byte(self) -> float:
        return self.loss * self.tokens / math.log(2) / self.bytes


@torch.no_grad()
def perplexity(
    run: Run,
    documents: Iterable[str],
    *,
    length: int = 512,
    progress: Callable[[int, int | None], None] | None = None,
) -> Perplexity:
    """The mean loss over all tokens and ends of text; long texts are read in windows."""
    head, tokenizer = run.model.head, run.tokenizer
    assert isinstance(head, LanguageModeling)
    begin = [] if tokenizer.begin_id is None else [tokenizer.begin_id]
    end = [] if tokenizer.end_id is None else [tokenizer.end_id]
    total, tokens, size, count = 0.0, 0, 0, 0
    for document in documents:
        ids = [*begin, *tokenizer.encode([document])[0], *end]
        for start in range(0, max(1, len(ids) - 1), length):
            window = torch.tensor([ids[start : start + length + 1]])
            if window.size(1) < 2:
                continue
            hidden = head.transform(run.model.base(window[:, :-1])[0])
            loss = chunked_cross_entropy(
                hidden, head.output.weight, head.output.bias, window[0, 1:]
            )
            total += float(loss)
            tokens += window.size(1) - 1
        size += len(document.encode("utf-8", "surrogatepass"))
        count += 1
        if progress is not None:
            progress(count, None)
    if not tokens:
        raise HeadstartError("there is no text to measure")
    return Perplexity(count, tokens, size, total / tokens)
