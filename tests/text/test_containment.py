"""A text that stands inside a longer document is found, word for word, and nothing else is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.text.checking.containment import WINDOW, ContainedTexts, words_of
from headstart.text.checking.held_out import HeldOutCheck, HeldOutTexts, left_out_sentence

REVIEW = "Nobody in this film can act, least of all the dog, who tries."

words = st.text("abcdefgéß", min_size=1, max_size=3)
texts = st.lists(words, min_size=WINDOW, max_size=40).map(" ".join)
documents = st.lists(words, max_size=60).map(" ".join)
# Letters that no text above has, so that such a document cannot hold one.
others = st.text("xyz .,\n", max_size=200)
gaps = st.sampled_from([" ", "\n", ' "', "… ", ", (", ".  "])


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=5), documents, documents, gaps, gaps, st.data())
def test_a_text_that_is_pasted_into_a_document_is_always_found(
    held_out, before, after, opening, closing, data
):
    number = data.draw(st.integers(0, len(held_out) - 1))
    pasted = before + opening + held_out[number].upper().lower() + closing + after
    assert number in ContainedTexts(held_out).find(["other", pasted, ""])[1]
    assert HeldOutTexts(held_out).find([pasted]) != [None]


@settings(deadline=None)
@given(st.lists(texts, max_size=5), st.lists(others, max_size=5))
def test_nothing_is_found_in_documents_of_other_words(held_out, corpus):
    assert ContainedTexts(held_out).find(corpus) == [[] for _ in corpus]
    assert HeldOutTexts(held_out).find(corpus) == [None for _ in corpus]


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=5), st.lists(documents, max_size=5))
def test_what_is_found_is_what_a_plain_search_finds(held_out, corpus):
    def contains(document, text):
        return f" {' '.join(words_of(text))} " in f" {' '.join(words_of(document))} "

    expected = [[n for n, text in enumerate(held_out) if contains(d, text)] for d in corpus]
    assert ContainedTexts(held_out).find(corpus) == expected


@pytest.mark.parametrize(
    "document",
    [
        f"As one reader put it: “{REVIEW}” I agree.",
        f"{REVIEW} {REVIEW}",
        "He said NOBODY in this film can act least of all\nthe dog who tries and left",
    ],
)
def test_case_punctuation_and_lines_do_not_hide_a_quotation(document):
    assert HeldOutTexts([REVIEW]).find([document]) == ["contains"]


def test_another_word_in_the_middle_is_another_text():
    changed = REVIEW.replace("least", "not")
    assert ContainedTexts([REVIEW]).find([f"He wrote: {changed}"]) == [[]]


def test_two_documents_do_not_hold_a_text_together():
    first, second = REVIEW.split(", least")
    assert ContainedTexts([REVIEW]).find([first, f"least {second}"]) == [[], []]


def test_short_texts_are_found_only_as_whole_documents():
    short = "one of the best films of all"
    assert len(words_of(short)) == WINDOW - 1
    held_out = HeldOutTexts([short])
    assert held_out.find([f"It is {short} the year", short.upper()]) == [None, "equal"]


def test_scripts_without_spaces_are_compared_by_character():
    text = "这部电影的演员都不会演戏"
    assert HeldOutTexts([text]).find([f"有人说{text}我也这么想", "这部电影很好看"]) == [
        "contains",
        None,
    ]


def test_texts_that_begin_alike_are_told_apart():
    start = " ".join(f"word{n}" for n in range(20))
    held_out = [f"{start} ends {n}" for n in range(50)]
    assert ContainedTexts(held_out).find([f"so: {start} ends 17 here"]) == [[17]]


def test_a_document_that_nearly_equals_a_text_holds_it():
    long = " ".join(f"word{n}" for n in range(60))
    assert HeldOutTexts([long]).find([long.replace("word30", "other")]) == ["similar"]


def test_a_second_pass_remembers_what_the_first_one_found():
    check = HeldOutCheck(HeldOutTexts([REVIEW]))
    corpus = ["a", f"x {REVIEW}", REVIEW, "b"]
    first = list(check.check(corpus))
    check.texts = None  # it is not needed any more
    assert list(check.check(corpus)) == first
    assert [how for _, how in first] == [None, "contains", "equal", None]


def test_a_pass_that_was_not_finished_is_not_remembered():
    check = HeldOutCheck(HeldOutTexts([REVIEW]))
    next(check.check([REVIEW, "b"]))
    assert [how for _, how in check.check(["b", REVIEW])] == [None, "equal"]


def test_the_sentence_says_how_many_were_left_out_and_what_was_looked_for():
    words = left_out_sentence({"equal": 1, "contains": 2})
    assert "3 documents of the corpus were left out" in words
    assert "1 equal, 2 containing it, 0 nearly equal" in words
    assert f"{WINDOW} words or more" in words
    assert left_out_sentence({}).startswith("No document of the corpus holds")
