"""How well a pretrained base does: held-out documents, a unigram model's loss, the model card."""

import math
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from headstart.files import IDENTITY, read_object
from headstart.model.model import Model
from headstart.model_card import CardScore, write_card
from headstart.objectives.objective import Batch, Objective
from headstart.training.prepare import Prepared
from headstart.training.processes.ranks import ONE, Ranks
from headstart.training.recipe import NONE, PretrainRecipe

LIMITS = (
    "It repeats what its corpus says, true or not, and has seen nothing else.",
    "The held-out documents come from the same corpus: other texts are harder to predict.",
)
HELD_OUT_ROWS = 64  # enough for a stable loss, few enough to take a second


def evaluate_held_out(
    model: Model, objective: Objective, data: Prepared, *, rows: int, ranks: Ranks = ONE
) -> dict[str, float]:
    """The loss on held-out rows, always the same ones with the same tokens hidden.

    Of several processes each evaluates some of the batches; their sums are added in one order.
    """
    source = data.held_out
    device = next(model.parameters()).device
    own: list[tuple[int, float, int, dict[str, tuple[float, int]]]] = []
    batches = max(1, min(HELD_OUT_ROWS, len(source.packed(extra=1))) // rows)
    for step in ranks.share(range(ranks.placement.passes(batches))):
        batch: Batch = objective.batch(source, rows, (0, step % batches))
        loss = objective.loss(model, batch.to(device))
        if step < batches:
            own.append((step, float(loss.total), loss.targets, loss.parts))
    total, targets, parts = 0.0, 0, dict[str, list[float]]()
    everyones = sorted(chain(*ranks.gather(own)), key=itemgetter(0))
    for _, batch_total, batch_targets, sums_by_name in everyones:
        total += batch_total
        targets += batch_targets
        for name, (value, count) in sums_by_name.items():
            sums = parts.setdefault(name, [0.0, 0])
            sums[0] += value
            sums[1] += count
    mean = total / targets
    named = {name: value / count for name, (value, count) in parts.items()}
    tokens = named.get("masked_tokens", mean)
    found = {"loss": mean, "perplexity": math.exp(min(tokens, 50)), **named}
    if objective.can_generate:  # only then is it the probability of the whole text
        store = source.store
        bytes_per_token = data.held_out_bytes / (store.tokens + len(store))  # ends count
        found["bits_per_byte"] = tokens / math.log(2) / bytes_per_token
    return found


def unigram_loss(data: Prepared, *, most: int = 5_000_000) -> float:
    """The held-out loss of a model that knows only how frequent each token is."""
    counts = np.ones(data.tokenizer.vocab_size)  # one for each, so that nothing is impossible
    seen = 0
    for document in data.train.store:
        np.add.at(counts, document, 1)
        seen += len(document)
        if seen >= most:
            break
    log_probabilities = np.log(counts / counts.sum())
    total = sum(float(log_probabilities[document].sum()) for document in data.held_out.store)
    return -total / data.held_out.store.tokens


def write_pretraining_card(recipe: PretrainRecipe, summary: dict[str, Any], folder: Path) -> None:
    """Say what the base was trained on, how, and how well it does."""
    found = summary["held_out"]
    own = recipe.base == NONE
    facts = {
        "base": "" if own else recipe.base,
        "corpus": ", ".join(Path(source).name for source in recipe.corpus),
        "objective": recipe.objective,
        "network": (f"preset {recipe.preset}, " if own else "the base's, ")
        + f"{summary['parameters']:,} parameters",
        "embedding start": recipe.embedding_start if own else "the base's",
        "tokens seen": f"{summary['tokens']:,} in {summary['steps']:,} steps",
        "learning rate": f"{recipe.learning_rate:g}",
        "seed": recipe.seed,
    }
    on = f"held-out documents, at step {summary['best_step']:,}, whose weights were kept"
    unigram = f"a unigram model has {summary['unigram_perplexity']:,.1f}"
    scores = [
        CardScore("loss", f"{found['loss']:.3f}", on),
        CardScore("perplexity", f"{found['perplexity']:,.1f}; {unigram}", on),
    ]
    if "bits_per_byte" in found:
        scores.append(CardScore("bits per byte", f"{found['bits_per_byte']:.3f}", on))
    use = "write on (`headstart generate`)" if recipe.objective == "causal" else "fill gaps"
    fix = "start the run anew, in another folder"
    write_card(
        folder,
        title="A base pretrained with Headstart",
        facts={name: value for name, value in facts.items() if value != ""},
        scores=scores,
        fingerprints=read_object(folder / IDENTITY, fix=fix),
        use=f"It can {use} and be fine-tuned (`headstart finetune --base`). Every setting is in "
        "`recipe.toml`.",
        limits=LIMITS,
    )
