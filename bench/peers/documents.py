"""Made-up documents with the lengths of the lab's reviews; speed does not depend on the words."""

import numpy as np


def make_documents(vocab_size: int, count: int = 2_000, seed: int = 0) -> list[np.ndarray]:
    """Documents of 30 to 500 tokens, frequent tokens far more often than rare ones (Zipf)."""
    random = np.random.default_rng(seed)
    lengths = np.clip(random.lognormal(4.9, 0.7, count), 30, 500).astype(int)
    ranks = np.arange(1, vocab_size - 10)
    chances = 1 / ranks
    tokens = random.choice(ranks + 9, size=int(lengths.sum()), p=chances / chances.sum())
    return np.split(tokens, np.cumsum(lengths)[:-1])
