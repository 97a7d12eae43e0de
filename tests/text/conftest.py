"""Small real tokenizers, for the tests of `text/`."""

import pytest

from headstart.text.tokenizers.json_tokenizer import JsonTokenizer
from headstart.text.tokenizers.train_tokenizer import train_tokenizer

SENTENCES = [
    "The film was a delight, and the children didn't want to leave.",
    "Le film était très bon; les enfants n'ont pas voulu partir !",
    "Фильм был очень хорош, и дети не хотели уходить.",
    "映画はとても良かったので、子供たちは帰りたがりませんでした。",
    "It cost 12.50 (about 3rd of what we'd paid in 1999).\nWorth it.",
] * 4


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """A few sentences in four scripts."""
    return SENTENCES


@pytest.fixture(scope="session", params=["bpe", "unigram"])
def trained(request: pytest.FixtureRequest) -> JsonTokenizer:
    """A tokenizer of either kind, trained on a few sentences."""
    return train_tokenizer(SENTENCES, vocab_size=500, kind=request.param)


@pytest.fixture(scope="session")
def bpe() -> JsonTokenizer:
    """The default kind."""
    return train_tokenizer(SENTENCES, vocab_size=500)
