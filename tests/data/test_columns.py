"""Columns are found by name; where names do not tell, they are guessed, and that is said."""

import pytest

from headstart.data.columns import ReadOptions, choose_columns
from headstart.errors import HeadstartError


def sample(**columns):
    """Rows from columns of values."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def choose(names, rows=(), *, pairs=False, labelled=True, **wanted):
    return choose_columns(names, rows, ReadOptions(**wanted), pairs=pairs, labelled=labelled)


@pytest.mark.parametrize("name", ["text", "Review", "SENTENCE", " content "])
def test_common_names_are_found_in_any_case(name):
    found = choose(["id", name, "label"])
    assert (found.text, found.label, found.guessed) == (name, "label", ())


def test_the_longest_texts_and_values_that_recur_are_guessed_and_said():
    rows = sample(
        what=[f"please help me with request {n}" for n in range(40)],
        team=[f"team {n % 4}" for n in range(40)],
        date=[f"2026-01-{n}" for n in range(40)],
    )
    found = choose(["what", "team", "date"], rows)
    assert (found.text, found.label) == ("what", "team")
    assert "'team' has 4 values that recur" in found.words(True)
    assert "'what' has the longest texts" in found.words(True)


def test_the_only_other_column_is_the_label():
    assert choose(["team", "message"]).label == "team"


def test_a_language_may_be_the_label_where_nothing_else_can_be():
    rows = sample(text=[f"text {n}" for n in range(10)], lang=["en", "fr"] * 5)
    assert choose(["text", "lang"], rows).label == "lang"


def test_a_label_is_not_guessed_among_several_columns_that_recur():
    rows = sample(text=["a b"] * 12, team=["x", "y"] * 6, city=["p", "q"] * 6)
    with pytest.raises(HeadstartError, match="no label column was found"):
        choose(["text", "team", "city"], rows)


@pytest.mark.parametrize("columns", [["id", "text"], ["text", "title"]])
def test_a_number_or_a_title_is_not_taken_for_the_label(columns):
    rows = sample(**{name: [f"{name} {n}" for n in range(10)] for name in columns})
    with pytest.raises(HeadstartError, match="no label column was found"):
        choose(columns, rows)


def test_a_first_row_of_data_is_not_lost_as_a_header():
    header = ["A film that I like", "good"]
    rows = [dict(zip(header, ["a film I hate", label], strict=True)) for label in ("good", "bad")]
    with pytest.raises(HeadstartError, match="looks like data"):
        choose(header, rows * 5)


def test_a_named_column_that_is_missing_is_an_error_that_lists_all():
    with pytest.raises(HeadstartError, match=r"no column 'Text'.*'text'"):
        choose(["text", "label"], text_column="Text")


def test_a_name_used_twice_is_an_error():
    with pytest.raises(HeadstartError, match="several columns"):
        choose(["text", "text", "label"])


def test_a_message_lists_only_some_of_many_columns():
    with pytest.raises(HeadstartError) as error:
        choose([f"column {n}" for n in range(100_000)])
    assert len(str(error.value)) < 1_000
