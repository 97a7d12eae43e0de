"""Columns are found by name, or because no other one is left; never by their contents."""

import pytest

from headstart.errors import HeadstartError
from headstart.text.reading.rows import find_label_column, find_text_column


@pytest.mark.parametrize("name", ["text", "Review", "SENTENCE", " content "])
def test_common_names_are_found_in_any_case(name):
    assert find_text_column(["id", name, "label"], None, "a.csv") == name


@pytest.mark.parametrize("name", ["label", "labels", "Sentiment", "class"])
def test_common_label_names_are_found_in_any_case(name):
    assert find_label_column(["id", "text", name], None, "a.csv") == name


def test_two_possible_columns_are_an_error_that_lists_all():
    with pytest.raises(HeadstartError) as error:
        find_text_column(["id", "text", "review"], None, "a.csv")
    assert "several columns could be the text: 'text', 'review'" in error.value.what
    assert "'id', 'text', 'review'" in error.value.what
    assert "--text-column" in error.value.fix


def test_no_possible_column_is_an_error_that_lists_all():
    with pytest.raises(HeadstartError) as error:
        find_label_column(["id", "text"], None, "a.csv")
    assert "no label column was found; the columns are 'id', 'text'" in error.value.what
    assert "--label-column" in error.value.fix


def test_a_named_column_that_is_missing_is_an_error_that_lists_all():
    with pytest.raises(HeadstartError, match=r"no column 'Text'.*'text'"):
        find_text_column(["text", "label"], "Text", "a.csv")


def test_a_name_used_twice_is_an_error():
    with pytest.raises(HeadstartError, match="several columns"):
        find_text_column(["text", "text", "label"], "text", "a.csv")


def test_the_only_column_is_the_text():
    assert find_text_column(["whatever"], None, "a.csv") == "whatever"


def test_the_only_column_beside_the_text_is_the_label():
    assert find_label_column(["team", "message"], None, "a.csv", texts=["message"]) == "team"


@pytest.mark.parametrize("columns", [["id", "text"], ["text", "title"], ["text", "team", "city"]])
def test_a_number_a_title_or_one_of_two_columns_is_not_taken_for_the_label(columns):
    with pytest.raises(HeadstartError, match="no label column was found"):
        find_label_column(columns, None, "a.csv", texts=["text"])
