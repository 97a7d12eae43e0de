"""What a fine-tuning came to: its summary and its model card."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.evaluation.metrics import wilson_interval
from headstart.files import IDENTITY, read_object
from headstart.model_card import CardScore, usage, write_card
from headstart.tasks.classification import Classification
from headstart.tasks.task import Task
from headstart.training.metrics import epoch_rows
from headstart.training.recipe import NONE, FinetuneRecipe

if TYPE_CHECKING:
    from headstart.training.finetune import PlannedFinetuning
    from headstart.training.listener import Progress

LIMITS = (
    "It knows the labels above and no other: whatever it reads, it answers with them.",
    "It repeats what its labelled texts and its base's corpus say, also where that is wrong or "
    "unfair.",
    "Validation selected the epoch, so its numbers are a little too good. `headstart evaluate` on "
    "labelled texts that it has not seen gives honest ones.",
)


def finetune_summary(planned: "PlannedFinetuning", progress: "Progress") -> dict[str, Any]:
    """The content of `summary.json`. Its numbers are those of the weights that are kept."""
    setup, plan = planned.setup, planned.plan
    rows = epoch_rows(setup.folder, best_step=progress.best_step)
    best = next(row for row in rows if row["best"])
    return {
        "run": str(setup.folder),
        "task": plan.task,
        "labels": list(plan.labels),
        "base": setup.recipe.base,
        "seed": setup.recipe.seed,
        "train_rows": plan.train_rows,
        "validation_rows": plan.validation_rows,
        "test_rows": 0 if setup.splits.test is None else len(setup.splits.test),
        "steps": progress.step,
        "tokens": progress.tokens,
        "seconds": progress.seconds,
        "cut": plan.cut,
        "dropout_share": setup.dropout_share,
        "epochs": rows,
        "best_epoch": best["epoch"],
        "validation": {name: best[name] for name in best if name not in ("epoch", "step", "best")},
        "parameters": plan.parameters,
        "swap": [vars(row) for row in plan.swap],
    }


def write_finetuning_card(
    recipe: FinetuneRecipe, task: Task[Any], summary: dict[str, Any], folder: Path
) -> None:
    """Say what the model was trained on, how, and how well it does."""
    labels = list(summary["labels"])
    listed = ", ".join(labels[:30]) + (f" and {len(labels) - 30} more" if len(labels) > 30 else "")
    facts = {
        "task": summary["task"],
        "labels": listed or "answers in a text",
        "dataset": ", ".join(Path(source).name for source in recipe.dataset),
        "rows": f"{summary['train_rows']:,} trained it, {summary['validation_rows']:,} "
        + ("watched it" if recipe.choose_by == "last" else "selected the epoch"),
        "base": "none: trained from scratch" if recipe.base == NONE else Path(recipe.base).name,
        "network": f"{summary['parameters']:,} parameters",
        "epochs": f"{len(summary['epochs'])}, "
        + ("the last was kept" if recipe.choose_by == "last" else f"best {summary['best_epoch']}")
        + (f"; weights of the last {recipe.average:.0%} averaged" if recipe.average else "")
        + (
            f"; each left out {share:.1%} of the tokens, others each time"
            if (share := summary["dropout_share"])
            else ""
        ),
        "learning rate": f"{recipe.learning_rate:g}",
        "seed": recipe.seed,
    }
    fix = "start the run anew, in another folder"
    write_card(
        folder,
        title=f"A model for {summary['task']}, fine-tuned with Headstart",
        facts=facts,
        scores=_scores(task, summary),
        fingerprints=read_object(folder / IDENTITY, fix=fix),
        use=f"{usage(task.texts_per_row)} Every setting is in `recipe.toml`.",
        limits=LIMITS,
    )


def _scores(task: Task[Any], summary: dict[str, Any]) -> list[CardScore]:
    rows, found = summary["validation_rows"], summary["validation"]
    measured_on = f"validation, {rows:,} {task.row_name}"
    scores = []
    for name, value in found.items():
        if name in ("train_loss", "validation_loss", "seconds"):
            continue
        if name == "accuracy" and isinstance(task, Classification):  # one answer per row
            interval = wilson_interval(round(value * rows), rows)
            scores.append(CardScore(name, value, measured_on, interval.low, interval.high))
        else:
            scores.append(CardScore(name.replace("_", " "), value, measured_on))
    return scores
