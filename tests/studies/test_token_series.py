"""Accuracy by tokens of pretraining: several amounts become one picture."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from headstart.errors import HeadstartError
from headstart.studies.report.report_data import ReportData
from headstart.studies.report.token_chart import token_figure
from headstart.studies.results import read_study, write_study
from headstart.studies.run import StudyListener
from headstart.studies.token_series import smaller_study
from tests.studies.fake_study import Recipe, fake_study

MOST = 1200 * 4096  # tokens of the made-up study
SKILL = {"scratch": (0.2, 0.2), "counted": (0.3, 0.2), "pretrained": (0.9, 0.2)}


def with_tokens(folder, tokens):
    """Let the made-up study say that its base has read so many tokens."""
    study = read_study(folder)
    curve = study.pretraining[0]
    points = [*curve.points[:-1], {**curve.points[-1], "tokens": tokens}]
    write_study(folder, replace(study, pretraining=[replace(curve, points=points)]))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = fake_study(tmp_path_factory.mktemp("study"), Recipe(skill=SKILL, test_rows=300))
    for tokens, skill in ((1_000_000, 0.5), (2_000_000, 0.7)):
        part = folder / "tokens" / str(tokens)
        part.mkdir(parents=True)
        fake_study(part, Recipe(skill={"pretrained": (skill, 0.2)}, test_rows=300))
        with_tokens(part, tokens)
    return ReportData.read(folder)


def test_the_curve_begins_with_counting_and_ends_with_the_whole_study(data):
    (series,) = data.tokens
    assert sorted({point.tokens for point in series.points}) == [0, 1_000_000, 2_000_000, MOST]
    assert [(before, after) for before, after, _ in series.gains] == [
        (0, 1_000_000),
        (1_000_000, 2_000_000),
        (2_000_000, MOST),
    ]
    assert all(gain.bounded for _, _, gain in series.gains)


def test_the_picture_names_every_budget_and_what_each_amount_added(data):
    shown = token_figure(data, data.tokens[0])
    for labels in ("100 labels", "400 labels", "1,600 labels"):
        assert labels in shown
    assert "from 0 to 1 M" in shown


def test_a_study_of_one_amount_has_no_such_curve(tmp_path):
    assert ReportData.read(fake_study(tmp_path, Recipe(budgets=(100,), test_rows=50))).tokens == []


def test_several_amounts_need_something_to_pretrain():
    study = SimpleNamespace(recipe=SimpleNamespace(arms=["tfidf"], base=""))
    with pytest.raises(HeadstartError, match="need an arm that is pretrained here"):
        smaller_study(study, 1000, StudyListener())
