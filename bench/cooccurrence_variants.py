"""Compare settings of PPMI-SVD vectors by the accuracy of the arm `cooc-lr`.

The corpus is IMDb, the dataset rotten-tomatoes. For each label budget, the mean validation accuracy
over seeds is printed; seeds sample the labelled rows. One setting at a time differs from the
defaults. The results are in `research/cooccurrence.md`.

    python bench/cooccurrence_variants.py [--seeds 5] [--cache FOLDER]
"""

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from headstart.baselines.linear import CooccurrenceClassifier
from headstart.data.cooccurrence import (
    count_pairs,
    positive_pmi,
    scale_columns,
    truncated_svd,
)
from reviews import Dataset, byte_level_bpe, encode, read_reviews, seeds_and_cache

Counts = tuple[sparse.csr_array, np.ndarray]  # of pairs, and their row sums
VOCAB_SIZE, WIDTH, BUDGETS = 8_192, 256, (100, 400, 1_600)
WINDOWS = (1, 2, 3, 4, 5, 10, 20)


def weighted(counts: dict[int, Counts], window: int, weights: str) -> Counts:
    """Weight counts by distance, as a weighted sum of the counts of narrower windows."""
    if weights == "equal":
        return counts[window]
    if weights == "falling":  # window, window - 1, … 1 (word2vec's, on average)
        shares = dict.fromkeys(range(1, window + 1), 1.0)
    else:  # harmonic: 1, 1/2, 1/3, … (GloVe's)
        shares = {w: 1 / w - (1 / (w + 1) if w < window else 0) for w in range(1, window + 1)}
    pairs = sum((counts[w][0] * share for w, share in shares.items()), start=0)
    pairs = sparse.csr_array(pairs)
    return pairs, pairs.sum(axis=1)


def shifted(information: sparse.csr_array, by: float) -> sparse.csr_array:
    information = information.copy()
    information.data = np.maximum(information.data - np.float32(by), 0)
    information.eliminate_zeros()
    return information


def variants(counts: dict[int, Counts]) -> Iterator[tuple[str, np.ndarray]]:
    def made(
        name: str,
        *,
        window: int = 5,
        weights: str = "equal",
        smoothing: float = 0.75,
        shift: float = 0,
        power: float = 0.5,
    ) -> tuple[str, np.ndarray]:
        information = positive_pmi(*weighted(counts, window, weights), smoothing=smoothing)
        if shift:
            information = shifted(information, shift)
        return name, scale_columns(*truncated_svd(information, width=WIDTH, seed=0), power=power)

    yield made("defaults")
    for window in (2, 3, 10, 20):
        yield made(f"window {window}", window=window)
    for weights in ("falling", "harmonic"):
        yield made(f"weights {weights}", weights=weights)
    for smoothing in (0.5, 1.0):
        yield made(f"smoothing {smoothing}", smoothing=smoothing)
    for shift in (np.log(2), np.log(5)):
        yield made(f"shift ln {np.exp(shift):.0f}", shift=shift)
    for power in (0.0, 0.25, 1.0, 1.5):
        yield made(f"U·S^{power}", power=power)
    for window in (10, 20):
        yield made(f"window {window}, U·S", window=window, power=1.0)


def accuracies(vectors: np.ndarray, data: Dataset, ids: dict[str, list], seeds: int) -> np.ndarray:
    """Return the validation accuracies: (seeds, budgets)."""
    table = np.zeros((seeds, len(BUDGETS)))
    for seed in range(seeds):
        for column, budget in enumerate(BUDGETS):
            rows = data.train.budget_rows(budget, seed=seed)
            arm = CooccurrenceClassifier(vectors).fit(
                [ids["train"][row] for row in rows],
                data.train.labels[rows],
                validation=(ids["validation"], data.validation.labels),
            )
            table[seed, column] = arm.score(ids["validation"], data.validation.labels)
    return table


def main() -> None:
    options = seeds_and_cache(__doc__.splitlines()[0]).parse_args()
    imdb, data = read_reviews()
    corpus = imdb.texts
    tokenizer = byte_level_bpe(corpus, VOCAB_SIZE, options.cache)
    documents = encode(tokenizer, corpus)
    ids = {name: encode(tokenizer, getattr(data, name).texts) for name in ("train", "validation")}
    counts = {
        window: count_pairs(documents, vocab_size=VOCAB_SIZE, window=window) for window in WINDOWS
    }
    print(f"{'':20}" + "".join(f"{f'{budget:,} labels':>18}" for budget in BUDGETS) + "    mean")
    baseline = None
    for name, vectors in variants(counts):
        table = accuracies(vectors, data, ids, options.seeds) * 100
        baseline = table if baseline is None else baseline
        gain = (table - baseline).mean(axis=1)
        row = "".join(f"{column.mean():>12.1f} ±{column.std(ddof=1):4.1f}" for column in table.T)
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        print(f"{name:20}{row}{table.mean():>8.2f} ({gain.mean():+.2f} ±{error:.2f})", flush=True)


if __name__ == "__main__":
    main()
