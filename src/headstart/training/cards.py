"""What a training leaves behind for people: summaries and model cards."""

from pathlib import Path
from typing import Any

from headstart.config import FinetuneConfig, PretrainConfig
from headstart.evaluation.metrics import wilson_interval
from headstart.model_card import CardScore, usage, write_card
from headstart.tasks.classification import Classification
from headstart.tasks.task import Parts, Task
from headstart.training.batches import EpochBatches
from headstart.training.trainer import TrainState

# What a summary takes over from the plan.
PLANNED = ("task", "labels", "train_rows", "validation_rows", "truncated", "parameters", "swap",
           "averaged_epochs")  # fmt: skip
BASE_LIMITS = (
    "It can only repeat what its corpus says, including its errors.",
    "The held-out documents come from the same corpus: other texts are harder to predict.",
)
TASK_LIMITS = (
    "It knows the labels above and no other: every prediction is one of them.",
    "It repeats what its labelled texts and its base's corpus say, also where that is wrong or "
    "unfair.",
    "Validation selected the epoch, so its numbers are a little too good. `headstart evaluate` on "
    "labelled texts that it has not seen gives unbiased ones.",
)


def write_pretraining_card(
    folder: Path, config: PretrainConfig, summary: dict[str, Any], identity: dict[str, str]
) -> None:
    """Describe what a base was trained on, how, and how good it is."""
    found = summary["held_out"]
    facts = {
        "base": config.base,
        "corpus": ", ".join(Path(source).name for source in config.corpus),
        "objective": config.objective,
        "network": f"{config.preset if config.base is None else 'as the base'}, "
        f"{summary['parameters']:,} parameters",
        "embedding initialisation": config.embedding_init if config.base is None else "the base",
        "training": f"{summary['tokens']:,} tokens in {summary['steps']:,} steps",
        "learning rate": f"{config.learning_rate:g}",
        "seed": config.seed,
    }
    on = f"held-out documents, at step {summary['best_step']:,}, whose weights are saved"
    unigram = f"a unigram model has {summary['unigram_perplexity']:,.1f}"
    scores = [
        CardScore("loss", f"{found['loss']:.3f}", on),
        CardScore("perplexity", f"{found['perplexity']:,.1f}; {unigram}", on),
    ]
    if "bits_per_byte" in found:
        scores.append(CardScore("bits per byte", f"{found['bits_per_byte']:.3f}", on))
    causal = config.objective == "causal"
    use = "continue a text (`headstart generate`)" if causal else "fill gaps (`headstart fill`)"
    write_card(
        folder,
        title="A base pretrained with Headstart",
        facts={name: value for name, value in facts.items() if value is not None},
        scores=scores,
        fingerprints=identity,
        use=f"It can {use} and be fine-tuned (`headstart finetune --base`). Every setting is in "
        "`config.toml`.",
        limits=BASE_LIMITS,
    )


def finetune_summary(
    config: FinetuneConfig,
    plan: dict[str, Any],
    state: TrainState,
    splits: Parts[Any],
    batches: EpochBatches,
) -> dict[str, Any]:
    """Return the content of a fine-tuning's `summary.json`: the numbers of the saved weights."""
    epochs = state.epochs()
    best = next(row for row in epochs if row["best"])
    hidden = ("epoch", "step", "best")
    return {
        "base": config.base,
        "seed": config.seed,
        "test_rows": 0 if splits.test is None else len(splits.test),
        **{name: plan[name] for name in PLANNED},
        "steps": state.step,
        "tokens": state.tokens,
        "seconds": state.seconds,
        "dropped_share": batches.dropped_share,
        "epochs": epochs,
        "best_epoch": best["epoch"],
        "validation": {name: value for name, value in best.items() if name not in hidden},
    }


def write_finetuning_card(
    folder: Path,
    config: FinetuneConfig,
    task: Task[Any],
    summary: dict[str, Any],
    identity: dict[str, str],
) -> None:
    """Describe what a model was trained on, how, and how good it is."""
    last = config.selection_metric == "last"
    epochs = f"{len(summary['epochs'])}, "
    epochs += "the last one is saved" if last else f"epoch {summary['best_epoch']} is saved"
    if summary["averaged_epochs"]:
        epochs += f"; weights averaged over the last {summary['averaged_epochs']}"
    if summary["dropped_share"]:
        epochs += f"; each dropped {summary['dropped_share']:.1%} of the tokens"
    labels = ", ".join(summary["labels"][:30]) or "spans of a text"
    if len(summary["labels"]) > 30:
        labels += f" and {len(summary['labels']) - 30} more"
    role = "for the curves alone" if last else "selected the epoch"
    facts = {
        "task": summary["task"],
        "labels": labels,
        "dataset": ", ".join(Path(source).name for source in config.dataset),
        "rows": f"{summary['train_rows']:,} for training, {summary['validation_rows']:,} {role}",
        "base": "none: trained from scratch" if config.base is None else Path(config.base).name,
        "network": f"{summary['parameters']:,} parameters",
        "epochs": epochs,
        "learning rate": f"{config.learning_rate:g}",
        "seed": config.seed,
    }
    write_card(
        folder,
        title=f"A model for {summary['task']}, fine-tuned with Headstart",
        facts=facts,
        scores=_validation_scores(task, summary),
        fingerprints=identity,
        use=usage(task.texts_per_row),
        limits=TASK_LIMITS,
    )


def _validation_scores(task: Task[Any], summary: dict[str, Any]) -> list[CardScore]:
    rows = summary["validation_rows"]
    on = f"validation, {rows:,} {task.row_name}"
    scores = []
    for name, value in summary["validation"].items():
        if name in ("train_loss", "validation_loss", "seconds"):
            continue
        score = CardScore(name.replace("_", " "), value, on)
        if name == "accuracy" and isinstance(task, Classification):  # a share of the rows
            interval = wilson_interval(round(value * rows), rows)
            score = CardScore(name, value, on, interval.low, interval.high)
        scores.append(score)
    return scores
