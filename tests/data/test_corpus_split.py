"""A corpus always has a held-out part, whatever the number and the length of its documents."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.data.token_store import MAX_CHUNKS, MAX_HELD_OUT, CorpusSplit, choose_split

LONG = " ".join(f"word{n}" for n in range(2_000))


def sides(documents, split):
    found = list(split.documents(documents))
    return [[text for text in found if split.holds_out(text) == held] for held in (False, True)]


def size(texts):
    return sum(len(text.encode()) for text in texts)


def test_where_the_share_is_enough_nothing_but_the_share_decides():
    read = []
    documents = (read.append(n) or f"{n} {LONG}" for n in range(100_000))
    assert choose_split(documents, 0.1, min_bytes=1_000) == CorpusSplit.of_share(0.1)
    assert len(read) < 200


def test_of_a_few_long_documents_one_is_held_out():
    for number in range(20):  # by chance, a hundredth of five documents is none
        documents = [f"{number} {copy} {LONG}" for copy in range(5)]
        kept, held_out = sides(documents, choose_split(documents, 0.01, min_bytes=1_000))
        assert (len(kept), len(held_out)) == (4, 1)


def test_of_two_long_documents_less_than_one_is_held_out():
    for number in range(20):
        documents = [f"{number} {LONG}", f"{number + 100} {LONG}"]
        kept, held_out = sides(documents, choose_split(documents, 0.01, min_bytes=1_000))
        assert 1_000 <= size(held_out) <= MAX_HELD_OUT * size(documents)
        assert size(kept) + size(held_out) == size(documents)


def test_one_long_document_is_cut_at_white_space():
    split = choose_split([LONG], 0.01, min_bytes=1_000)
    kept, held_out = sides([LONG], split)
    assert kept
    assert held_out
    chunks = list(split.documents([LONG]))
    assert "".join(chunks) == LONG
    assert len(chunks) <= MAX_CHUNKS
    assert {word for piece in chunks for word in piece.split()} == set(LONG.split())
    assert min(size(kept), size(held_out)) >= 1_000


@settings(deadline=None)
@given(st.sets(st.text("abc \n", min_size=100, max_size=300), min_size=2, max_size=30))
def test_with_two_documents_or_more_both_sides_have_some(documents):
    given = sorted(documents) * 2
    kept, held_out = sides(given, choose_split(given, 0.01, min_bytes=99))
    assert min(size(kept), size(held_out)) >= 99
    assert not set(kept) & set(held_out)


@settings(deadline=None)
@given(st.lists(st.text(max_size=300)), st.integers(1, 50))
def test_chunks_are_the_document(documents, chunk_bytes):
    split = CorpusSplit(0, chunk_bytes)
    for document in documents:
        assert "".join(split.documents([document])) == document
