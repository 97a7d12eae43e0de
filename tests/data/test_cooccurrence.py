"""PPMI-SVD: counts are exact, streamed and bounded; vectors reflect shared contexts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.cooccurrence import (
    count_pairs,
    positive_pmi,
    ppmi_svd,
    scale_columns,
)

VOCAB = 7
corpora = st.lists(
    st.lists(st.integers(0, VOCAB - 1), max_size=12).map(lambda ids: np.array(ids, dtype=np.int32)),
    max_size=6,
)


def counted_slowly(documents, window, ignore=()):
    counts = np.zeros((VOCAB, VOCAB))
    for document in documents:
        for i, one in enumerate(document):
            for j, other in enumerate(document):
                if 1 <= abs(i - j) <= window and one not in ignore and other not in ignore:
                    counts[one, other] += 1
    return counts


def ppmi_slowly(counts, smoothing):
    information = np.zeros_like(counts)
    contexts = np.array([total**smoothing if total else 0 for total in counts.sum(axis=0)])
    for i, j in zip(*np.nonzero(counts), strict=True):
        p_context = contexts[j] / contexts.sum()
        p_pair = counts[i, j] / counts.sum()
        p_token = counts[i].sum() / counts.sum()
        information[i, j] = max(0.0, np.log(p_pair / (p_token * p_context)))
    return information


@given(corpora, st.integers(1, 6), st.integers(1, 40), st.sets(st.integers(0, 6), max_size=2))
def test_pairs_are_those_of_a_count_by_hand(documents, window, chunk_pairs, ignore):
    pairs, totals = count_pairs(
        documents,
        vocab_size=VOCAB,
        window=window,
        ignore=sorted(ignore),
        chunk_pairs=chunk_pairs,
    )
    expected = counted_slowly(documents, window, ignore)
    assert np.array_equal(pairs.toarray(), expected)
    assert np.array_equal(totals, expected.sum(axis=1))


@given(corpora, st.integers(1, 4), st.sampled_from([0.5, 0.75, 1.0]))
def test_ppmi_is_its_definition(documents, window, smoothing):
    counts = count_pairs(documents, vocab_size=VOCAB, window=window)
    information = positive_pmi(*counts, smoothing=smoothing).toarray()
    expected = ppmi_slowly(counted_slowly(documents, window), smoothing)
    assert np.allclose(information, expected, atol=1e-5)


@given(corpora, st.integers(1, 10))
def test_a_full_matrix_drops_pairs_and_keeps_the_totals(documents, max_pairs):
    whole, totals = count_pairs(documents, vocab_size=VOCAB, window=2)
    bounded, same = count_pairs(
        documents, vocab_size=VOCAB, window=2, chunk_pairs=8, max_pairs=max_pairs
    )
    assert np.array_equal(same, totals)
    assert (bounded.toarray() <= whole.toarray()).all()
    assert bounded.nnz <= 2 * max_pairs


def cooccurrence_vectors(documents, **options):
    return scale_columns(*ppmi_svd(documents, **options), power=0.5)


def synonyms(seed=0):
    """Sentences `context, word, context`: words 0 and 1 share their contexts, word 2 has others."""
    draw = np.random.default_rng(seed)
    rows = []
    for _ in range(3_000):
        word = draw.integers(3)
        low, high = (10, 20) if word < 2 else (20, 30)
        rows.append(np.array([draw.integers(low, high), word, draw.integers(low, high)]))
    return rows


def cosine(one, other):
    return one @ other / (np.linalg.norm(one) * np.linalg.norm(other))


def test_words_of_the_same_company_get_nearly_the_same_vector():
    vectors = cooccurrence_vectors(synonyms(), vocab_size=30, width=4)
    assert cosine(vectors[0], vectors[1]) > 0.99
    assert abs(cosine(vectors[0], vectors[2])) < 0.1


def test_the_same_documents_give_the_same_bits():
    first, second = (cooccurrence_vectors(synonyms(), vocab_size=30, width=8) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_tokens_without_counts_get_the_zero_vector():
    vectors = cooccurrence_vectors(synonyms(), vocab_size=31, width=4, ignore=[0])
    assert not vectors[0].any()
    assert not vectors[30].any()
    assert vectors[1].any()


@pytest.mark.parametrize("documents", [[], [np.array([], dtype=int)], [np.array([3])]])
def test_nothing_to_count_gives_zeros(documents):
    assert not cooccurrence_vectors(documents, vocab_size=5, width=3).any()
