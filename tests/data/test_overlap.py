"""Equal, nearly equal and contained texts are found, and nothing else is."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headstart.data.overlap import (
    WINDOW,
    HeldOutTexts,
    text_key,
    words_of,
)

REVIEW = "Nobody in this film can act, least of all the dog, who tries."

words = st.text("abcdefgéß", min_size=1, max_size=3)
texts = st.lists(words, min_size=WINDOW, max_size=40).map(" ".join)
documents = st.lists(words, max_size=60).map(" ".join)
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
@example(held_out=["a a a a a a a a a"], corpus=["a a a a a a a a"])
def test_what_is_found_is_what_a_plain_search_finds(held_out, corpus):
    def sequences(text):
        found = words_of(text)
        return {tuple(found[start : start + WINDOW]) for start in range(len(found) - WINDOW + 1)}

    index = HeldOutTexts(held_out)
    for document, found in zip(corpus, index.matches(corpus), strict=True):
        expected = {text for text in index.texts if sequences(text) <= sequences(document)}
        if not any(match.kind == "equal" for match in found):
            assert {index.texts[m.text] for m in found if m.kind == "contains"} == expected


FIRST = "The first paragraph of this review is about the dog and how it acts"
SECOND = "The second one is about everything else that happened on that evening"
WORDS = [f"word{n}" for n in range(80)]
CHINESE = "这部电影的演员都不会演戏"
JAPANESE = "この映画は本当に素晴らしいです。俳優の演技も音楽も最高でした。また見たいと思います。"


@pytest.mark.parametrize(
    ("text", "document", "kind"),
    [
        (REVIEW, f"As one reader put it: “{REVIEW}” I agree.", "contains"),
        (REVIEW, f"{REVIEW} {REVIEW}", "contains"),
        (
            REVIEW,
            "NOBODY in this film can act least of all\nthe dog who tries, he said",
            "contains",
        ),
        (REVIEW, f"He wrote: {REVIEW.replace('least', 'not')}", None),
        (REVIEW, REVIEW.split(", least", maxsplit=1)[0], None),
        (f"{FIRST}\n{SECOND}", FIRST, "inside"),  # a corpus with one document per line
        (f"{FIRST}\n{SECOND}", SECOND, "inside"),
        (" ".join(WORDS), " ".join([*WORDS[10:60], "and", "more"]), "inside"),
        ("one of the best films of all", "It is one of the best films of all the year", None),
        ("one of the best films of all", "One of the BEST films of all", "equal"),
        ("very good", "very bad", None),
        (" ".join(WORDS[:60]), " ".join(WORDS[:60]).replace("word30", "other"), "similar"),
        (CHINESE, f"有人说{CHINESE}我也这么想", "contains"),
        (CHINESE, "这部电影很好看", None),
        (JAPANESE, JAPANESE.replace("最高", "最低"), "similar"),
    ],
)
def test_how_a_document_overlaps_with_a_text(text, document, kind):
    assert HeldOutTexts([text, "another text"]).find([document, "a last document"]) == [kind, None]


def test_pairs_that_share_one_text_do_not_overlap():
    premise = " ".join(f"word{n}" for n in range(60))
    held_out = HeldOutTexts([(premise, "a short one about a cat on a mat that is red")])
    other = (premise, "another one that says quite different things of dogs and birds at night")
    same = (premise.upper(), "a short one about a cat on a mat that is red")
    assert held_out.find([other, same]) == [None, "equal"]


def test_a_near_duplicate_behind_many_candidates_is_found():
    """Texts with much boilerplate are candidates for each other, and all of them are compared."""
    boilerplate = " ".join(f"terms{n}" for n in range(60))
    texts = [f"{boilerplate} " + " ".join(f"own{n}x{m}" for m in range(35)) for n in range(300)]
    changed = texts[-1].replace("own299x20", "other")
    assert HeldOutTexts(texts).find([changed]) == ["similar"]


@pytest.mark.parametrize(
    "other", ["Ça va ?", "ça  va ?", " ça va ?\n", "C\u0327a va ?", "ça va\u00a0?"]
)
def test_case_spacing_and_unicode_form_do_not_matter(other):
    assert text_key(other) == text_key("ça va ?")
