"""Can a run tell that a text is far from everything its classifier was trained on?

    python bench/development_sets.py SETS
    python bench/unlike.py SETS
    python bench/unlike.py SETS --objective contrastive --keep bases --own 1000 --others 300

For each set, a base is pretrained briefly on the set's corpus and fine-tuned on 400 of its labels.
Then several scores of "unlike the training rows" are computed for the set's own test texts and for
those of every other set. One table has the AUROC of each score (own: negative, others: positive),
the other one what a threshold does that is selected on the training rows alone: how many texts it
flags. A score is fitted to four fifths of the training rows and computed for the last fifth, five
times; the threshold is the quantile 0.99 of these values. The last score is that of runs, with
their own threshold (`headstart.unlike`).

The sets are the folders in SETS that `bench/development_sets.py` prepares, and the built-in
rotten-tomatoes. "everyday" are 40 short texts of this file. `--keep FOLDER` keeps the bases, and
uses those that are there already.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import LedoitWolf
from sklearn.metrics import roc_auc_score

from headstart.config import FinetuneConfig, PretrainConfig
from headstart.data.corpus import read_corpus
from headstart.data.dataset import Splits
from headstart.data.splits import read_dataset, take_budget
from headstart.linear import pooled_scale
from headstart.run import NetworkRun
from headstart.training.finetune import finetune
from headstart.training.initialization import embedding_run
from headstart.training.pretrain import pretrain

FOLDS, QUANTILE = 5, 0.99
NEIGHBOURS = 5
VOCABULARY = 65_536  # tokens at most
EVERYDAY = [
    "hello", "thanks", "thank you very much", "good morning", "ok", "yes", "no", "bye",
    "what time is it", "how are you?", "see you tomorrow", "I don't know", "who are you?",
    "can you help me?", "happy birthday!", "it is raining today", "where is the station?",
    "my name is Anna", "I would like a coffee, please", "test", "asdf", "qwertz uiop",
    "lorem ipsum", "xkcd zzyzx blorp", "fjdksla; fjdksla;", "aaaaaaaaaa", "12345", "3.14159",
    "2024-05-17",
    "+49 30 1234567", "1 + 1 = 2", "42", "???", "!!!", ":-)", "http://example.com",
    "SELECT * FROM users;", "print('hello world')", "Guten Tag", "bonjour tout le monde",
]  # fmt: skip
Floats = NDArray[np.float64]


@dataclass
class Features:
    """What a score can read of some texts."""

    probabilities: Floats  # (texts, classes)
    tuned: Floats  # (texts, d): pooled by the network after fine-tuning
    base: Floats  # the same, before it
    tokens: list[NDArray[np.int64]]
    labels: NDArray[np.int64]  # of training rows; else 0

    def pick(self, rows: NDArray[np.int64]) -> "Features":
        return Features(
            self.probabilities[rows],
            self.tuned[rows],
            self.base[rows],
            [self.tokens[row] for row in rows],
            self.labels[rows],
        )


# A score is fitted to training rows, and then computed for other texts; higher is more unlike.
Score = Callable[[Features, Features], Floats]


def uncertainty(train: Features, given: Features) -> Floats:
    return 1 - given.probabilities.max(axis=1)


def mahalanobis(vectors: str, *, per_class: bool = False) -> Score:
    """Return the distance to the mean, or to the nearest class's mean; the covariance is shrunk."""

    def score(train: Features, given: Features) -> Floats:
        rows, others = getattr(train, vectors), getattr(given, vectors)
        scale = pooled_scale(rows - rows.mean(axis=0))
        rows, others = rows * scale, others * scale
        groups = train.labels if per_class else np.zeros(len(rows), dtype=int)
        means = {one: rows[groups == one].mean(axis=0) for one in np.unique(groups)}
        fitted = LedoitWolf(assume_centered=True).fit(
            rows - np.stack([means[one] for one in groups])
        )
        return np.min([fitted.mahalanobis(others - mean) for mean in means.values()], axis=0)

    return score


def neighbours(vectors: str) -> Score:
    """Return the mean cosine distance to the nearest training rows; vectors are centred."""

    def score(train: Features, given: Features) -> Floats:
        rows, others = getattr(train, vectors), getattr(given, vectors)
        center = rows.mean(axis=0)
        scale = pooled_scale(rows - center)
        rows, others = unit((rows - center) * scale), unit((others - center) * scale)
        return 1 - np.sort(others @ rows.T, axis=1)[:, -NEIGHBOURS:].mean(axis=1)

    return score


def unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def unknown_tokens(train: Features, given: Features) -> Floats:
    """Return the share of tokens that no training row contains."""
    known = np.unique(np.concatenate(train.tokens))
    return np.array([1 - np.isin(ids, known).mean() if len(ids) else 1.0 for ids in given.tokens])


def token_surprise(train: Features, given: Features) -> Floats:
    """Return the mean −log p of the tokens, by their counts plus one in the training rows."""
    counts = np.bincount(np.concatenate(train.tokens), minlength=VOCABULARY) + 1
    losses = -np.log(counts / counts.sum())
    return np.array([losses[ids].mean() if len(ids) else losses.max() for ids in given.tokens])


SCORES: dict[str, Score] = {
    "1 − highest probability": uncertainty,
    "Mahalanobis, fine-tuned": mahalanobis("tuned"),
    "Mahalanobis, base": mahalanobis("base"),
    "Mahalanobis per class, fine-tuned": mahalanobis("tuned", per_class=True),
    "Mahalanobis per class, base": mahalanobis("base", per_class=True),
    "5 nearest by cosine, fine-tuned": neighbours("tuned"),
    "5 nearest by cosine, base": neighbours("base"),
    "share of unknown tokens": unknown_tokens,
    "mean surprise of tokens": token_surprise,
}


def read_sets(folder: Path) -> dict[str, tuple[Splits[Any], str]]:
    """Read the labelled parts and the name of the corpus of each set."""
    found = {
        one.name: (read_dataset([str(one)]), str(one / "corpus.txt"))
        for one in sorted(folder.iterdir())
        if (one / "corpus.txt").is_file()
    }
    return {**found, "rotten-tomatoes": (read_dataset(["rotten-tomatoes"]), "imdb")}


def train(
    name: str, splits: Splits[Any], corpus: str, base: Path, given: Any
) -> tuple[NetworkRun, NetworkRun]:
    """Pretrain a base, unless it is there, and fine-tune it; return both, for predictions."""
    if not (base / "summary.json").is_file():
        config = PretrainConfig.create(
            corpus=[corpus], objective=given.objective, tokens=given.tokens, width=128, layers=2,
            threads=1,
        )  # fmt: skip
        texts = read_corpus([corpus]).without([*splits.validation.texts, *splits.test.texts])
        pretrain(config, base, corpus=texts.with_task_text(splits.train.texts))
    config = FinetuneConfig.create(
        dataset=[name], base=str(base), seed=given.seed, threads=1, precision="fp32"
    )
    return finetune(config, None, splits=splits), embedding_run(NetworkRun.open(base))


def read(
    tuned: NetworkRun, base: NetworkRun, texts: Sequence[str], labels: Sequence[int] | None = None
) -> Features:
    """Compute what the scores need of texts."""
    task = tuned.require_task()
    rows, after = task.unlabelled(texts), embedding_run(tuned)
    return Features(
        tuned.predict_proba(texts),
        np.asarray(after.outputs(task.encode(rows, after.encoding)), dtype=np.float64),
        np.asarray(base.outputs(task.encode(rows, base.encoding)), dtype=np.float64),
        tuned.encoding.encode(texts),
        np.asarray(labels or [0] * len(texts)),
    )


