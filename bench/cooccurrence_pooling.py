"""Compare ways to scale the mean and the maximum of a text's vectors in the arm `cooc-lr`.

Prints the validation accuracy on rotten-tomatoes, as `cooccurrence_variants.py` does. The results
are in `research/cooccurrence.md`.

    python bench/cooccurrence_pooling.py [--seeds 5] [--cache FOLDER]
"""

import numpy as np

from headstart.baselines.linear import mean_and_maximum
from headstart.data.cooccurrence import ppmi_svd, scale_columns
from headstart.linear import POOLED_CS, FoldFeatures, select_C
from reviews import byte_level_bpe, encode, read_reviews, seeds_and_cache

VOCAB_SIZE, WIDTH, BUDGETS = 8_192, 256, (100, 400, 1_600)
# Scale of the maximum relative to the mean; None: each column has a standard deviation of 1.
SCALES = {"each column": None, "mean + max": 1.0, "mean + max / 5": 0.2, "mean alone": 0.0}


def scales(centred: np.ndarray, share: float | None) -> np.ndarray:
    if share is None:
        return 1 / np.maximum(centred.std(axis=0), 1e-9)
    mean, maximum = np.split(centred, 2, axis=1)
    return np.repeat([1 / mean.std(), share / maximum.std()], mean.shape[1])


def main() -> None:
    options = seeds_and_cache(__doc__.splitlines()[0]).parse_args()
    imdb, data = read_reviews()
    tokenizer = byte_level_bpe(imdb.texts, VOCAB_SIZE, options.cache)
    documents = encode(tokenizer, imdb.texts)
    found = ppmi_svd(documents, vocab_size=VOCAB_SIZE, width=WIDTH)
    vectors = scale_columns(*found, power=0.5)
    train, validation = (
        mean_and_maximum(encode(tokenizer, part.texts), vectors)
        for part in (data.train, data.validation)
    )
    for name, share in SCALES.items():
        row = f"{name:16}"
        for budget in BUDGETS:
            found = []
            for seed in range(options.seeds):
                rows = data.train.budget_rows(budget, seed=seed)
                center = train[rows].mean(axis=0)
                scale = scales(train[rows] - center, share)
                parts = [(features - center) * scale for features in (train[rows], validation)]
                wanted = data.validation.labels
                fold = FoldFeatures(parts[0], data.train.labels[rows], parts[1], wanted)
                _, (model,) = select_C([fold], (1e-5, 3e-5, 1e-4, *POOLED_CS))
                found.append(model.score(parts[1], wanted) * 100)
            row += f"{np.mean(found):>8.1f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
