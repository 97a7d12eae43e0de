"""Hashed character n-grams equal those of scikit-learn's vectorizer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from headstart.baselines.linear import count_char_ngrams


def sorted_counts(matrix):
    """Each row's counts in order: equal whatever the columns are called."""
    return [sorted(row) for row in np.split(matrix.data, matrix.indptr[1:-1])]


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=5))
def test_counts_equal_scikit_learns(texts):
    texts = [*texts, "so that there is an n-gram"]
    padded = [f" {' '.join(text.lower().split())} " for text in texts]
    reference = CountVectorizer(
        analyzer=lambda text: [
            text[i : i + size] for size in (3, 4, 5) for i in range(len(text) - size + 1)
        ]
    ).fit_transform(padded)
    for ours, theirs in zip(
        sorted_counts(count_char_ngrams(texts)), sorted_counts(reference), strict=True
    ):
        assert sum(ours) == sum(theirs)
        # Two n-grams of a text rarely have the same hash; then they are counted together.
        assert ours == theirs or len(ours) == len(theirs) - 1


@pytest.mark.parametrize("texts", [[], [""], ["", "   ", "a"]])
def test_texts_without_an_n_gram_are_empty_rows_or_none(texts):
    assert count_char_ngrams(texts).shape[0] == len(texts)
