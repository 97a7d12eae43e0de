"""Measure by cross-validation how much pretraining raises the final accuracy.

A few hundred validation rows are too few to detect a difference of two points. Therefore this
script pools the training and validation rows, drops repeated texts, and splits the rest into folds.
The networks that predict a fold are fine-tuned on the other folds. One base is pretrained on the
corpus, from which the texts of the dataset are removed. It is compared with co-occurrence
initialisation without pretraining (`cooc-init`), with TF-IDF and, with `--arms`, with the same
network from scratch. The script prints the accuracy after every epoch; no epoch is selected.

Differences are computed on the same rows and have two 95 % intervals. The interval over rows covers
the choice of the rows, given these networks. The interval over folds also covers training rows and
seeds (Student's t, with the correction of Nadeau and Bengio, 2003, for training rows that folds
share). Neither covers the variance between pretrainings. If you compare several `--try`, the best
of them is overestimated.

    python bench/cross_validation.py lab/cls-books --corpus lab/reviews.txt --preset lab \\
        --tokenizer lab/cls-books/dict.txt --tokens 7000000 --try "" --try pooling=mean

Each `--try name=value,…` is a set of fine-tuning settings; the dataset must be a classification
task. `--keep FOLDER` saves the base there and reuses it for the same corpus, rows and settings.
"""

import argparse
import hashlib
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.model_selection import StratifiedKFold

from headstart.baselines.linear import TfidfClassifier
from headstart.config import FinetuneConfig, PretrainConfig
from headstart.data.corpus import read_corpus
from headstart.data.dataset import Dataset, Splits
from headstart.data.overlap import text_key
from headstart.data.splits import read_dataset
from headstart.folds import make_folds
from headstart.run import read_summary
from headstart.training.finetune import finetune
from headstart.training.pretrain import pretrain
from recipes import parse

START = "start"
# For each arm, the folder of its base and whether the weights are initialised at random.
ARMS = {"pretrained": (".", False), "cooc-init": (START, False), "scratch": (".", True)}
Correct = list[list[bool]]  # for each fold, whether each of its rows is predicted correctly


def pooled(name: str) -> Dataset:
    """Return the training and validation rows, without repeated texts."""
    splits = read_dataset(name)
    train, validation = splits.train, splits.validation
    texts, labels = [*train.texts, *validation.texts], [*train.labels, *validation.labels]
    once = {text_key(text): row for row, text in reversed(list(enumerate(texts)))}
    return Dataset(name, texts, labels, train.label_names).pick(sorted(once.values()))


def pretrained(given: Any, rows: Dataset, folder: Path) -> Path:
    """Pretrain the base without the dataset's texts; also save its initial weights."""
    recipe = PretrainConfig.create(
        corpus=[given.corpus],
        preset=given.preset,
        tokenizer=given.tokenizer,
        tokens=given.tokens,
        threads=given.threads,
        evaluations=2,
    )
    corpus = read_corpus(recipe.corpus).without(rows.texts)
    # The folder's name is a hash of everything that the base depends on.
    decided = repr((corpus.fingerprint, sorted(vars(recipe).items())))
    folder = folder / hashlib.sha256(decided.encode()).hexdigest()[:12]
    if not (folder / "summary.json").is_file():
        pretrain(recipe, folder, corpus=corpus, save_initial=folder / START)
    found = read_summary(folder)
    print(
        f"base: {found['tokens']:,} tokens in {found['seconds']:.0f} s; held-out perplexity "
        f"{found['held_out']['perplexity']:.1f}",
        flush=True,
    )
    return folder


def finetuned(splits: Splits, threads: int, **settings: Any) -> tuple[list[bool], list[float]]:
    """Return whether each validation row is predicted correctly, and the accuracy by epoch."""
    recipe = FinetuneConfig.create(
        **{
            "dataset": [splits.train.name],
            "threads": threads,
            "selection_metric": "last",
            **settings,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        run = finetune(recipe, Path(folder) / "run", splits=splits)
    correct = run.validation_scores.argmax(-1) == np.array(splits.validation.labels)
    return correct.tolist(), [row["accuracy"] for row in run.summary["epochs"]]


def accuracy(correct: Correct) -> float:
    return float(np.mean(np.concatenate(correct)))


def difference(first: Correct, second: Correct) -> str:
    """Format the difference in points on the same rows, with its intervals over rows and folds."""
    folds = [100 * (np.array(a, dtype=float) - b) for a, b in zip(first, second, strict=True)]
    points, means = np.concatenate(folds), np.array([fold.mean() for fold in folds])
    mean, count = points.mean(), len(means)
    over_rows = 1.96 * points.std(ddof=1) / len(points) ** 0.5
    text = f"{mean:+.1f} ({mean - over_rows:+.1f} to {mean + over_rows:+.1f} over rows"
    if count > 1:
        shared = 1 / count + 1 / (count - 1)  # test rows / training rows
        half = float(t.ppf(0.975, count - 1)) * (shared * means.var(ddof=1)) ** 0.5
        each = " ".join(f"{fold:+.1f}" for fold in means)
        text += f", {mean - half:+.1f} to {mean + half:+.1f} over folds: {each}"
    return text + ")"


def linear(folds: list[Splits]) -> Correct:
    """Evaluate TF-IDF, whose C is selected within the training rows of each fold."""
    correct = []
    for fold in folds:
        inner = make_folds(fold.train.labels)
        model = TfidfClassifier().fit(fold.train.texts, fold.train.labels, folds=inner)
        correct.append((model.predict(fold.validation.texts) == fold.validation.labels).tolist())
    return correct


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--tokenizer")
    parser.add_argument("--tokens", type=int, default=2_600_000)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["pretrained", "cooc-init"])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--try", dest="tries", action="append", default=[])
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    rows = pooled(given.dataset)
    cut = StratifiedKFold(given.folds, shuffle=True, random_state=0)
    folds = [
        Splits(rows.pick(train.tolist()), rows.pick(test.tolist()), None)
        for train, test in cut.split(np.zeros(len(rows)), rows.labels)
    ]
    with tempfile.TemporaryDirectory() as temporary:
        compare(given, folds, pretrained(given, rows, given.keep or Path(temporary)))


def compare(given: Any, folds: list[Splits], folder: Path) -> None:
    """Print two lines for each arm with each set of fine-tuning settings."""
    tfidf = linear(folds)
    count = sum(map(len, tfidf))
    print(f"{count:,} test rows; TF-IDF {accuracy(tfidf):.1%}", flush=True)
    for settings in given.tries or [""]:
        found: dict[str, Correct] = {}
        for arm in given.arms:
            base, fresh = ARMS[arm]
            start, tables = time.monotonic(), []
            correct: Correct = []
            for seed, fold in enumerate(folds):
                own = {"base": str(folder / base), "fresh": fresh, "preset": given.preset}
                of_fold, epochs = finetuned(
                    fold, given.threads, seed=seed, **{**own, **parse(settings)}
                )
                correct.append(of_fold)
                tables.append(epochs)
            found[arm] = correct
            gaps = f"; {arm} − TF-IDF {difference(correct, tfidf)}"
            if arm != given.arms[0]:
                gaps += f"; {given.arms[0]} − {arm} {difference(found[given.arms[0]], correct)}"
            means = [f"{100 * statistics.mean(row):.1f}" for row in zip(*tables, strict=True)]
            print(
                f"{settings or 'defaults'}: {arm} {accuracy(correct):.1%}{gaps}; "
                f"{(time.monotonic() - start) / len(folds):.0f} s per fold\n"
                f"    after each epoch: {' '.join(means)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
