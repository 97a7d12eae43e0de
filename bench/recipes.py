"""Compare fine-tuning settings by validation accuracy, over seeds and label budgets.

For each recipe and budget, two lines are printed. The first has the accuracy of the best epoch
(mean over seeds, lowest and highest) and, from the second recipe on, its difference from the first
recipe with a 95 % interval over seeds. The second has the mean accuracy and loss after each epoch.
The fourth epoch of a training of ten epochs differs from the end of a training of four epochs,
because the learning rate is still high. The test part is not used.

    python bench/recipes.py rotten-tomatoes --base runs/base --labels 100 400 --seeds 3 \\
        --try learning_rate=1e-4 --try learning_rate=3e-4,epochs=10

To compare the default head with the head of stock transformers:

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
    """Parse `name=value,name=value` into settings; numbers and booleans are converted."""
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
    """Format the mean difference from the first recipe in points, over the same seeds."""
    if len(first) < 2:
        return ""
    points = [100 * (one - other) for one, other in zip(found, first, strict=True)]
    mean = statistics.mean(points)
    error = statistics.stdev(points) / len(points) ** 0.5
    half = float(t.ppf(0.975, len(points) - 1)) * error
    return f"  {mean:+.2f} points from the first recipe ({mean - half:+.2f} to {mean + half:+.2f})"


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
                f"{max(accuracies):.1%})  {(time.monotonic() - start) / given.seeds:.0f} s per seed"
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
