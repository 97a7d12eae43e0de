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
def test_rows_are_the_documents_in_segments_with_padding_at_the_end_only(pack, wrapped, bpe, case):
    documents, length = case
    packed = pack(documents, length)
    rows = packed.read_rows(range(packed.num_rows()))
    padding = rows.segments == PADDING_SEGMENT
    assert rows.tokens[~padding].tolist() == list(chain.from_iterable(wrapped(documents)))
    assert not padding[:-1].any()
    assert (padding[-1].int().diff() >= 0).all()
    assert (rows.tokens[padding] == bpe.pad_id).all()
    for number, (row, segments) in enumerate(zip(rows.tokens, rows.segments, strict=True)):
        ends = row[segments > 0] == bpe.end_id  # a segment ends where a document does
        assert segments[segments > 0].diff().tolist() == ends[:-1].int().tolist()
        alone = packed.read_rows([number])
        assert (alone.tokens[0] == row).all()
        assert (alone.segments[0] == segments).all()


def test_padding_is_under_one_percent_of_a_small_corpus(pack, sentences):
    packed = pack(sentences * 50, 128)
    rows = packed.read_rows(range(packed.num_rows()))
    assert (rows.segments == PADDING_SEGMENT).double().mean() < 0.01
