"""A corpus streams its documents, starts anew, and has a fingerprint of its content."""

import tracemalloc

from headstart.data.corpus import read_corpus


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
    assert list(read_corpus(folder, documents="line")) == ["first", "second", "file"]


def test_files_of_other_kinds_are_left_out_and_named(write):
    write("f/photo.jpg", b"\xff\xd8")
    folder = write("f/a.txt", "one").parent
    assert read_corpus(folder).unread_files == [str(folder / "photo.jpg")]


def test_several_sources_are_one_corpus_in_the_order_given(write):
    one, two = write("1.txt", "one\n"), write("2.csv", "text,other\ntwo,x\n")
    assert list(read_corpus([two, one])) == ["two", "one"]


def test_the_fingerprint_changes_with_content_and_with_reading(write):
    path = write("a.txt", "one\ntwo\n")
    before = read_corpus(path)
    kinds = {before.fingerprint, read_corpus(path, documents="blank-line").fingerprint}
    kinds.add(before.without(["two"]).fingerprint)
    assert read_corpus(write("deep/b.txt", "one\ntwo\n")).fingerprint == before.fingerprint
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


def test_memory_does_not_grow_with_the_file(write):
    text = "a line of text that is long enough " * 100
    corpus = read_corpus(write("a.csv", "text,label\n" + f"{text},1\n" * 16_000))
    tracemalloc.start()
    assert sum(1 for _ in corpus) == 16_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6  # of 56 MB
