"""A corpus streams its documents, starts anew, and has a fingerprint of its content."""

import gzip
import json
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from headstart.data.corpus import read_corpus
from headstart.errors import HeadstartError


def test_a_line_of_a_text_file_is_a_document(write):
    corpus = read_corpus(write("a.txt", "one\n\ntwo words\r\n  \nthree"))
    assert list(corpus) == ["one", "two words", "three"]
    assert corpus.empty == 2


def test_every_pass_starts_anew(write):
    corpus = read_corpus(write("a.txt", "one\ntwo\n"))
    assert next(iter(corpus)) == "one"
    assert list(corpus) == list(corpus) == ["one", "two"]


def test_other_line_separators_of_unicode_do_not_cut(write):
    text = "a\u2028b\x0bc\x85d"
    assert list(read_corpus(write("a.txt", text + "\n"))) == [text]


def test_documents_may_be_separated_by_blank_lines(write):
    path = write("a.txt", "\none\nstill one\n \n\ntwo\n")
    assert list(read_corpus(path, documents="blank-line")) == ["one\nstill one", "two"]


def test_a_file_of_a_folder_is_a_document(write):
    write("f/b.txt", "second\nfile\n")
    folder = write("f/a.txt.gz", "first").parent
    corpus = read_corpus(folder)
    assert list(corpus) == ["first", "second\nfile"]
    assert corpus.found == [f"{folder}: plain text, one text per file (2 files)"]


def test_lines_of_the_files_of_a_folder_may_be_documents(write):
    write("f/b.txt", "three\n")
    folder = write("f/a.txt", "one\ntwo\n").parent
    assert list(read_corpus(folder, documents="line")) == ["one", "two", "three"]


def test_files_of_other_kinds_are_left_out_and_named(write):
    write("f/photo.jpg", b"\xff\xd8")
    folder = write("f/a.txt", "one").parent
    assert read_corpus(folder).unread_files == [str(folder / "photo.jpg")]


@pytest.mark.parametrize("gzipped", [False, True])
def test_the_text_column_of_a_table_is_read(tmp_path, gzipped):
    records = [{"id": n, "text": text} for n, text in enumerate(["one", "two", None])]
    contents = {
        "a.csv": b"id,text\n0,one\n1,two\n2,\n",
        "a.jsonl": "\n".join(map(json.dumps, records)).encode(),
        "a.json": json.dumps(records).encode(),
    }
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(records), sink)
    contents["a.parquet"] = sink.getvalue().to_pybytes()
    for name, content in contents.items():
        path = tmp_path / (name + ".gz" * gzipped)
        path.write_bytes(gzip.compress(content) if gzipped else content)
        corpus = read_corpus(path)
        assert list(corpus) == ["one", "two"], name
        assert corpus.empty == 1, name


def test_several_sources_are_one_corpus_in_the_order_given(write):
    one, two = write("1.txt", "one\n"), write("2.csv", "text,other\ntwo,x\n")
    assert list(read_corpus([two, one])) == ["two", "one"]


def test_equal_content_has_an_equal_fingerprint_wherever_it_lies(write):
    one, two = write("1.txt", "one\n"), write("deep/2.txt", "one\n")
    assert read_corpus(one).fingerprint == read_corpus(two).fingerprint


def test_the_fingerprint_changes_with_content_and_with_reading(write):
    path = write("a.txt", "one\ntwo\n")
    before = read_corpus(path)
    kinds = {before.fingerprint, read_corpus(path, documents="blank-line").fingerprint}
    kinds.add(before.without(["two"]).fingerprint)
    path.write_text("one\ntwO\n")
    kinds.add(read_corpus(path).fingerprint)
    assert len(kinds) == 4


def test_texts_held_out_can_be_left_out(write):
    corpus = read_corpus(write("a.txt", "one\nTwo\nthree\n")).without(["two"])
    assert list(corpus) == ["one", "three"]
    assert corpus.overlapping == {"equal": 1}


def test_documents_that_contain_a_held_out_text_are_left_out_in_every_pass(write):
    text = "nobody in this film can act least of all the dog"
    path = write("a.txt", f"one\nHe wrote: {text.upper()}!\n{text}\n\nthree\n")
    corpus = read_corpus(path).without([text])
    for _ in range(2):
        assert list(corpus) == ["one", "three"]
        assert (corpus.empty, corpus.overlapping) == (1, {"contains": 1, "equal": 1})
    joined = corpus.with_task_text(["four", f"again {text}"])
    assert list(joined) == ["one", "three", "four"]


def test_the_size_is_known_where_files_tell_it(write):
    assert read_corpus([write("a.txt", "one\n"), write("b.txt", "deux\n")]).size == 9
    assert read_corpus(write("a.txt.gz", "one\n")).size is None


def test_a_corpus_without_text_is_an_error(write):
    with pytest.raises(HeadstartError, match="no text"):
        read_corpus(write("a.txt", "\n \n"))


def test_a_table_without_a_clear_text_column_is_an_error(write):
    with pytest.raises(HeadstartError, match="columns are 'a', 'b'"):
        read_corpus(write("a.csv", "a,b\n1,2\n"))


def test_an_unknown_way_to_tell_documents_apart_is_an_error(write):
    with pytest.raises(HeadstartError, match="not a way"):
        read_corpus(write("a.txt", "x\n"), documents="page")


def test_a_folder_file_too_long_for_one_document_says_what_to_do(write):
    folder = write("f/a.txt", "line\n" * 4_000_000).parent
    with pytest.raises(HeadstartError, match="too much to read at once") as error:
        read_corpus(folder)
    assert "--documents line" in error.value.fix


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl"])
def test_memory_does_not_grow_with_the_file(write, name):
    text = "a line of text that is long enough " * 100
    row = {"a.txt": text, "a.csv": f"{text},1", "a.jsonl": json.dumps({"text": text})}[name]
    header = "text,label\n" if name == "a.csv" else ""

    def peak_of(rows):
        corpus = read_corpus(write(name, header + f"{row}\n" * rows))
        tracemalloc.start()
        assert sum(1 for _ in corpus) == rows
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    # How many blocks are in flight depends on who is faster, and is at most 40 MB of these 112.
    assert peak_of(32_000) < 60e6