def threshold(score: Score, train: Features) -> float:
    """Select the threshold on training rows, each scored by a fit without it."""
    parts = np.random.default_rng(0).permutation(len(train.labels)) % FOLDS
    held = [
        score(train.pick(np.flatnonzero(parts != part)), train.pick(np.flatnonzero(parts == part)))
        for part in range(FOLDS)
    ]
    return float(np.quantile(np.concatenate(held), QUANTILE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", type=Path, metavar="SETS")
    parser.add_argument("--objective", default="masked+contrastive")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--labels", default="400")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--own", type=int, default=1_000, help="own test texts, at most")
    parser.add_argument("--others", type=int, default=300, help="texts of each other set, at most")
    parser.add_argument("--keep", type=Path, help="a folder for the bases")
    given = parser.parse_args()
    sets = read_sets(given.sets)
    auroc: dict[str, dict[str, dict[str, float]]] = {}  # by set, score, other set
    flagged: dict[str, dict[str, dict[str, float]]] = {}  # the same, and "own"
    with tempfile.TemporaryDirectory() as temporary:
        for name, (whole, corpus) in sets.items():
            splits = Splits(
                take_budget(whole.train, given.labels, given.seed), whole.validation, whole.test
            )
            base = (given.keep or Path(temporary)) / f"{name}-{given.objective}-{given.tokens}"
            tuned, before = train(name, splits, corpus, base, given)
            fitted = read(tuned, before, splits.train.texts, splits.train.labels)
            texts = {"own": draw(whole.test.texts, given.own)}
            for other, (parts, _) in sets.items():
                if other != name:
                    texts[other] = draw(parts.test.texts, given.others)
            texts["everyday"] = EVERYDAY
            features = {other: read(tuned, before, one) for other, one in texts.items()}
            auroc[name], flagged[name] = {}, {}
            for title, score in [*SCORES.items(), ("as in runs", token_surprise)]:
                found = {other: score(fitted, one) for other, one in features.items()}
                limit = threshold(score, fitted)
                if title == "as in runs":
                    assert tuned.training_tokens is not None
                    found = {o: tuned.training_tokens.surprise(one) for o, one in texts.items()}
                    limit = tuned.training_tokens.threshold
                auroc[name][title] = {
                    other: roc_auc_score(
                        np.repeat([0, 1], [len(found["own"]), len(values)]),
                        np.concatenate([found["own"], values]),
                    )
                    for other, values in found.items()
                    if other != "own"
                }
                flagged[name][title] = {o: float((v > limit).mean()) for o, v in found.items()}
            report(name, auroc[name], flagged[name])
    print_means(auroc, flagged)


def draw(texts: Sequence[str], most: int) -> list[str]:
    """Sample texts."""
    rows = np.random.default_rng(0).permutation(len(texts))[:most]
    return [texts[row] for row in rows]


def report(name: str, auroc: dict[str, Any], flagged: dict[str, Any]) -> None:
    """Print the AUROC against each other set, and in brackets the share that is flagged."""
    others = list(next(iter(auroc.values())))
    print(f"\n| {name} | own flagged, % | {' | '.join(others)} |\n|{'---|' * (len(others) + 2)}")
    for title, found in auroc.items():
        shares = flagged[title]
        cells = [f"{found[other]:.3f} ({100 * shares[other]:.0f} %)" for other in others]
        print(f"| {title} | {100 * shares['own']:.1f} | {' | '.join(cells)} |", flush=True)


def print_means(auroc: dict[str, Any], flagged: dict[str, Any]) -> None:
    """Print means over the sets; "others" are other sets, without the everyday texts."""
    titles = ("score", "mean AUROC", "by set", "lowest pair", "everyday", "own flagged, %",
              "by set", "others flagged, %", "lowest pair", "everyday flagged, %")  # fmt: skip
    print(f"\n| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for title in next(iter(auroc.values())):
        values, shares = apart(auroc, title), apart(flagged, title)
        own = [100 * flagged[name][title]["own"] for name in flagged]
        cells = [
            f"{np.mean([np.mean(one) for one, _ in values]):.3f}",
            spread([float(np.mean(one)) for one, _ in values], ".3f"),
            f"{min(min(one) for one, _ in values):.3f}",
            f"{np.mean([last for _, last in values]):.3f}",
            f"{np.mean(own):.1f}",
            spread(own, ".1f"),
            f"{100 * np.mean([np.mean(one) for one, _ in shares]):.0f}",
            f"{100 * min(min(one) for one, _ in shares):.0f}",
            f"{100 * np.mean([last for _, last in shares]):.0f}",
        ]
        print(f"| {title} | {' | '.join(cells)} |")


def apart(found: dict[str, Any], title: str) -> list[tuple[list[float], float]]:
    """Return, for each set, the values of the other sets, and that of the everyday texts."""
    rows = [scores[title] for scores in found.values()]
    return [
        ([row[o] for o in row if o not in ("own", "everyday")], row["everyday"]) for row in rows
    ]


def spread(values: Sequence[float], form: str) -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


if __name__ == "__main__":
    main()
