"""An export, opened again: its tokenizer's ids and its outputs beside those of the run.

With `transformers` installed, the folder is opened the way its users will; without it, by our own
reader, which the tests hold against `transformers`.
"""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.interop.huggingface.foreign_config import ForeignConfig
from headstart.interop.measure import OutputDifference
from headstart.run import NetworkRun
from headstart.tasks.examples import between_texts

ALLOWED = 1e-4  # of the outputs' size: rounding adds up over the layers
TEXTS = [
    "A short one.",
    "Le café était déjà fermé — dommage, n'est-ce pas ? (Oui.)",
    "ÄÖÜ ß; Straße 12,50 €\nund\teine neue Zeile   mit Abständen",
    "Москва не сразу строилась. 東京は日本の首都です。 مرحبا بالعالم 🙂",
    "don't stop: they'll re-read it, we've seen 1,000.5 e-mails @ 10:30",
]
# Tokens (B, T), the mask of the real ones and, for some, which of a pair's texts each is from.
Call = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def compare_with_run(run: NetworkRun, folder: Path, temperature: float) -> list[OutputDifference]:
    """Compare an export with its run, over tokenizers, batch sizes, lengths and paddings."""
    with _quiet():
        theirs = _open(folder)
        found = [] if not _installed() else [_compare_ids(run, folder)]
    pad = run.tokenizer.pad_id
    for words, tokens, real in _inputs(run, 0 if pad is None else pad):
        with torch.no_grad():
            ours = run.model(tokens, real).float() / temperature
            output = theirs(tokens, real, None).float()
        found.append(OutputDifference(words, *_difference(ours, output, real)))
    return found


class ExportedNetwork(torch.nn.Module):
    """An export in the place of a run's network; its scores are the run's, temperature and all."""

    def __init__(self, folder: Path, temperature: float) -> None:
        super().__init__()
        with _quiet():
            self.call = _open(folder)
        self.temperature = torch.nn.Parameter(torch.tensor(temperature), requires_grad=False)

    def forward(self, tokens: Tensor, real: Tensor, token_types: Tensor | None = None) -> Tensor:
        return self.call(tokens, real, token_types) * self.temperature


def _installed() -> bool:
    return importlib.util.find_spec("transformers") is not None


def _open(folder: Path) -> Call:
    """The exported model as a function."""
    if not _installed():
        from headstart.interop.huggingface.read import read_model

        model = read_model(folder).model.eval()
        return model
    import transformers

    config = ForeignConfig.read(folder)
    opened = getattr(transformers, config.architecture).from_pretrained(
        folder, output_loading_info=True
    )
    model, info = opened[0].eval(), opened[1]
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        # A base alone has no pooler, and its hidden states do not need it.
        names = sorted(name for name in map(str, info.get(problem, [])) if "pooler." not in name)
        if names:
            raise HeadstartError(
                f"transformers found {problem.replace('_', ' ')} in the export: {names[:6]}",
                where=folder,
            )

    def call(tokens: Tensor, real: Tensor, token_types: Tensor | None) -> Tensor:
        # Padding on the left moves learned positions, so they are given.
        left = bool((real[:, 0] == 0).any())
        positions = {"position_ids": (real.cumsum(1) - 1).clamp(min=0)} if left else {}
        kinds = {} if token_types is None else {"token_type_ids": token_types}
        output = model(input_ids=tokens, attention_mask=real, **positions, **kinds)
        if hasattr(output, "start_logits"):
            return torch.stack([output.start_logits, output.end_logits], dim=-1)
        names = ("logits", "prediction_logits", "last_hidden_state")
        return next(getattr(output, name) for name in names if hasattr(output, name))

    return call


def _compare_ids(run: NetworkRun, folder: Path) -> OutputDifference:
    """How many texts the exported tokenizer gives other ids for."""
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(folder)
    encoding = run.encoding
    after = [] if run.causal and run.task is None else encoding.after
    encoded = run.tokenizer.encode(TEXTS)
    wrong = 0
    for text, ids in zip(TEXTS, encoded, strict=True):
        wrong += theirs(text)["input_ids"] != [*encoding.before, *ids, *after]
    whole = [*encoding.before, *encoded[0], *between_texts(encoding), *encoded[1], *after]
    wrong += theirs(TEXTS[0], TEXTS[1])["input_ids"] != whole
    return OutputDifference(f"the ids of {len(TEXTS)} texts and a pair", float(wrong), 0.0)


def _inputs(run: NetworkRun, pad: int) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Batches of random tokens, in words, with the mask of the real ones (B, T)."""
    config = run.model.base.config
    longest = min(config.max_length, max(run.length, 8), 512)
    generator = torch.Generator().manual_seed(0)
    specials = torch.tensor(sorted(run.tokenizer.specials.values()), dtype=torch.int64)
    usual = [i for i in range(run.tokenizer.vocab_size) if i not in set(specials.tolist())]
    choices = torch.tensor(usual)

    def draw(rows: int, length: int) -> tuple[Tensor, Tensor]:
        drawn = torch.randint(len(usual), (rows, length), generator=generator)
        return choices[drawn], torch.ones(rows, length, dtype=torch.int64)

    yield ("one text of one token", *draw(1, 1))
    yield (f"one text of {longest} tokens", *draw(1, longest))
    tokens, real = draw(4, min(24, longest))
    yield ("a batch of 4 equally long texts", tokens, real)
    lengths = torch.tensor([tokens.size(1), 5, 1, 3]).clamp(max=tokens.size(1))
    right = (torch.arange(tokens.size(1)) < lengths.unsqueeze(1)).long()
    yield ("a batch of 4, padded on the right", torch.where(right > 0, tokens, pad), right)
    if run.causal:
        left = right.flip(1)
        yield ("a batch of 4, padded on the left", torch.where(left > 0, tokens, pad), left)


def _difference(ours: Tensor, theirs: Tensor, real: Tensor) -> tuple[float, float]:
    """The largest difference where the texts are, and what is allowed there."""
    if ours.ndim == 3:  # one row per token: what stands in the padding means nothing
        ours, theirs = ours[real > 0], theirs[real > 0]
    if ours.shape != theirs.shape:
        return float("inf"), ALLOWED
    size = max(1.0, float(ours.abs().max()))
    return float((ours - theirs).abs().max()), ALLOWED * size


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and notices of `transformers`: an error is raised anyway."""
    if not _installed():
        yield
        return
    from transformers.utils import logging

    before: Any = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()
