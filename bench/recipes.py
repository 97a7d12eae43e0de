"""Which fine-tuning recipe is best? Validation accuracy over seeds and label budgets.

Prints two lines for each recipe and budget: the best epoch (mean over seeds, lowest and highest;
from the second recipe on also its distance from the first, with a 95 % interval over seeds), and
accuracy and loss after each epoch (means). A training of ten epochs after its fourth is not one
of four: the second has ended its schedule. The test part is not touched.

    python bench/recipes.py rotten-tomatoes --base runs/base --labels 100 400 --seeds 3 \\
        --try learning_rate=1e-4 --try learning_rate=3e-4,epochs=10

What the head costs that stock transformers has, beside ours:

    python bench/recipes.py rotten-tomatoes --base runs/base --labels 100 400 1600 --seeds 10 \\
        --try head=auto --try head=stock
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy.stats import t

from headstart.config import FinetuneConfig
from headstart.data.splits import read_dataset, take_budget
from headstart.training.finetune import finetune


def parse(text: str) -> dict[str, Any]:
    """`name=value,name=value` as settings; numbers and truths as such."""
    settings: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        name, value = pair.split("=", 1)
        for kind in (int, float):
            try:
                settings[name] = kind(value)
                break
            except ValueError:
                settings[name] = {"true": True, "false": False}.get(value, value)
    return settings


def distance(found: list[float], first: list[float]) -> str:
    """By how many points the mean is higher than the first recipe's, over the same seeds."""
    if len(first) < 2:
        return ""
    points = [100 * (one - other) for one, other in zip(found, first, strict=True)]
    mean = statistics.mean(points)
    error = statistics.stdev(points) / len(points) ** 0.5
    half = float(t.ppf(0.975, len(points) - 1)) * error
    return f"  {mean:+.2f} points beside the first ({mean - half:+.2f} to {mean + half:+.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--base")
    parser.add_argument("--labels", nargs="+", default=["100", "400", "all"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--try", dest="tries", action="append", default=[])
    given = parser.parse_args()
    splits = read_dataset(given.dataset)
    for budget in given.labels:
        first: list[float] = []
        for text in given.tries or [""]:
            accuracies, tables, start = [], [], time.monotonic()
            for seed in range(given.seeds):
                part = replace(splits, train=take_budget(splits.train, budget, seed))
                recipe = FinetuneConfig.create(
                    dataset=[given.dataset],
                    base=given.base,
                    seed=seed,
                    threads=given.threads,
                    **parse(text),
                )
                with tempfile.TemporaryDirectory() as folder:
                    summary = finetune(recipe, Path(folder) / "run", splits=part).summary
                accuracies.append(max(row["accuracy"] for row in summary["epochs"]))
                tables.append(summary["epochs"])
            print(
                f"{budget:>6} labels  {text or 'defaults':50} "
                f"{statistics.mean(accuracies):.1%} ({min(accuracies):.1%} to "
                f"{max(accuracies):.1%})  {(time.monotonic() - start) / given.seeds:.0f} s each"
                f"{distance(accuracies, first)}",
                flush=True,
            )
            first = first or accuracies
            epochs = [
                f"{statistics.mean(row['accuracy'] for row in rows):.1%}"
                f" {statistics.mean(row['validation_loss'] for row in rows):.3f}"
                for rows in zip(*tables, strict=True)
            ]
            print(f"       after each epoch: {', '.join(epochs)}", flush=True)


if __name__ == "__main__":
    main()
