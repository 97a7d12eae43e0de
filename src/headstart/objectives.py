"""Pretraining objectives: how tokens become a batch, and a batch a loss.

A new objective is a class and a line in `OBJECTIVES`; its name is a choice of `--objective`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.data.batches import TokenSource, ViewsBatch
from headstart.errors import HeadstartError
from headstart.model.config import Attention, HeadConfig, MaskedNextSentenceConfig
from headstart.model.model import LanguageModelingLoss
from headstart.model.presets import Preset
from headstart.model.sampled_softmax import SampledClasses, SoftmaxTargets

MASKED, RANDOM = 0.8, 0.1  # shares of the chosen tokens; the rest stays
SPAN = 48  # tokens of a view
VIEW_DROPOUT = 0.3  # share of a view's tokens
TEMPERATURE = 0.1


@dataclass(frozen=True)
class Batch:
    """Input tokens, and which tokens are predicted at which positions."""

    tokens: Tensor  # (B, T)
    positions: Tensor  # (N): positions of the targets in the flattened batch
    targets: Tensor  # (N)
    segments: Tensor | None = None  # (B, T): 0 is padding; texts of a row are 1, 2, …
    token_types: Tensor | None = None  # (B, T)
    follows: Tensor | None = None  # (B): 1 where the second text follows the first
    targets_per_text: float = 0.0  # of the whole step, with `follows`
    sampled: SampledClasses | None = None  # classes of the output layer; None is all of them

    @property
    def real_tokens(self) -> int:
        return self.tokens.numel() if self.segments is None else int((self.segments > 0).sum())

    def to(self, device: torch.device) -> "Batch":
        moved = {
            name: value.to(device)
            for name, value in vars(self).items()
            if isinstance(value, Tensor | SampledClasses)
        }
        return replace(self, **moved)  # type: ignore[arg-type]

    def run(self, model: nn.Module) -> LanguageModelingLoss:
        """Compute the model's loss at the targets."""
        targets = SoftmaxTargets(self.positions, self.targets, self.sampled)
        loss: LanguageModelingLoss = model(self.tokens, self.segments, self.token_types, targets)
        return loss

    def split(self, rows: int) -> "list[Batch]":
        """Split into batches of at most `rows` rows; all use the same sampled classes."""
        length = self.tokens.size(1)
        parts = []
        for start in range(0, self.tokens.size(0), rows):
            first, stop = start * length, (start + rows) * length
            inside = (self.positions >= first) & (self.positions < stop)
            by_row = {
                name: value[start : start + rows]
                for name in ("tokens", "segments", "token_types", "follows")
                if (value := getattr(self, name)) is not None
            }
            positions, targets = self.positions[inside] - first, self.targets[inside]
            parts.append(replace(self, positions=positions, targets=targets, **by_row))
        return parts


@dataclass(frozen=True)
class Loss:
    """Sums over a batch, so that the losses of several batches can be added."""

    total: Tensor  # to be minimised, summed over the targets
    targets: int
    parts: dict[str, tuple[float, int]] = field(default_factory=dict)  # named sums and counts


class Objective(ABC):
    """One way to pretrain. An instance holds settings, no state."""

    attention: ClassVar[Attention]

    def __init__(self, *, mask_share: float) -> None:
        self.mask_share = mask_share

    @classmethod
    def head(cls, preset: Preset) -> HeadConfig | None:
        """Return the head that a preset's base is pretrained with."""
        return preset.language_modeling

    @abstractmethod
    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> Any:
        """Make a batch of `rows` rows: a pure function of the source and the key (seed, step)."""

    def batches(
        self, source: TokenSource, rows: int, key: tuple[int, int]
    ) -> list[Batch | ViewsBatch]:
        """Make the batches of a step, whose losses are added as means."""
        return [self.batch(source, rows, key)]

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        """Compute the summed loss of a batch. The model is only called, so it may be wrapped."""
        return Loss(batch.run(model).tokens, batch.targets.numel())

    def metrics(self, losses: Sequence[Loss]) -> dict[str, float]:
        """Return the held-out metrics of several batches: "loss", the parts, the perplexity."""
        loss = sum(float(one.total) for one in losses) / sum(one.targets for one in losses)
        parts = {}
        for name in losses[0].parts:
            values, counts = zip(*(one.parts[name] for one in losses), strict=True)
            parts[name] = sum(values) / sum(counts)
        token_loss = parts.get("masked_tokens", loss)
        return {"loss": loss, "perplexity": math.exp(min(token_loss, 50)), **parts}


