"""Arms are objects in a registry: the rest of the package knows none of them by name."""

import ast
import re
from pathlib import Path

import pytest

import headstart
from headstart.errors import HeadstartError
from headstart.studies.arms import arms, find_arm, headline_arm, register
from headstart.studies.arms.registry import ARMS
from headstart.studies.record import write_results
from headstart.studies.report.build import write_report
from headstart.studies.results import read_measures, read_predictions
from headstart.studies.run import StudyRun
from tests.studies.fake_study import Recipe, fake_study
from tests.studies.small_arms import Majority, registered
from tests.studies.small_study import small_recipe

SOURCE = Path(headstart.__file__).parent
KNOWING_NO_ARM = [
    *(file for file in (SOURCE / "studies").rglob("*.py") if file.parent.name != "arms"),
    *(SOURCE / "cli" / f"{name}.py" for name in ("compare", "compare_display")),
]


@pytest.mark.parametrize("file", KNOWING_NO_ARM, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_file_but_its_own_names_an_arm(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    written = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert not set(arms()) & {word for word in written if isinstance(word, str)}


def test_the_style_of_the_report_names_no_arm():
    style = (SOURCE / "studies" / "report" / "style.css").read_text(encoding="utf-8")
    assert not [name for name in arms() if f"--{name}" in style]


def test_arms_are_listed_in_the_order_in_which_they_are_trained():
    networks = ["scratch", "counted", "pretrained", "frozen"]
    built_in = [name for name in arms() if not name.startswith("hf:")]  # others' bases join them
    assert built_in == [
        "trivial", "tfidf", "linear", "nb", "cooccurrence", *networks, "stack"
    ]  # fmt: skip


@pytest.mark.parametrize("name", arms())
def test_every_arm_describes_itself(name):
    arm = find_arm(name)
    assert arm.description.endswith(".")
    assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in vars(arm.colours).values())


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


def test_two_arms_of_one_name_are_refused():
    with registered(Majority()), pytest.raises(HeadstartError, match="'majority' exists already"):
        register(Majority())


class EntryPoint:
    """As `importlib.metadata` finds one in another package."""

    name, value = "majority", "tests.studies.small_arms:MAJORITY"

    def load(self):
        return Majority()


def test_an_installed_package_brings_an_arm(monkeypatch):
    monkeypatch.setattr("headstart.registry.entry_points", lambda group: [EntryPoint()])
    monkeypatch.setattr(ARMS, "_found", None)  # what was found before is put back after
    assert find_arm("majority").label == "majority class"


@pytest.fixture(scope="module")
def own_arm_study(tmp_path_factory):
    """A study with an arm from outside the package, run to its report."""
    folder = tmp_path_factory.mktemp("study")
    with registered(Majority()):
        recipe = small_recipe(folder, arms=["majority", "tfidf", "stack"], corpus=None)
        study = StudyRun(recipe, folder / "out")
        study.run()
        write_results(study, command="headstart compare")
        yield study, write_report(study.folder)


def test_an_arm_from_outside_is_trained_stacked_and_measured(own_arm_study):
    study, _ = own_arm_study
    found = {(said.run.arm, said.run.labels) for said in read_predictions(study.folder)}
    assert {(arm, labels) for arm in study.recipe.arms for labels in study.plan.budgets} == found
    assert "majority" in {m.run.arm for m in read_measures(study.folder)}


def test_the_report_shows_an_arm_from_outside_with_its_label_and_colour(own_arm_study):
    _, report = own_arm_study
    page = report.path.read_text(encoding="utf-8")
    assert "majority class" in page
    assert "--arm-majority:#aa8800" in page
    assert "#aa8800" in (report.path.parent / "figures" / "labels.svg").read_text(encoding="utf-8")


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
