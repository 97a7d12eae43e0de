"""What a study is made of: budgets, parts, and a corpus without what is to be judged."""

import pytest

from headstart.errors import HeadstartError
from headstart.studies.arms import find_arm
from headstart.studies.bases import pretrain_recipe
from headstart.studies.context import StudyContext
from headstart.studies.data import find_budgets, read_data
from headstart.studies.outcomes import RunKey
from headstart.studies.recipe import make_study_recipe
from headstart.studies.run import StudyRun
from headstart.training.callbacks import Callback
from tests.labelled import dataset, splits, write_csv
from tests.runs import small_run
from tests.studies.small_study import small_recipe

quiet = Callback().stage


def budget_rows(parts, run, tmp_path):
    """The training rows of a run."""
    recipe = make_study_recipe(arms=["tfidf"])
    return StudyContext(tmp_path, recipe, parts, epochs={}).for_run(run).splits.train


def test_every_arm_of_a_seed_is_given_the_same_rows(tmp_path):
    parts = splits(80)
    rows = [
        budget_rows(parts, RunKey(arm, objective, 20, 1), tmp_path)
        for arm, objective in (("tfidf", ""), ("scratch", "causal"), ("pretrained", "masked"))
    ]
    assert rows[0] == rows[1] == rows[2]
    assert len(rows[0]) == 20


def test_other_seeds_draw_other_rows(tmp_path):
    parts = splits(80)
    first, second = (budget_rows(parts, RunKey("tfidf", "", 20, seed), tmp_path) for seed in (0, 1))
    assert set(first.texts) != set(second.texts)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_smaller_budget_lies_within_every_larger_one(seed, tmp_path):
    parts = splits(80)
    rows = [budget_rows(parts, RunKey("tfidf", "", n, seed), tmp_path).texts for n in (8, 20, 80)]
    assert set(rows[0]) < set(rows[1]) < set(rows[2])


def test_only_the_start_of_scratch_and_pretrained_differs(tmp_path):
    study = StudyRun(small_recipe(tmp_path), tmp_path / "out")
    scratch, pretrained = (
        find_arm(arm).recipe(study.context.for_run(RunKey(arm, "causal", 20, 1)))
        for arm in ("scratch", "pretrained")
    )
    assert scratch.replace(fresh=False) == pretrained
    assert scratch.fresh


def test_corpus_texts_that_hold_rows_to_be_judged_are_dropped_and_counted(tmp_path):
    recipe = small_recipe(tmp_path)
    clean = read_data(recipe, quiet)
    judged = [
        clean.test.texts[0],
        clean.test.texts[1].upper(),
        f"They wrote: {clean.splits.validation.texts[0]} And so on.",
    ]
    with (tmp_path / "corpus.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in judged)
    found = read_data(recipe, quiet)
    # The corpus is made of the same few sentences, so some documents nearly equal a row.
    assert found.left_out == {**clean.left_out, "equal": 2, "contains": 1}
    assert found.overlap_dropped == clean.overlap_dropped + 3
    assert not set(found.corpus) & set(judged)


def test_what_a_document_is_and_how_many_are_held_out_reaches_the_base(tmp_path):
    recipe = small_recipe(tmp_path, documents="file", held_out=0.2)
    assert len([*read_data(recipe, quiet).corpus]) == 1 + len(
        read_data(recipe, quiet).corpus.task_text
    )
    base = pretrain_recipe(recipe, "causal", seed=0, steps=1, threads=1)
    assert (base.documents, base.held_out) == ("file", 0.2)


def test_the_usual_budgets_end_where_the_rows_do(tmp_path):
    recipe = small_recipe(tmp_path, labels=None)
    assert find_budgets(recipe, dataset(80)) == [80]
    assert find_budgets(recipe, dataset(300)) == [100, 300]
    assert find_budgets(recipe, dataset(500)) == [100, 400, 500]


def test_budgets_are_sorted_and_equal_ones_run_once(tmp_path):
    recipe = small_recipe(tmp_path, labels=["all", "20", "25%", "20"])
    assert find_budgets(recipe, dataset(80)) == [20, 80]


@pytest.mark.parametrize(
    ("labels", "words"), [("9999", "only"), ("many", "not a label budget"), ("1", "too small")]
)
def test_a_budget_that_cannot_be_is_refused(tmp_path, labels, words):
    with pytest.raises(HeadstartError, match=words):
        read_data(small_recipe(tmp_path, labels=[labels]), quiet)


def test_without_a_test_part_half_of_validation_becomes_one(tmp_path):
    recipe = small_recipe(tmp_path)
    path = write_csv(tmp_path / "validation.csv", dataset(40, 1))
    found = read_data(recipe.replace(validation=str(path)), quiet)
    assert (len(found.splits.validation), len(found.test)) == (20, 20)
    assert not set(found.splits.validation.texts) & set(found.test.texts)
    assert any("half of the validation part" in warning for warning in found.warnings)


def test_where_nothing_is_chosen_all_of_validation_is_reported_on(tmp_path):
    recipe = small_recipe(tmp_path, selection="none")
    path = write_csv(tmp_path / "validation.csv", dataset(40, 1))
    found = read_data(recipe.replace(validation=str(path)), quiet)
    assert len(found.test) == 40
    assert found.test.texts == found.splits.validation.texts
    told = " ".join(found.warnings)
    assert "the validation part, 40 rows, is reported on" in told
    assert "validation texts are also in test" not in told  # the one part is not an overlap of two
    assert "also selects" not in told


def test_a_base_that_read_the_test_rows_is_told_of(tmp_path):
    recipe = small_recipe(tmp_path)
    judged = read_data(recipe, quiet).test.texts
    with (tmp_path / "corpus.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in judged[:2])
    base = small_run(tmp_path, steps=2)
    study = make_study_recipe(dataset=recipe.dataset, base=str(base), arms=["pretrained"])
    assert study.objectives == ["causal"]
    held = read_data(recipe, quiet).overlap_dropped
    assert held >= 2
    warnings = read_data(study, quiet).warnings
    assert any(f"pretrained on {held} texts that equal" in warning for warning in warnings)


def test_a_base_has_the_objective_it_was_pretrained_with(tmp_path):
    base = small_run(tmp_path, objective="masked", steps=2)
    assert make_study_recipe(dataset=["x"], base=str(base)).objectives == ["masked"]
    with pytest.raises(HeadstartError, match="pretrained with masked"):
        make_study_recipe(dataset=["x"], base=str(base), objectives=["causal"])


def test_training_texts_join_the_corpus_unless_that_is_turned_off(tmp_path):
    joined = read_data(small_recipe(tmp_path), quiet)
    alone = read_data(small_recipe(tmp_path, task_text=False), quiet)
    assert list(joined.corpus.task_text) == joined.splits.train.texts
    assert not alone.corpus.task_text
    held_out = {*joined.splits.validation.texts, *joined.test.texts}
    assert not held_out & set(joined.corpus)
