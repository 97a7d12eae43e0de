"""Fill the gaps of a text with a masked base."""

from dataclasses import dataclass

import torch

from headstart.errors import HeadstartError
from headstart.run_folder import Run

GAP = "[MASK]"


@dataclass(frozen=True)
class FilledGap:
    """One gap and its candidates, the most probable first."""

    gap: int
    candidates: list[tuple[str, float]]


@torch.no_grad()
def fill(run: Run, text: str, *, candidates: int = 5) -> list[FilledGap]:
    """The candidates for each `[MASK]` of `text`."""
    tokenizer = run.tokenizer
    if tokenizer.mask_id is None:
        raise HeadstartError("this run's tokenizer has no mask token", where=run.folder)
    parts = text.split(GAP)
    if len(parts) < 2:
        raise HeadstartError(f"the text has no {GAP}", fix=f"write {GAP} where a word is missing")
    # A space before a gap belongs to the piece that fills it.
    encoded = tokenizer.encode([part.rstrip(" ") for part in parts[:-1]] + [parts[-1]])
    ids: list[int] = [] if tokenizer.begin_id is None else [tokenizer.begin_id]
    for number, part in enumerate(encoded):
        ids += ([tokenizer.mask_id] if number else []) + part
    ids += [] if tokenizer.end_id is None else [tokenizer.end_id]
    tokens = torch.tensor([ids])
    scores = run.model(tokens)[0].float()  # (T, V)
    scores[:, sorted(tokenizer.specials.values())] = float("-inf")
    filled = []
    for number, place in enumerate((tokens[0] == tokenizer.mask_id).nonzero().flatten().tolist()):
        best = scores[place].softmax(-1).topk(min(candidates, scores.size(1)))
        words = [tokenizer.decode([token]) for token in best.indices.tolist()]
        filled.append(FilledGap(number, list(zip(words, best.values.tolist(), strict=True))))
    return filled
