"""A store is complete or absent; its batches depend only on the seed and the step."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.data.batches import (
    LengthBatches,
    TokenSource,
    choose_held_out,
    is_complete,
    shuffled_batch,
    store_corpus,
    text_hash,
)
from headstart.data.tokenizers import train_tokenizer

sizes = st.integers(1, 60)
seeds = st.integers(0, 2**32)


class Documents(list[str]):
    """Documents that count how often they are read."""

    readings = 0

    def __iter__(self):
        self.readings += 1
        return super().__iter__()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def folders(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def store_of(documents, tokenizer, folder, fingerprint="a", held_out=0):
    return store_corpus(documents, tokenizer, folder, fingerprint=fingerprint, held_out=held_out)[0]


@settings(max_examples=50)
@given(documents=st.lists(st.text() | st.sampled_from(["a film " * 30, ""]), max_size=12))
def test_every_document_comes_back(bpe, tmp_path_factory, documents):
    store = store_of(documents, bpe, tmp_path_factory.mktemp("store"))
    ids = bpe.encode(documents)
    assert [document.tolist() for document in store] == ids
    joined = np.array([*chain.from_iterable(ids)], dtype=int)
    assert np.array_equal(store.counts(500), np.bincount(joined, minlength=500))


def test_another_text_tokenizer_or_share_is_another_store(bpe, tmp_path, sentences):
    other, again = train_tokenizer(sentences, vocab_size=300), Documents()
    store_of([], bpe, tmp_path)
    store_of([], bpe, tmp_path, "b")
    store_of([], other, tmp_path)
    store_of([], bpe, tmp_path, held_out=1)
    store_of(again, bpe, tmp_path)
    assert (len(folders(tmp_path)), again.readings) == (4, 0)


def test_a_half_written_store_is_removed_and_never_used(bpe, tmp_path, sentences):
    key = store_of(sentences, bpe, tmp_path / "elsewhere").folder.name
    folder = tmp_path / "stores"
    (folder / f"{key}.part").mkdir(parents=True)
    (folder / f"{key}.part" / "train-ids.bin").write_bytes(b"half")
    assert is_complete(store_of(sentences, bpe, folder).folder)
    assert folders(folder) == [key]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("train-ids.bin", "flipped bit"),
        ("train-documents.bin", "cut short"),
        ("train-ids.bin", "missing"),
        ("manifest.json", "flipped bit"),
    ],
)
def test_a_damaged_store_is_made_again(bpe, tmp_path, sentences, name, damage):
    folder = store_of(sentences, bpe, tmp_path).folder
    before = contents(folder)
    data = bytearray(before[name])
    data[7] ^= 1
    if damage == "missing":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(data if damage == "flipped bit" else data[:-2])
    assert not is_complete(folder)
    assert contents(store_of(sentences, bpe, tmp_path).folder) == before


def test_two_writers_of_the_same_store_do_the_work_once(bpe, tmp_path, sentences):
    both_asked, documents = threading.Barrier(2), Documents(sentences)

    def ask():
        both_asked.wait()
        return store_of(documents, bpe, tmp_path)

    with ThreadPoolExecutor(2) as pool:
        stores = [future.result() for future in [pool.submit(ask), pool.submit(ask)]]
    assert stores[0].folder == stores[1].folder
    assert documents.readings == 1


def test_the_share_decides_which_documents_are_held_out_and_all_are_stored(bpe, tmp_path):
    documents = Documents(f"film number {n}" for n in range(200))
    limit = choose_held_out(documents, 0.2, min_bytes=10)
    assert limit == round(0.2 * 2**64)
    readings = documents.readings
    parts = store_corpus(documents, bpe, tmp_path, fingerprint="a", held_out=limit)
    assert documents.readings == readings + 1
    train, held_out = ([bpe.decode(ids.tolist()) for ids in store] for store in parts)
    assert sorted(train + held_out) == sorted(documents)
    assert 20 <= len(held_out) <= 60


@settings(deadline=None)
@given(st.sets(st.text("abc \n", min_size=100, max_size=150), min_size=3, max_size=30))
def test_of_few_documents_enough_are_held_out_whatever_the_share(documents):
    texts = sorted(documents)
    limit = choose_held_out(texts, 0.01, min_bytes=99)
    held_out = [text for text in texts if text_hash(text) < limit]
    assert 1 <= len(held_out) < len(texts)


@settings(max_examples=50)
@given(st.lists(st.text(max_size=40), max_size=12), st.integers(1, 50))
def test_rows_are_the_documents_in_segments_with_padding_at_the_end_only(
    bpe, tmp_path_factory, texts, length
):
    documents = [*texts, "a film"]
    store = store_of(documents, bpe, tmp_path_factory.mktemp("store"))
    packed = TokenSource(store, bpe, length=length)
    rows = packed.read_rows(range(packed.num_rows()))
    padding = rows.segments == 0
    wrapped = [[bpe.begin_id, *ids, bpe.end_id] for ids in bpe.encode(documents)]
    assert rows.tokens[~padding].tolist() == [*chain.from_iterable(wrapped)]
    assert not padding[:-1].any()
    assert (padding[-1].int().diff() >= 0).all()
    for number, (row, segments) in enumerate(zip(rows.tokens, rows.segments, strict=True)):
        ends = row[segments > 0] == bpe.end_id  # a segment ends where a document does
        assert segments[segments > 0].diff().tolist() == ends[:-1].int().tolist()
        assert (packed.read_rows([number]).tokens[0] == row).all()


@given(items=sizes, batch_size=sizes, seed=seeds)
def test_every_epoch_has_every_item_once(items, batch_size, seed):
    steps = range(-(-3 * items // batch_size))
    batches = [shuffled_batch(items, batch_size, seed=seed, step=step) for step in steps]
    assert {len(batch) for batch in batches} == {batch_size}
    stream = np.concatenate(batches)
    for epoch in range(3):
        assert sorted(stream[epoch * items : (epoch + 1) * items]) == list(range(items))


def test_a_batch_depends_on_seed_and_step_alone():
    assert shuffled_batch(10, 4, seed=1, step=2_000).tolist() == [5, 1, 8, 4]


@given(st.lists(st.integers(0, 500), min_size=1, max_size=80), st.integers(1, 20), seeds)
def test_every_epoch_has_every_text_once_and_a_step_needs_no_replay(lengths, batch_size, seed):
    batches = LengthBatches(lengths, batch_size=batch_size, seed=seed)
    steps = batches.steps_per_epoch
    for number in range(2):
        found = [batches.batch(number * steps + step).tolist() for step in range(steps)]
        assert sorted(chain.from_iterable(found)) == list(range(len(lengths)))
    again = LengthBatches(lengths, batch_size=batch_size, seed=seed)
    assert again.batch(2 * steps - 1).tolist() == found[-1]
