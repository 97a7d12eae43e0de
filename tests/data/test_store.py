"""A store holds every token of a corpus, is made once, and is whole or absent."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.data.token_store import CorpusSplit, TokenStore, is_complete, store_corpus
from headstart.data.tokenizers import train_tokenizer


class ListCorpus:
    """Documents in memory that count how often they are read."""

    def __init__(self, documents: list[str], fingerprint: str = "a") -> None:
        self.documents = documents
        self.fingerprint = fingerprint
        self.readings = 0

    def __iter__(self) -> Iterator[str]:
        self.readings += 1
        return iter(self.documents)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def folders(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def store_of(corpus, tokenizer, folder):
    store, _ = stores_of(corpus, tokenizer, folder)
    return store


def stores_of(corpus, tokenizer, folder, split=None):
    return store_corpus(corpus, tokenizer, folder, fingerprint=corpus.fingerprint, split=split)


@settings(max_examples=50)
@given(documents=st.lists(st.text() | st.sampled_from(["a film " * 30, ""]), max_size=12))
def test_every_document_comes_back(bpe, tmp_path_factory, documents):
    store = store_of(ListCorpus(documents), bpe, tmp_path_factory.mktemp("store"))
    assert [document.tolist() for document in store] == bpe.encode(documents)
    assert store.tokens == sum(map(len, bpe.encode(documents)))
    ids = np.concatenate([np.empty(0, int), *bpe.encode(documents)]).astype(int)
    assert np.array_equal(store.counts(500), np.bincount(ids, minlength=500))


def test_another_text_tokenizer_or_split_is_another_store(bpe, tmp_path, sentences):
    other = train_tokenizer(sentences, vocab_size=300)
    stores_of(ListCorpus([], "a"), bpe, tmp_path)
    stores_of(ListCorpus([], "b"), bpe, tmp_path)
    stores_of(ListCorpus([], "a"), other, tmp_path)
    stores_of(ListCorpus([], "a"), bpe, tmp_path, CorpusSplit.of_share(0.1))
    again = ListCorpus([], "a")
    stores_of(again, bpe, tmp_path)
    assert (len(folders(tmp_path)), again.readings) == (4, 0)


def test_a_half_written_store_is_removed_and_never_used(bpe, tmp_path, sentences):
    corpus = ListCorpus(sentences)
    key = store_of(corpus, bpe, tmp_path / "elsewhere").folder.name
    folder = tmp_path / "stores"
    (folder / f"{key}.part").mkdir(parents=True)
    (folder / f"{key}.part" / "train-ids.bin").write_bytes(b"half")
    assert is_complete(store_of(corpus, bpe, folder).folder)
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
def test_damage_is_found_when_a_store_is_opened_and_it_is_made_again(
    bpe, tmp_path, sentences, name, damage
):
    corpus = ListCorpus(sentences)
    store = store_of(corpus, bpe, tmp_path)
    before = contents(store.folder)
    data = bytearray(before[name])
    data[7] ^= 1
    if damage == "missing":
        (store.folder / name).unlink()
    else:
        (store.folder / name).write_bytes(data if damage == "flipped bit" else data[:-2])
    assert not is_complete(store.folder)
    assert contents(store_of(corpus, bpe, tmp_path).folder) == before
    assert corpus.readings == 2


def test_both_parts_of_a_split_are_written_in_one_reading(bpe, tmp_path):
    documents = [f"film number {n}" for n in range(200)]
    corpus = ListCorpus(documents)
    train, held_out = stores_of(corpus, bpe, tmp_path, CorpusSplit.of_share(0.2))
    assert corpus.readings == 1
    sides = [[bpe.decode(ids.tolist()) for ids in store] for store in (train, held_out)]
    assert sorted(sides[0] + sides[1]) == sorted(documents)
    assert 20 <= len(sides[1]) <= 60
    assert all([text for text in documents if text in side] == side for side in sides)
    assert train.key != held_out.key


def test_two_writers_of_the_same_store_do_the_work_once(bpe, tmp_path, sentences):
    both_asked = threading.Barrier(2)
    corpus = ListCorpus(sentences)

    def ask() -> TokenStore:
        both_asked.wait()
        return store_of(corpus, bpe, tmp_path)

    with ThreadPoolExecutor(2) as pool:
        stores = [future.result() for future in [pool.submit(ask), pool.submit(ask)]]
    assert stores[0].folder == stores[1].folder
    assert corpus.readings == 1
