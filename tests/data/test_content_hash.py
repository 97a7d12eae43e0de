"""A change of a corpus while it is read is noticed."""

import os

import pytest

from headstart.data.corpus import read_corpus
from headstart.data.token_store import store_corpus
from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError

LONG_AGO = 1_600_000_000


def aged(path):
    """The same file, last written long ago."""
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def test_a_file_that_was_only_touched_is_still_the_same_corpus(write):
    path = write("a.txt", "one\n")
    corpus = read_corpus(path)
    fingerprint = corpus.fingerprint
    aged(path)
    assert list(corpus) == ["one"]
    assert corpus.fingerprint == fingerprint


def test_a_corpus_that_changes_after_it_was_hashed_cannot_be_read_to_its_end(write):
    corpus = read_corpus(aged(write("a.txt", "one\ntwo\n")))
    assert corpus.fingerprint
    path = write("a.txt", "one\nsix\n")
    with pytest.raises(HeadstartError, match="changed while it was being read") as error:
        list(corpus)
    assert error.value.where == str(path)


def test_no_store_is_made_of_a_corpus_that_changes_while_it_is_stored(tmp_path, write):
    bpe = train_tokenizer(["one two three"] * 20, vocab_size=300)
    corpus = read_corpus(aged(write("a.txt", "one\ntwo\n")))

    def changing():
        for text in corpus:
            yield text
            write("a.txt", "one\ntwo\nthree\n")

    folder = tmp_path / "stores"
    with pytest.raises(HeadstartError, match="changed while it was being read"):
        store_corpus(changing(), bpe, folder, fingerprint=corpus.fingerprint)
    assert [path for path in folder.iterdir() if path.is_dir()] == []
