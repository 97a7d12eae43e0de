"""Arms of a study: unknown names, the headline comparison, and trainings that are not repeated."""

import pytest

from headstart.errors import HeadstartError
from headstart.studies.arms import arms, find_arm, headline_arm
from headstart.studies.record import write_results
from headstart.studies.report.build import write_report
from headstart.studies.results import read_predictions
from headstart.studies.run import StudyRun
from tests.study.fake_study import Recipe, fake_study
from tests.studies.small_arms import Majority, registered
from tests.studies.small_study import small_recipe


def test_a_study_is_about_the_arm_that_has_a_control():
    headline = headline_arm()
    assert headline.compared_with in arms()
    assert headline.effect
    assert headline_arm(["tfidf"]) is None


def test_an_unknown_arm_is_an_error_that_lists_the_known_ones():
    with pytest.raises(
        HeadstartError, match="unknown arm 'wizard'; there are trivial, tfidf, linear"
    ):
        find_arm("wizard")


@pytest.fixture(scope="module")
def own_arm_study(tmp_path_factory):
    """A study with an arm that counts its trainings, run to its report."""
    folder = tmp_path_factory.mktemp("study")
    with registered(Majority()):
        recipe = small_recipe(folder, arms=["majority", "tfidf", "stack"], corpus=None)
        study = StudyRun(recipe, folder / "out")
        study.run()
        write_results(study, command="headstart compare")
        yield study, write_report(study.folder)


def test_with_all_labels_an_arm_that_the_seed_does_not_change_is_trained_once(own_arm_study):
    study, _ = own_arm_study
    everything = [run for run in Majority.trained if run.labels == study.plan.budgets[-1]]
    assert len(everything) == 1
    assert len([run for run in Majority.trained if run.labels == 20]) == len(study.plan.seeds)
    said = [
        one.probabilities.tolist()
        for one in read_predictions(study.folder)
        if one.run.arm == "tfidf" and one.run.labels == study.plan.budgets[-1]
    ]
    assert len(said) == 2
    assert said[0] == said[1]


def test_a_study_with_an_arm_that_is_no_longer_installed_still_has_its_report(tmp_path):
    study = fake_study(tmp_path, Recipe(skill={"tfidf": (0.3, 0.2), "gone": (0.3, 0.2)}))
    assert "gone" in write_report(study).path.read_text(encoding="utf-8")
