"""Columns are found by name; where names do not tell, they are guessed, and that is said."""

import pytest

from headstart.data.columns import ReadOptions, choose_columns
from headstart.errors import HeadstartError

TEXTS = [f"please help me with request {n}" for n in range(40)]
DATES = [f"2026-01-{n}" for n in range(40)]
TEAMS, CITIES, LANGUAGES = ["a", "b"] * 20, ["p", "q"] * 20, ["en", "fr"] * 20


def choose(columns, *, pairs=False, **wanted):
    names = [name for name, _ in columns]
    rows = zip(*(values for _, values in columns), strict=True)
    sample = [dict(zip(names, row, strict=True)) for row in rows]
    return choose_columns(names, sample, ReadOptions(**wanted), pairs=pairs)


@pytest.mark.parametrize(
    ("columns", "text", "label", "guessed"),
    [
        ([("id", DATES), (" Content ", TEXTS), ("label", TEAMS)], " Content ", "label", 0),
        ([("team", TEAMS), ("message", TEXTS)], "message", "team", 0),
        ([("what", TEXTS), ("team", TEAMS), ("date", DATES)], "what", "team", 2),
        ([("text", TEXTS), ("lang", LANGUAGES), ("id", DATES)], "text", "lang", 1),
    ],
)
def test_columns_are_found_by_name_or_by_values(columns, text, label, guessed):
    found = choose(columns)
    assert (found.text, found.label, len(found.guessed)) == (text, label, guessed)
    assert ("has 2 values that recur" in found.words(True)) == bool(guessed)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ([("text", TEXTS), ("team", TEAMS), ("city", CITIES)], {}, "no label column was found"),
        ([("id", DATES), ("text", TEXTS)], {}, "no label column was found"),
        ([("text", TEXTS), ("title", DATES)], {}, "no label column was found"),
        ([("A film that I like", TEXTS), ("a", TEAMS)], {}, "looks like data"),
        ([("text", TEXTS), ("label", TEAMS)], {"text_column": "T"}, "no column 'T'.*'text'"),
        ([("text", TEXTS), ("text", TEXTS), ("label", TEAMS)], {}, "several columns"),
        ([(f"column {n}", TEAMS) for n in range(10_000)], {}, "no text column was found"),
    ],
)
def test_unclear_columns_are_an_error_that_lists_some_of_them(columns, options, message):
    with pytest.raises(HeadstartError, match=message) as error:
        choose(columns, **options)
    assert len(str(error.value)) < 1_000


def test_two_columns_that_are_left_are_a_pair():
    found = choose([("left", TEXTS), ("right", TEXTS), ("label", TEAMS)], pairs=True)
    assert (found.text, found.second) == ("left", "right")
