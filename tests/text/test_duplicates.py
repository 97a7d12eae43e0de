"""Equal and nearly equal texts are found, others are not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.text.checking.duplicates import SIMILAR, SimilarTexts, text_key

LONG = " ".join(f"word{n}" for n in range(60))


def matches(indexed, text):
    index = SimilarTexts()
    for known, signature in zip(indexed, index.signatures(indexed), strict=True):
        index.add(known, signature)
    return index.find(text, index.signatures([text])[0])


@pytest.mark.parametrize(
    "other", ["Ça va ?", "ça  va ?", " ça va ?\n", "C\u0327a va ?", "ça va\u00a0?"]
)
def test_case_spacing_and_unicode_form_do_not_matter(other):
    assert text_key(other) == text_key("ça va ?")


def test_different_texts_have_different_keys():
    assert text_key("good") != text_key("good.")


def test_a_text_with_one_word_changed_is_nearly_equal():
    (match,) = matches(["something else entirely", LONG], LONG.replace("word30", "other"))
    assert match.key == 1
    assert match.similarity == pytest.approx(55 / 61)


def test_a_text_with_half_its_words_changed_is_not():
    assert matches([LONG], LONG[: len(LONG) // 2] + " and now for something different" * 5) == []


def test_short_texts_must_be_equal():
    assert matches(["very good"], "very bad") == []
    assert len(matches(["very good"], "Very  good")) == 1


def test_scripts_without_spaces_are_compared_by_characters():
    text = "この映画は本当に素晴らしいです。俳優の演技も音楽も最高でした。また見たいと思います。"
    assert len(matches([text], text.replace("最高", "最低"))) == 1


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_every_text_is_found_as_itself(text):
    assert matches([text], text)[0].similarity == 1.0
    assert SIMILAR < 1.0


def test_a_thousand_templates_stay_quick_to_search():
    texts = [f"dear customer your order {n} was shipped today with our thanks" for n in range(1000)]
    assert matches(texts, texts[0])[0].key == 0
