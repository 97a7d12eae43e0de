"""Generate documents with the lengths of the lab's reviews; speed does not depend on the words."""

from pathlib import Path

import numpy as np
import tokenizers


def make_documents(vocab_size: int, count: int = 2_000, seed: int = 0) -> list[np.ndarray]:
    """Generate documents of 30 to 500 tokens with a Zipf distribution."""
    random = np.random.default_rng(seed)
    lengths = np.clip(random.lognormal(4.9, 0.7, count), 30, 500).astype(int)
    ranks = np.arange(1, vocab_size - 10)
    chances = 1 / ranks
    tokens = random.choice(ranks + 9, size=int(lengths.sum()), p=chances / chances.sum())
    return np.split(tokens, np.cumsum(lengths)[:-1])


def make_labels(documents: list[np.ndarray]) -> list[int]:
    """Draw one of two classes for each document at random."""
    return np.random.default_rng(1).integers(2, size=len(documents)).tolist()


def make_texts(documents: list[np.ndarray]) -> list[str]:
    """Write the documents as texts, with one word per token."""
    return [" ".join(f"w{number}" for number in document) for document in documents]


def make_tokenizer(vocab_size: int, folder: Path) -> Path:
    """Write a tokenizer that converts these texts back to the documents; return its file."""
    names = ["[PAD]", "[UNK]", *(f"w{number}" for number in range(2, vocab_size))]
    words = {name: number for number, name in enumerate(names)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    inner.add_special_tokens(names[:2])
    path = folder / "tokenizer.json"
    inner.save(str(path))
    return path
