"""Equal, nearly equal and contained texts are found, and nothing else is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.data.overlap import (
    SIMILAR,
    WINDOW,
    HeldOutTexts,
    SimilarTexts,
    minhash,
    text_key,
    words_of,
)

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
    assert HeldOutTexts(held_out).find(["other", pasted, ""])[1] is not None


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=5), st.lists(documents, max_size=5))
def test_what_is_found_is_what_a_plain_search_finds(held_out, corpus):
    def contains(document, text):
        return f" {' '.join(words_of(text))} " in f" {' '.join(words_of(document))} "

    index = HeldOutTexts(held_out)
    for document, found in zip(corpus, index.matches(corpus), strict=True):
        expected = {text for text in index.texts if contains(document, text)}
        if not any(match.kind == "equal" for match in found):
            assert {index.texts[m.text] for m in found if m.kind == "contains"} == expected


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
    assert HeldOutTexts([REVIEW]).find([f"He wrote: {changed}"]) == [None]


def test_two_documents_do_not_contain_a_text_together():
    first, second = REVIEW.split(", least")
    assert HeldOutTexts([REVIEW]).find([first, f"least {second}"]) == [None, None]


def test_the_lines_of_a_long_text_are_found_as_documents():
    """A corpus with one document per line has a text of two paragraphs as two documents."""
    first = "The first paragraph of this review is about the dog and how it acts"
    second = "The second one is about everything else that happened on that evening"
    held_out = HeldOutTexts([f"{first}\n{second}"])
    other = "Something else that has nothing to do with it at all"
    assert held_out.find([first, second, other]) == ["inside", "inside", None]


def test_a_document_that_is_mostly_inside_of_texts_is_found():
    words = [f"word{n}" for n in range(80)]
    chunk = " ".join([*words[10:60], "and", "more"])
    assert HeldOutTexts([" ".join(words)]).find([chunk]) == ["inside"]


def test_pairs_that_share_one_text_do_not_overlap():
    premise = " ".join(f"word{n}" for n in range(60))
    held_out = HeldOutTexts([(premise, "a short one about a cat on a mat that is red")])
    other = (premise, "another one that says quite different things of dogs and birds at night")
    same = (premise.upper(), "a short one about a cat on a mat that is red")
    assert held_out.find([other, same]) == [None, "equal"]


def test_a_near_duplicate_behind_many_candidates_is_found():
    """Texts with much boilerplate are candidates of each other: all of them are compared."""
    boilerplate = " ".join(f"terms{n}" for n in range(60))
    texts = [f"{boilerplate} " + " ".join(f"own{n}x{m}" for m in range(35)) for n in range(300)]
    changed = texts[-1].replace("own299x20", "other")
    assert HeldOutTexts(texts).find([changed]) == ["similar"]


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
    held_out = HeldOutTexts([f"{start} ends {n}" for n in range(50)])
    (found,) = held_out.matches([f"so: {start} ends 17 here"])
    assert [match.text for match in found] == [17]


LONG = " ".join(f"word{n}" for n in range(60))


def matches(indexed, text):
    index = SimilarTexts()
    for one, signature in zip(indexed, minhash(indexed), strict=True):
        index.add(one, signature)
    return index.find(text, minhash([text])[0])


@pytest.mark.parametrize(
    "other", ["Ça va ?", "ça  va ?", " ça va ?\n", "C\u0327a va ?", "ça va\u00a0?"]
)
def test_case_spacing_and_unicode_form_do_not_matter(other):
    assert text_key(other) == text_key("ça va ?")


def test_a_text_with_one_word_changed_is_nearly_equal():
    match = matches(["something else entirely", LONG], LONG.replace("word30", "other"))
    assert match.text == 1
    assert match.similarity == pytest.approx(55 / 61)


def test_short_texts_must_be_equal():
    assert matches(["very good"], "very bad") is None
    assert (matches(["very good"], "Very  good")) is not None


def test_scripts_without_spaces_are_compared_by_characters():
    text = "この映画は本当に素晴らしいです。俳優の演技も音楽も最高でした。また見たいと思います。"
    assert (matches([text], text.replace("最高", "最低"))) is not None


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_every_text_is_found_as_itself(text):
    assert matches([text], text).similarity == 1.0
    assert SIMILAR < 1.0
