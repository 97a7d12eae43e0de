"""A base that may have read the texts it is evaluated on is noted, and only such a base."""

import pytest

from headstart.training.bases import overlap_note, unchecked_corpora
from headstart.training.recipe import make_pretrain_recipe, make_recipe
from headstart.training.recipe_file import write_recipe


def write_base(folder, **settings):
    folder.mkdir()
    write_recipe(make_pretrain_recipe(**{"corpus": ["all.txt"], **settings}), folder)
    return str(folder)


def recipe(base, **settings):
    return make_recipe(**{"dataset": ["reviews.csv"], "base": base, **settings})


def test_a_pretraining_that_was_not_told_of_the_dataset_is_noted_with_two_ways_out(tmp_path):
    note = overlap_note(recipe(write_base(tmp_path / "base")))
    assert "the base has read all.txt" in note
    assert "headstart inspect reviews.csv --corpus all.txt tells" in note
    assert "headstart pretrain --task-text reviews.csv leaves them out" in note


def test_a_pretraining_that_was_told_of_it_is_not_noted(tmp_path):
    base = write_base(tmp_path / "base", task_text="./reviews.csv")
    assert overlap_note(recipe(base)) is None


@pytest.mark.parametrize("other", [{"split_seed": 3}, {"test": "t.csv"}, {"validation": "v.csv"}])
def test_held_out_texts_of_another_split_were_not_left_out(tmp_path, other):
    base = write_base(tmp_path / "base", task_text="reviews.csv")
    assert unchecked_corpora(recipe(base, **other)) == ["all.txt"]


def test_the_corpus_of_the_base_before_counts_too(tmp_path):
    first = write_base(tmp_path / "first", corpus=["older.txt"])
    second = write_base(tmp_path / "second", base=first, task_text="reviews.csv")
    assert unchecked_corpora(recipe(second)) == ["older.txt"]


def test_a_base_that_names_itself_ends_the_search(tmp_path):
    base = write_base(tmp_path / "base", base=str(tmp_path / "base"))
    assert unchecked_corpora(recipe(base)) == ["all.txt"]


def test_a_network_from_scratch_has_read_nothing(tmp_path):
    assert unchecked_corpora(recipe("none")) == []
    assert unchecked_corpora(recipe(write_base(tmp_path / "base"), fresh=True)) == []


def test_where_task_text_cannot_read_the_dataset_only_looking_is_advised(tmp_path):
    base = write_base(tmp_path / "base")
    note = overlap_note(recipe(base, task="tagging", dataset=["my names.conll"]))
    assert "inspect 'my names.conll' --task tagging --corpus all.txt tells" in note
    assert "--task-text" not in note
