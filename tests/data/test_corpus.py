"""A corpus streams its documents, starts anew, and has a fingerprint of its content."""

import tracemalloc

import pytest

from headstart.data.batches import store_corpus
from headstart.data.corpus import read_corpus
from headstart.errors import HeadstartError


@pytest.mark.parametrize(
    ("content", "documents", "found"),
    [
        ("one\n\ntwo words\r\n  \nthree", "line", ["one", "two words", "three"]),
        ("a\u2028b\x0bc\x85d\n", "line", ["a\u2028b\x0bc\x85d"]),
        ("\none\nstill one\n \n\ntwo\n", "blank-line", ["one\nstill one", "two"]),
        ("one\ntwo\n", "file", ["one\ntwo"]),
    ],
)
def test_a_document_of_a_text_file_is_a_line_a_paragraph_or_the_file(
    write, content, documents, found
):
    corpus = read_corpus(write("a.txt", content), documents=documents)
    assert next(iter(corpus)) == found[0]
    assert list(corpus) == list(corpus) == found  # every pass starts anew


def test_a_file_of_a_folder_is_a_document_and_files_of_other_kinds_are_named(write):
    write("f/b.txt", "second\nfile\n")
    write("f/photo.jpg", b"\xff\xd8")
    folder = write("f/a.txt.gz", "first").parent
    corpus = read_corpus(folder)
    assert list(corpus) == ["first", "second\nfile"]
    assert corpus.found == [f"{folder}: plain text, one text per file (2 files)"]
    assert corpus.unread_files == [str(folder / "photo.jpg")]


def test_several_sources_are_one_corpus_in_the_order_given(write):
    one, two = write("1.txt", "one\n"), write("2.csv", "text,other\ntwo,x\n")
    corpus = read_corpus([two, one])
    assert list(corpus) == ["two", "one"]
    assert corpus.size == 21
    assert read_corpus(write("a.txt.gz", "one\n")).size is None


def test_the_fingerprint_changes_with_content_and_with_reading(write):
    path = write("a.txt", "one\ntwo\n")
    before = read_corpus(path)
    kinds = {before.fingerprint, read_corpus(path, documents="blank-line").fingerprint}
    kinds.add(before.without(["two"]).fingerprint)
    assert read_corpus(write("deep/b.txt", "one\ntwo\n")).fingerprint == before.fingerprint
    path.write_text("one\ntwO\n")
    kinds.add(read_corpus(path).fingerprint)
    assert len(kinds) == 4


def test_documents_that_overlap_with_a_held_out_text_are_dropped_in_every_pass(write):
    text = "nobody in this film can act least of all the dog"
    path = write("a.txt", f"one\nHe wrote: {text.upper()}!\n{text}\n\nthree\n")
    corpus = read_corpus(path).without([text])
    for _ in range(2):
        assert list(corpus) == ["one", "three"]
        assert (corpus.empty, corpus.overlapping) == (1, {"contains": 1, "equal": 1})
    joined = corpus.with_task_text(["four", f"again {text}"])
    assert list(joined) == ["one", "three", "four"]


def test_no_store_is_made_of_a_corpus_that_changes_while_it_is_stored(bpe, tmp_path, write):
    path = write("a.txt", "one\ntwo\n")
    corpus = read_corpus(path)
    fingerprint = corpus.fingerprint

    def changing():
        for text in corpus:
            yield text
            write("a.txt", "one\nsix\n")

    folder = tmp_path / "stores"
    with pytest.raises(HeadstartError, match="changed while it was being read"):
        store_corpus(changing(), bpe, folder, fingerprint=fingerprint)
    assert [path for path in folder.iterdir() if path.is_dir()] == []


def test_memory_does_not_grow_with_the_file(write):
    text = "a line of text that is long enough " * 100
    corpus = read_corpus(write("a.csv", "text,label\n" + f"{text},1\n" * 16_000))
    tracemalloc.start()
    assert sum(1 for _ in corpus) == 16_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6  # of 56 MB
