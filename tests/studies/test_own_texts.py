"""Without a corpus, the training texts of the dataset are what a study pretrains on."""

import pytest

from headstart.cli.study import plan_lines
from headstart.config import PretrainConfig
from headstart.errors import HeadstartError
from headstart.studies.data import read_data
from headstart.studies.recipe import make_study_recipe
from headstart.studies.record import write_results
from headstart.studies.results import read_study
from headstart.studies.run import StudyRun
from headstart.training.callbacks import Callback
from headstart.training.corpus import open_corpus
from tests.labelled import dataset, write_csv
from tests.studies.small_study import small_recipe

quiet = Callback().stage


def test_the_usual_arms_are_compared_without_a_corpus():
    usual = make_study_recipe(dataset=["d.csv"])
    assert usual.arms == make_study_recipe(dataset=["d.csv"], corpus=["c.txt"]).arms
    assert usual.uses_own_texts


@pytest.mark.parametrize("settings", [{"corpus": ["c.txt"]}, {"arms": ["tfidf", "scratch"]}])
def test_with_a_corpus_or_without_a_need_for_one_they_are_no_corpus(settings):
    assert not make_study_recipe(dataset=["d.csv"], **settings).uses_own_texts


def test_leaving_the_training_texts_out_leaves_nothing_to_pretrain_on():
    with pytest.raises(
        HeadstartError, match=r"leaves no text to pretrain on.*--arms tfidf,scratch"
    ):
        make_study_recipe(dataset=["d.csv"], task_text=False)


def test_the_corpus_is_every_training_text_and_no_other(tmp_path):
    data = read_data(small_recipe(tmp_path, corpus=[]), quiet)
    assert list(data.corpus) == data.splits.train.texts
    rows = len(data.splits.train)
    said = f"no corpus was given: the training texts of data.csv, {rows} of them"
    assert any(said in warning for warning in data.warnings)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    recipe = small_recipe(folder, corpus=[], arms=["pretrained"], labels=["20"], seeds=1, epochs=1)
    study = StudyRun(recipe, folder / "out")
    study.run()
    write_results(study, command="headstart compare")
    return study


def test_it_is_said_in_the_plan_and_in_the_report(study):
    shown = "\n".join(map(str, plan_lines(study)))
    assert "pretraining on the training texts (no --corpus)" in shown
    kept = read_study(study.folder)
    assert kept.corpus == "its own training texts"
    assert any("no corpus was given" in warning for warning in kept.warnings)
    assert kept.task_texts == 0


def test_the_bases_recipe_leads_to_no_text_that_is_to_be_judged(study):
    splits = study.data.splits
    texts = set(open_corpus(PretrainConfig.load(study.base_folder("causal"))))
    assert texts == set(splits.train.texts)


def test_texts_too_few_to_pretrain_on_are_refused_before_anything_is_trained(tmp_path):
    recipe = small_recipe(tmp_path, corpus=[])
    write_csv(tmp_path / "data.csv", dataset(30))
    with pytest.raises(HeadstartError, match="too little text to pretrain on") as caught:
        StudyRun(recipe, tmp_path / "out")
    assert "--corpus FILE, or choose --arms tfidf,scratch" in caught.value.fix
    assert not (tmp_path / "out").exists()
