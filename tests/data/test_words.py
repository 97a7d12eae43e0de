"""Positions of words, for display and for tagging."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.words import find_words, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Marie lives in Paris .", ["Marie", "lives", "in", "Paris", "."]),
        ("Marie lives in Paris.", ["Marie", "lives", "in", "Paris", "."]),
        ("“(Paris)”, he said…", ["“", "(", "Paris", ")", "”", ",", "he", "said", "…"]),
        ("don't pay 3.5 $ in Paris-Nord", ["don't", "pay", "3.5", "$", "in", "Paris-Nord"]),
        ("the U.S., e.g. here.", ["the", "U.S.", ",", "e.g.", "here", "."]),
        ("玛丽住在巴黎。", ["玛", "丽", "住", "在", "巴", "黎", "。"]),
        ("हिन्दी बोली।", ["हिन्दी", "बोली", "।"]),
        ("...", [".", ".", "."]),
        (" \n", []),
    ],
)
def test_words_are_split_as_conll_files_have_them(text, words):
    assert [text[start:end] for start, end in split_words(text)] == words


@given(st.text(max_size=40))
def test_words_cover_all_but_the_blanks_in_order(text):
    for places in (find_words, split_words):
        found = places(text)
        flat = [place for pair in found for place in pair]
        assert flat == sorted(flat)
        assert all(start < end for start, end in found)
    covered = "".join(text[start:end] for start, end in split_words(text))
    assert covered == "".join(text.split())
