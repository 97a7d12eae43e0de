"""What does pretraining buy in the end? Cross-validation over train and validation rows.

A few hundred validation rows cannot tell two points from luck. Here train and validation rows are
pooled, texts that occur twice once, and cut into folds; each fold is judged by networks that were
fine-tuned on the other folds. One base is pretrained on the corpus, without the rows of the task
(not even their texts), and stands beside its controls: the counted start without a step, TF-IDF
and, with `--arms`, the same network from scratch. Accuracy after the last epoch, which nothing
selects, and after each.

Differences are over the same rows and have two 95 % intervals: over rows, given these networks, and
over folds, which also differ in training rows, seed and luck (Student's t, with the variance that
Nadeau and Bengio, 2003, correct for training rows that folds share). Neither has another
pretraining in it. The best of several `--try` looks better than it is.

    python bench/cross_validation.py lab/cls-books --corpus lab/reviews.txt --preset lab \\
        --tokenizer lab/cls-books/dict.txt --tokens 7000000 --try "" --try pooling=mean

Each `--try name=value,…` is a way of fine-tuning, for classes of texts. `--keep FOLDER` keeps the
base there, and uses it again for the same corpus, rows and settings.
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
# Each arm's base, and whether its weights are drawn anew.
ARMS = {"pretrained": (".", False), "counted": (START, False), "scratch": (".", True)}
Right = list[list[bool]]  # of each fold, whether each of its rows is right


def pooled(name: str) -> Dataset:
    """The train and validation rows, each text once."""
    splits = read_dataset(name)
    train, validation = splits.train, splits.validation
    texts, labels = [*train.texts, *validation.texts], [*train.labels, *validation.labels]
    once = {text_key(text): row for row, text in reversed(list(enumerate(texts)))}
    return Dataset(name, texts, labels, train.label_names).pick(sorted(once.values()))


def pretrained(given: Any, rows: Dataset, folder: Path) -> Path:
    """Pretrain the base without the task's texts; its start is kept inside of its folder."""
    recipe = PretrainConfig.create(
        corpus=[given.corpus],
        preset=given.preset,
        tokenizer=given.tokenizer,
        tokens=given.tokens,
        threads=given.threads,
        evaluations=2,
    )
    corpus = read_corpus(recipe.corpus).without(rows.texts)
    # Named by all that it depends on: a base that was kept is never another's.
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
    """Whether each validation row is right in the end, and the accuracy after each epoch."""
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
    right = run.validation_scores.argmax(-1) == np.array(splits.validation.labels)
    return right.tolist(), [row["accuracy"] for row in run.summary["epochs"]]


def accuracy(found: Right) -> float:
    return float(np.mean(np.concatenate(found)))


def difference(found: Right, other: Right) -> str:
    """In points, with a 95 % interval over rows and one over folds; the rows are the same."""
    folds = [100 * (np.array(a, dtype=float) - b) for a, b in zip(found, other, strict=True)]
    points, means = np.concatenate(folds), np.array([fold.mean() for fold in folds])
    mean, count = points.mean(), len(means)
    over_rows = 1.96 * points.std(ddof=1) / len(points) ** 0.5
    said = f"{mean:+.1f} ({mean - over_rows:+.1f} to {mean + over_rows:+.1f} over rows"
    if count > 1:
        shared = 1 / count + 1 / (count - 1)  # rows judged, to rows trained on
        half = float(t.ppf(0.975, count - 1)) * (shared * means.var(ddof=1)) ** 0.5
        each = " ".join(f"{fold:+.1f}" for fold in means)
        said += f", {mean - half:+.1f} to {mean + half:+.1f} over folds: {each}"
    return said + ")"


def linear(folds: list[Splits]) -> Right:
    """TF-IDF, whose C is selected within the training rows of each fold."""
    right = []
    for fold in folds:
        inner = make_folds(fold.train.labels)
        model = TfidfClassifier().fit(fold.train.texts, fold.train.labels, folds=inner)
        right.append((model.predict(fold.validation.texts) == fold.validation.labels).tolist())
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--tokenizer")
    parser.add_argument("--tokens", type=int, default=2_600_000)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["pretrained", "counted"])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--try", dest="tries", action="append", default=[])
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    rows = pooled(given.dataset)
    cut = StratifiedKFold(given.folds, shuffle=True, random_state=0)
    folds = [
        Splits(rows.pick(train.tolist()), rows.pick(judged.tolist()), None)
        for train, judged in cut.split(np.zeros(len(rows)), rows.labels)
    ]
    with tempfile.TemporaryDirectory() as temporary:
        compare(given, folds, pretrained(given, rows, given.keep or Path(temporary)))


def compare(given: Any, folds: list[Splits], folder: Path) -> None:
    """Print two lines for each way of fine-tuning and arm."""
    beside = linear(folds)
    judged = sum(map(len, beside))
    print(f"{judged:,} rows judged; TF-IDF {accuracy(beside):.1%}", flush=True)
    for settings in given.tries or [""]:
        found: dict[str, Right] = {}
        for arm in given.arms:
            base, fresh = ARMS[arm]
            start, tables = time.monotonic(), []
            right: Right = []
            for seed, fold in enumerate(folds):
                own = {"base": str(folder / base), "fresh": fresh, "preset": given.preset}
                of_fold, epochs = finetuned(
                    fold, given.threads, seed=seed, **{**own, **parse(settings)}
                )
                right.append(of_fold)
                tables.append(epochs)
            found[arm] = right
            said = f"; − TF-IDF {difference(right, beside)}"
            if arm != given.arms[0]:
                said += f"; {given.arms[0]} − {arm} {difference(found[given.arms[0]], right)}"
            means = [f"{100 * statistics.mean(row):.1f}" for row in zip(*tables, strict=True)]
            print(
                f"{settings or 'defaults'}: {arm} {accuracy(right):.1%}{said}; "
                f"{(time.monotonic() - start) / len(folds):.0f} s each\n"
                f"    after each epoch: {' '.join(means)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
