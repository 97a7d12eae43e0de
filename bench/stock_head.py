"""Compare the accuracy of the default head with that of the head of stock `transformers`.

    python bench/stock_head.py BASE            # a causal base, such as studies/demo/bases/causal
    python bench/stock_head.py BASE --labels 400 --seeds 8

The default head of a causal base pools mean and maximum; Llama's classifier reads the last token
and has no bias. For each seed, both are fine-tuned on the same IMDb reviews and evaluated on the
same test rows. The script prints the paired differences with 95 % intervals over seeds.
"""

import argparse

import numpy as np
from scipy.stats import t

from headstart.config import FinetuneConfig
from headstart.data.dataset import Splits
from headstart.data.splits import read_dataset
from headstart.training.finetune import finetune

VALIDATION_ROWS, TEST_ROWS = 400, 1_000


def draw(rows, count, generator):
    """Sample rows."""
    return rows.pick(generator.choice(len(rows), count, replace=False).tolist())


def measure(base, parts, head, seed):
    """Return the test accuracy and the log-loss of one fine-tuning."""
    config = FinetuneConfig.create(
        dataset=["imdb"], base=base, head=head, seed=seed, precision="fp32"
    )
    run = finetune(config, None, splits=parts)
    labels = np.asarray(parts.test.labels)
    p = run.predict_proba(parts.test.texts)
    right = p[np.arange(len(labels)), labels]
    return (p.argmax(1) == labels).mean(), -np.log(np.maximum(right, 1e-12)).mean()


def interval(values):
    """Return the mean and the half width of its 95 % interval."""
    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return np.mean(values), half


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("--labels", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=8)
    given = parser.parse_args()
    whole = read_dataset(["imdb"])
    found = {"auto": [], "stock": []}
    for seed in range(given.seeds):
        generator = np.random.default_rng(seed)
        parts = Splits(
            draw(whole.train, given.labels, generator),
            draw(whole.validation, VALIDATION_ROWS, generator),
            draw(whole.test, TEST_ROWS, np.random.default_rng(0)),
        )
        for head, rows in found.items():
            rows.append(measure(given.base, parts, head, seed))
        print(seed, {head: tuple(map(float, rows[-1])) for head, rows in found.items()}, flush=True)
    auto, stock = np.array(found["auto"]), np.array(found["stock"])
    for column, name in enumerate(("accuracy", "log-loss")):
        mean, half = interval(stock[:, column] - auto[:, column])
        print(
            f"{name}: default {auto[:, column].mean():.4f}, stock {stock[:, column].mean():.4f}; "
            f"stock - default {mean:+.4f} ({mean - half:+.4f} to {mean + half:+.4f})"
        )


main()
