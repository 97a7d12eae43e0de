"""A store holds every token of a corpus, is made once, and is whole or absent."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.errors import HeadstartError
from headstart.text.store import token_store
from headstart.text.store.corpus_split import CorpusSplit
from headstart.text.store.token_store import CHECKED_BLOCK, TokenStore
from headstart.text.store.write_store import store_corpus, store_corpus_split, store_key
from headstart.text.tokenizers.train_tokenizer import train_tokenizer


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


@settings(max_examples=50)
@given(
    documents=st.lists(st.text() | st.sampled_from(["a film " * 30, ""]), max_size=12),
    shard_tokens=st.integers(1, 60),
)
def test_every_document_comes_back_from_shards_of_any_size(
    bpe, tmp_path_factory, documents, shard_tokens
):
    folder = tmp_path_factory.mktemp("store")
    store = store_corpus(ListCorpus(documents), bpe, folder, shard_tokens=shard_tokens)
    assert [document.tolist() for document in store] == bpe.encode(documents)
    assert store.tokens == sum(map(len, bpe.encode(documents)))


def test_no_document_reaches_across_two_shards(bpe, tmp_path, sentences):
    store = store_corpus(ListCorpus(sentences), bpe, tmp_path, shard_tokens=50)
    ends = np.cumsum([entry["bytes"] // 2 for entry in store.manifest["shards"]])
    assert len(ends) > 2
    assert set(ends.tolist()) <= set(store.starts.tolist())


def test_the_second_time_the_corpus_is_not_read(bpe, tmp_path, sentences):
    corpus = ListCorpus(sentences)
    first = store_corpus(corpus, bpe, tmp_path)
    second = store_corpus(corpus, bpe, tmp_path)
    assert corpus.readings == 1
    assert second.folder == first.folder


def test_another_text_tokenizer_or_setting_has_another_key(bpe, sentences):
    other = train_tokenizer(sentences, vocab_size=300)
    keys = {
        store_key("a", bpe),
        store_key("b", bpe),
        store_key("a", other),
        store_key("a", bpe, shard_tokens=10),
    }
    assert len(keys) == 4


def test_small_vocabularies_take_two_bytes_a_token(bpe, tmp_path, sentences):
    store = store_corpus(ListCorpus(sentences), bpe, tmp_path)
    assert sum(entry["bytes"] for entry in store.manifest["shards"]) == 2 * store.tokens


def test_large_vocabularies_take_four_bytes_a_token(bpe, tmp_path, sentences, monkeypatch):
    monkeypatch.setattr(bpe, "vocab_size", (1 << 16) + 1)
    monkeypatch.setattr(bpe, "_cache", None)
    store = store_corpus(ListCorpus(sentences), bpe, tmp_path)
    assert sum(entry["bytes"] for entry in store.manifest["shards"]) == 4 * store.tokens
    assert [document.tolist() for document in store] == bpe.encode(sentences)


def test_a_corpus_that_fails_midway_leaves_no_store(bpe, tmp_path):
    class Failing(ListCorpus):
        def __iter__(self) -> Iterator[str]:
            yield "one"
            raise HeadstartError("row 2 is not text")

    with pytest.raises(HeadstartError, match="row 2"):
        store_corpus(Failing([]), bpe, tmp_path)
    assert folders(tmp_path) == []


def test_a_half_written_store_is_removed_and_never_used(bpe, tmp_path, sentences):
    corpus = ListCorpus(sentences)
    key = store_key(corpus.fingerprint, bpe)
    for name in (f"{key}.part", "another.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokens-00000.bin").write_bytes(b"half")
    store = store_corpus(corpus, bpe, tmp_path)
    TokenStore(store.folder)
    assert folders(tmp_path) == [key]


def test_a_store_whose_file_was_cut_short_is_made_again(bpe, tmp_path, sentences):
    corpus = ListCorpus(sentences)
    store = store_corpus(corpus, bpe, tmp_path)
    before = contents(store.folder)
    (store.folder / "tokens-00000.bin").write_bytes(b"\0\0")
    with pytest.raises(HeadstartError, match="not a finished"):
        TokenStore(store.folder)
    assert contents(store_corpus(corpus, bpe, tmp_path).folder) == before


@pytest.mark.parametrize("name", ["tokens-00000.bin", "documents.bin"])
def test_flipped_bits_are_found_when_a_store_is_opened_and_it_is_made_again(
    bpe, tmp_path, sentences, name
):
    corpus = ListCorpus(sentences)
    store = store_corpus(corpus, bpe, tmp_path)
    before = contents(store.folder)
    data = bytearray(before[name])
    data[7] ^= 1
    (store.folder / name).write_bytes(data)
    with pytest.raises(HeadstartError, match=f"{name} is damaged: its checksum"):
        TokenStore(store.folder)
    assert contents(store_corpus(corpus, bpe, tmp_path).folder) == before
    assert corpus.readings == 2


def test_opening_a_large_store_checks_a_sample_with_both_ends(monkeypatch):
    monkeypatch.setattr(token_store, "_SAMPLE", 4)
    files = [{"name": "a", "checksums": ["", ""]}, {"name": "b", "checksums": [""] * 20}]
    chosen = [(entry["name"], block) for entry, block in token_store._sample(files)]
    assert len(chosen) == 4
    assert (chosen[0], chosen[-1]) == (("a", 0), ("b", 19))


def test_damage_beyond_the_first_block_is_found(bpe, tmp_path):
    store = store_corpus(ListCorpus(["a film was seen " * 400_000]), bpe, tmp_path)
    shard = store.folder / "tokens-00000.bin"
    assert shard.stat().st_size > CHECKED_BLOCK
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    with pytest.raises(HeadstartError, match="damaged"):
        TokenStore(store.folder)


def test_both_sides_of_a_split_are_written_in_one_reading(bpe, tmp_path):
    documents = [f"film number {n}" for n in range(200)]
    corpus = ListCorpus(documents)
    train, held_out = store_corpus_split(corpus, bpe, tmp_path, split=CorpusSplit.of_share(0.2))
    assert corpus.readings == 1
    sides = [[bpe.decode(ids.tolist()) for ids in store] for store in (train, held_out)]
    assert sorted(sides[0] + sides[1]) == sorted(documents)
    assert 20 <= len(sides[1]) <= 60
    assert all([text for text in documents if text in side] == side for side in sides)


def test_a_side_that_is_missing_is_made_beside_the_one_that_is_there(bpe, tmp_path):
    corpus = ListCorpus([f"film number {n}" for n in range(200)])
    train, held_out = store_corpus_split(corpus, bpe, tmp_path, split=CorpusSplit.of_share(0.2))
    before = contents(held_out.folder)
    written = (train.folder / "manifest.json").stat().st_mtime_ns
    (held_out.folder / "manifest.json").unlink()
    _, again = store_corpus_split(corpus, bpe, tmp_path, split=CorpusSplit.of_share(0.2))
    assert contents(again.folder) == before
    assert (train.folder / "manifest.json").stat().st_mtime_ns == written


def test_equal_documents_are_on_the_same_side_in_any_order(bpe, tmp_path):
    documents = [f"film number {n % 50}" for n in range(200)]
    first = store_corpus_split(
        ListCorpus(documents, "a"), bpe, tmp_path, split=CorpusSplit.of_share(0.3)
    )
    second = store_corpus_split(
        ListCorpus(documents[::-1], "b"), bpe, tmp_path, split=CorpusSplit.of_share(0.3)
    )
    for one, other in zip(first, second, strict=True):
        assert sorted(ids.tolist() for ids in one) == sorted(ids.tolist() for ids in other)
    sides = [{tuple(ids.tolist()) for ids in store} for store in first]
    assert sides[0].isdisjoint(sides[1])


def test_two_writers_of_the_same_store_do_the_work_once(bpe, tmp_path, sentences):
    both_asked = threading.Barrier(2)
    corpus = ListCorpus(sentences)

    def ask() -> TokenStore:
        both_asked.wait()
        return store_corpus(corpus, bpe, tmp_path)

    with ThreadPoolExecutor(2) as pool:
        stores = [future.result() for future in [pool.submit(ask), pool.submit(ask)]]
    assert stores[0].folder == stores[1].folder
    assert corpus.readings == 1


def test_progress_counts_documents_up_to_the_last(bpe, tmp_path, sentences):
    seen = []
    store_corpus(ListCorpus(sentences), bpe, tmp_path, progress=lambda *told: seen.append(told))
    assert seen[-1] == (len(sentences), None)
