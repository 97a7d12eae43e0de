"""Packing loses and invents nothing, and knows where documents begin and end."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.errors import HeadstartError
from headstart.text.store.token_source import PADDING_SEGMENT, PackedRows
from headstart.text.store.write_store import store_corpus
from headstart.text.tokenizers.train_tokenizer import train_tokenizer


class ListCorpus(list[str]):
    """Documents in memory."""

    fingerprint = "documents"


@st.composite
def documents_and_length(draw):
    documents = draw(st.lists(st.text(max_size=40), min_size=1, max_size=12))
    return documents, draw(st.integers(1, 50))


@pytest.fixture(scope="session")
def pack(bpe, tmp_path_factory):
    def pack_documents(documents, length):
        store = store_corpus(
            ListCorpus(documents), bpe, tmp_path_factory.mktemp("store"), shard_tokens=30
        )
        return PackedRows(store, bpe, length=length)

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
    rows = packed.rows(range(len(packed)))
    stream = rows.tokens[rows.segments != PADDING_SEGMENT].tolist()
    assert stream == list(chain.from_iterable(wrapped(documents)))


@settings(max_examples=50)
@given(documents_and_length())
def test_a_segment_is_a_document(pack, wrapped, case):
    documents, length = case
    packed = pack(documents, length)
    rows = packed.rows(range(len(packed)))
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
    rows = packed.rows(range(len(packed)))
    padding = rows.segments == PADDING_SEGMENT
    assert not padding[:-1].any()
    assert (np.diff(padding[-1].astype(int)) >= 0).all()
    assert (rows.tokens[padding] == bpe.pad_id).all()


@settings(max_examples=30)
@given(documents_and_length(), st.randoms(use_true_random=False))
def test_any_row_can_be_had_alone(pack, case, chance):
    packed = pack(*case)
    every = packed.rows(range(len(packed)))
    number = chance.randrange(len(packed))
    alone = packed.rows([number])
    assert (alone.tokens[0] == every.tokens[number]).all()
    assert (alone.segments[0] == every.segments[number]).all()


def test_padding_is_under_one_percent_of_a_small_corpus(pack, sentences):
    packed = pack(sentences * 50, 128)
    assert (packed.rows(range(len(packed))).segments == PADDING_SEGMENT).mean() < 0.01


def test_an_empty_store_has_no_rows(pack):
    packed = pack([], 8)
    assert len(packed) == 0


def test_a_row_beyond_the_last_is_an_error(pack):
    with pytest.raises(IndexError):
        pack(["a"], 8).rows([1])


def test_a_store_of_another_tokenizer_is_refused(bpe, tmp_path, sentences):
    store = store_corpus(ListCorpus(sentences), bpe, tmp_path)
    with pytest.raises(HeadstartError, match="another tokenizer"):
        PackedRows(store, train_tokenizer(sentences, vocab_size=300), length=8)