class Causal(Objective):
    """Causal language modelling: predict the next token.

    Input: `<begin> A B C D`. Targets: `A B C D <end>`. The causal mask hides later tokens, so every
    position is a prediction. Every token is a target: this needs the fewest tokens to learn, and it
    is the only objective that can generate text. A token's hidden state contains nothing of what
    follows it; `masked` sees both sides, but learns only from the masked positions.
    """

    attention: ClassVar[Attention] = "causal"

    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> Batch:
        packed = source.rows(rows, key, extra=1)
        tokens, segments = packed.tokens[:, :-1], packed.segments[:, :-1]
        # What follows the end of a text is another text and cannot be predicted.
        is_target = (segments == packed.segments[:, 1:]) & (segments > 0)  # (B, T)
        return Batch(
            tokens=tokens,
            positions=is_target.flatten().nonzero().squeeze(1),
            targets=packed.tokens[:, 1:][is_target],
        )


class Masked(Objective):
    """Masked language modelling (BERT): predict hidden tokens from the rest of the text.

    Input: `A [MASK] C D`. Target: `B` at its position. A share of the tokens is chosen; of those,
    80 % become the mask token, 10 % a random one and 10 % stay as they are, so that the base cannot
    learn that only mask tokens matter. Both sides are visible, which suits classification and
    tagging. Only the chosen positions are scored, so a step is cheap at the output layer, but it
    also teaches less than a step of `causal`, and the base cannot generate. New masks are drawn
    each time a row is read.
    """

    attention: ClassVar[Attention] = "bidirectional"

    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> Batch:
        packed = source.rows(rows, key)
        return self.mask(source, packed.tokens, packed.segments, key)

    def mask(
        self, source: TokenSource, tokens: Tensor, segments: Tensor, key: tuple[int, int]
    ) -> Batch:
        """Choose and mask tokens; special tokens and padding are never targets."""
        if source.tokenizer.mask_id is None:
            raise HeadstartError(
                "this tokenizer has no mask token, which a masked objective needs",
                fix="use --objective causal, or omit --tokenizer",
            )
        changed, chosen = mask_tokens(
            tokens,
            (segments > 0) & ~torch.isin(tokens, source.special_ids),
            share=self.mask_share,
            mask_id=source.tokenizer.mask_id,
            vocab_size=source.tokenizer.vocab_size,
            generator=source.generator(key),
        )
        padded = bool((segments == 0).any())
        segments = (segments > 0).to(segments.dtype)  # they only tell padding from text
        return Batch(
            tokens=changed,
            positions=chosen.flatten().nonzero().squeeze(1),
            targets=tokens[chosen],
            segments=segments if padded else None,
        )


class NextSentence(Masked):
    """Masked language modelling and next sentence prediction together: BERT as published.

    Input: `<begin> A <separator> B <end>`, with tokens masked as in `masked`. Half of the time B
    continues A, else B is from another document. Targets: the masked tokens, and whether B follows
    A, predicted from the first token. Later work found that the second task adds little (Liu et al.
    2019), so try `masked` first.
    """

    @classmethod
    def head(cls, preset: Preset) -> HeadConfig:
        language_modeling = preset.language_modeling
        return MaskedNextSentenceConfig(
            tied=language_modeling.tied,
            bias=language_modeling.bias,
            transform=language_modeling.transform,
        )

    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> Batch:
        pairs = source.pairs(rows, key)
        masked = self.mask(source, pairs.tokens, pairs.segments, key)
        return replace(
            masked,
            token_types=pairs.token_types,
            follows=pairs.follows,
            targets_per_text=masked.targets.numel() / rows,
        )

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        tokens, scores = batch.run(model)
        assert batch.follows is not None
        assert scores is not None
        scores = scores.float()  # (B, 2)
        follows = F.cross_entropy(scores, batch.follows, reduction="sum")
        correct = float((scores.argmax(-1) == batch.follows).sum())
        targets, texts = batch.targets.numel(), batch.follows.numel()
        # Both losses as means, added as in BERT, then weighted by the targets like any other.
        # The ratio is the whole step's, so that the losses of its micro-batches add up.
        return Loss(
            tokens + follows * batch.targets_per_text,
            targets,
            {
                "masked_tokens": (float(tokens.detach()), targets),
                "next_sentence": (float(follows.detach()), texts),
                "next_sentence_accuracy": (correct, texts),
            },
        )


