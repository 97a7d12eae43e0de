"""Three and twenty classes, names for labels, imbalance, few rows: a sensible report, or a no."""

import random

import pytest

from headstart.data.dataset import Dataset
from headstart.errors import HeadstartError
from headstart.studies.record import write_results
from headstart.studies.report.build import write_report
from headstart.studies.results import read_study
from headstart.studies.run import StudyRun
from tests.corpora import SUBJECTS, sentence
from tests.labelled import write_csv
from tests.studies.small_study import small_recipe


def classes(names, rows, share=None, seed=0):
    """Texts with a word of their class; `share` of the rows are of the first class."""
    generator = random.Random(seed)
    texts, labels = [], []
    for number in range(rows):
        label = number % len(names)
        if share is not None:
            label = 0 if number < share * rows else 1 + number % (len(names) - 1)
        words = sentence(generator.choice(list(SUBJECTS)), generator)
        texts.append(f"{number} {names[label]} {words} {generator.random()}")
        labels.append(label)
    return Dataset("classes", texts, labels, tuple(names))


def run_study(folder, data, **changes):
    recipe = small_recipe(folder, **{"arms": ["tfidf", "scratch", "pretrained"], **changes})
    write_csv(folder / "data.csv", data)
    study = StudyRun(recipe, folder / "out")
    study.run()
    write_results(study, command="headstart compare")
    return study, write_report(study.folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "rows", "share"),
    [
        (["good", "bad", "so so"], 120, None),
        ([f"class {number}" for number in range(20)], 300, None),
        (["usual", "rare"], 200, 0.95),
    ],
    ids=["three names", "twenty classes", "95 to 5"],
)
def test_a_study_ends_with_a_report(tmp_path, names, rows, share):
    study, report = run_study(tmp_path, classes(names, rows, share), seeds=2, labels=["60"])
    assert report.path.is_file()
    assert sorted(read_study(study.folder).label_names) == sorted(names)


@pytest.mark.slow
def test_thirty_rows_get_a_report_that_says_how_little_they_are(tmp_path):
    study, report = run_study(tmp_path, classes(["good", "bad"], 30), labels=None)
    assert len(study.plan.budgets) == 1
    assert any("test part has only" in warning for warning in study.data.warnings)
    assert not any("inf" in sentence for sentence in report.sentences)


def test_too_few_rows_to_split_are_refused_before_anything_is_written(tmp_path):
    recipe = small_recipe(tmp_path)
    write_csv(tmp_path / "data.csv", classes(["good", "bad"], 4))
    with pytest.raises(HeadstartError):
        StudyRun(recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()
