"""Packing loses and invents nothing, and knows where documents begin and end."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.data.batches import PADDING_SEGMENT, TokenSource
from headstart.data.token_store import store_corpus


@st.composite
def documents_and_length(draw):
    documents = [*draw(st.lists(st.text(max_size=40), max_size=12)), "a film"]
    return documents, draw(st.integers(1, 50))


@pytest.fixture(scope="session")
def pack(bpe, tmp_path_factory):
    def pack_documents(documents, length):
        folder = tmp_path_factory.mktemp("store")
        store, _ = store_corpus(documents, bpe, folder, fingerprint="documents")
        return TokenSource(store, bpe, length=length)

    return pack_documents


@pytest.fixture(scope="session")
def wrapped(bpe):
    def wrap(documents):
        return [[bpe.begin_id, *ids, bpe.end_id] for ids in bpe.encode(documents)]

    return wrap


@settings(max_examples=50)
@given(documents_and_length())
def test_no_token_is_lost_or_invented(pack, wrapped, case):
    documents, length = case
    packed = pack(documents, length)
    rows = packed.read_rows(range(packed.num_rows()))
    stream = rows.tokens[rows.segments != PADDING_SEGMENT].tolist()
    assert stream == list(chain.from_iterable(wrapped(documents)))


@settings(max_examples=50)
@given(documents_and_length())
def test_a_segment_is_a_document(pack, wrapped, case):
    documents, length = case
    packed = pack(documents, length)
    rows = packed.read_rows(range(packed.num_rows()))
    parts = [
        row[segments == segment].tolist()
        for row, segments in zip(rows.tokens, rows.segments, strict=True)
        for segment in range(1, segments.max() + 1)
    ]
    # A document that continues in the next row is its parts one after the other.
    joined: list[list[int]] = []
    for part in parts:
        if joined and joined[-1][-1] != wrapped([""])[0][-1]:
            joined[-1] += part
        else:
            joined.append(part)
    assert joined == wrapped(documents)


@settings(max_examples=50)
@given(documents_and_length())
def test_only_the_end_of_the_last_row_is_padding(bpe, pack, case):
    packed = pack(*case)
    rows = packed.read_rows(range(packed.num_rows()))
    padding = rows.segments == PADDING_SEGMENT
    assert not padding[:-1].any()
    assert (padding[-1].int().diff() >= 0).all()
    assert (rows.tokens[padding] == bpe.pad_id).all()


@settings(max_examples=30)
@given(documents_and_length(), st.randoms(use_true_random=False))
def test_any_row_can_be_had_alone(pack, case, chance):
    packed = pack(*case)
    every = packed.read_rows(range(packed.num_rows()))
    number = chance.randrange(packed.num_rows())
    alone = packed.read_rows([number])
    assert (alone.tokens[0] == every.tokens[number]).all()
    assert (alone.segments[0] == every.segments[number]).all()


def test_padding_is_under_one_percent_of_a_small_corpus(pack, sentences):
    packed = pack(sentences * 50, 128)
    rows = packed.read_rows(range(packed.num_rows()))
    assert (rows.segments == PADDING_SEGMENT).double().mean() < 0.01