class Contrastive(Objective):
    """Contrastive learning on whole texts: two views of a document find each other in a batch.

    Two spans of a document are read apart from each other, each without some of its tokens. Their
    vectors (mean and maximum of the hidden states, then a projection that is not saved) are a
    positive pair; the views of all other documents of the batch are negatives (InfoNCE). It needs
    no output layer over the vocabulary and learns what a text is about, which few labels need most
    (DeCLUTR, Giorgi et al. 2021). Both sides of a token are visible, as in `masked`. It does not
    learn grammar, and the base cannot generate.
    """

    attention: ClassVar[Attention] = "bidirectional"
    language: ClassVar[type[Objective] | None] = None  # trained in the same steps
    documents: ClassVar[int] = 96  # of a step: each has all others as negatives

    def __init__(self, *, mask_share: float) -> None:
        super().__init__(mask_share=mask_share)
        self._language = None if self.language is None else self.language(mask_share=mask_share)

    @classmethod
    def head(cls, preset: Preset) -> HeadConfig | None:
        return None if cls.language is None else cls.language.head(preset)

    def batch(self, source: TokenSource, rows: int, key: tuple[int, int]) -> ViewsBatch:
        return source.views(self.documents, key, span=SPAN, dropout=VIEW_DROPOUT)

    def batches(
        self, source: TokenSource, rows: int, key: tuple[int, int]
    ) -> list[Batch | ViewsBatch]:
        own = super().batches(source, rows, key)
        language = self._language
        return own if language is None else [*language.batches(source, rows, key), *own]

    def loss(self, model: Any, batch: Batch | ViewsBatch) -> Loss:
        if isinstance(batch, Batch):
            assert self._language is not None
            return self._language.loss(model, batch)
        return contrastive_loss(model.project(batch.tokens, batch.segments), batch.documents)

    def metrics(self, losses: Sequence[Loss]) -> dict[str, float]:
        views = super().metrics([one for one in losses if "contrastive" in one.parts])
        del views["perplexity"]
        if self._language is None:
            return views
        tokens = self._language.metrics([one for one in losses if "contrastive" not in one.parts])
        return {**tokens, **views, "loss": tokens["loss"] + views["loss"]}


class CausalContrastive(Contrastive):
    """Causal language modelling and contrastive learning in the same steps."""

    attention: ClassVar[Attention] = "causal"
    language: ClassVar[type[Objective] | None] = Causal
    documents: ClassVar[int] = 48


class MaskedContrastive(Contrastive):
    """Masked language modelling and contrastive learning in the same steps."""

    language: ClassVar[type[Objective] | None] = Masked
    documents: ClassVar[int] = 48


def contrastive_loss(vectors: Tensor, documents: Tensor) -> Loss:
    """Compute InfoNCE in both directions: each view has to find the other one of its document.

    Parameters
    ----------
    vectors : Tensor of shape (B, 2, p)
        Unit vectors of both views of each document.
    documents : Tensor of shape (B,)
        Their numbers: another section of the same document is no negative.
    """
    scores = (vectors[:, 0] @ vectors[:, 1].T).float() / TEMPERATURE  # (B, B)
    target = torch.arange(len(scores), device=scores.device)
    same = documents.unsqueeze(0) == documents.unsqueeze(1)
    scores = scores.masked_fill(same.fill_diagonal_(False), float("-inf"))
    total = F.cross_entropy(torch.cat((scores, scores.T)), target.repeat(2), reduction="sum") / 2
    correct = float((scores.argmax(1) == target).sum())
    parts = {
        "contrastive": (float(total.detach()), len(scores)),
        "document_accuracy": (correct, len(scores)),
    }
    return Loss(total, len(scores), parts)


OBJECTIVES: dict[str, type[Objective]] = {
    "causal": Causal,
    "masked": Masked,
    "masked+next-sentence": NextSentence,
    "contrastive": Contrastive,
    "causal+contrastive": CausalContrastive,
    "masked+contrastive": MaskedContrastive,
}


def mask_tokens(
    tokens: Tensor,
    maskable: Tensor,
    *,
    share: float,
    mask_id: int,
    vocab_size: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Apply BERT's masking rule; return the changed tokens and the chosen positions, both (B, T).

    At least one position is chosen if any is maskable, so that no batch is without a target.
    """
    draw = torch.rand(tokens.shape, generator=generator)
    chosen = maskable & (draw < share)
    if not bool(chosen.any()):
        first = torch.where(maskable, draw, 2.0).flatten().argmin()
        chosen = maskable & (torch.arange(tokens.numel()).view_as(tokens) == first)
    kind = torch.rand(tokens.shape, generator=generator)
    random = torch.randint(vocab_size, tokens.shape, generator=generator)
    changed = torch.where(chosen & (kind < MASKED), mask_id, tokens)
    swapped = chosen & (kind >= MASKED) & (kind < MASKED + RANDOM)
    return torch.where(swapped, random, changed), chosen
