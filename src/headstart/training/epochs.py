"""The table of a fine-tuning's epochs, made from its `metrics.jsonl`."""

from typing import Any


def epoch_rows(lines: list[dict[str, Any]], *, best_step: int) -> list[dict[str, Any]]:
    """One row an epoch: the mean training loss, validation's numbers, and its seconds."""
    rows: list[dict[str, Any]] = []
    losses: list[float] = []
    before = 0.0
    for line in lines:
        if "held_out" not in line:
            losses.append(line["loss"])
            continue
        found = dict(line["held_out"])
        rows.append(
            {
                "epoch": len(rows) + 1,
                "step": line["step"],
                "train_loss": sum(losses) / len(losses),
                "validation_loss": found.pop("loss"),
                **found,
                "seconds": round(line["seconds"] - before, 3),
                "best": line["step"] == best_step,
            }
        )
        losses, before = [], line["seconds"]
    return rows
