"""The report: complete, self-contained, and safe whatever the data holds."""

import csv
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from headstart.evaluation.metrics import wilson_interval
from headstart.study.report.build import build_report
from headstart.study.results import make_results, run_predictions, write_results
from tests.study.fake_study import ABOUT, Recipe, facts_of, fake_study

SECTIONS = (
    *("verdict", "labels", "epochs", "pretraining", "trust"),
    *("data", "network", "glossary", "rerun"),
)
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\" & 'x"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return build_report(fake_study(tmp_path_factory.mktemp("study")))


def text_of(html):
    """What a person reads."""
    html = re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub("<.*?>", " ", html)).replace("\u00a0", " ")


def f1_study(folder, *, labels=("accuracy of details", "price"), texts="the accuracy is great"):
    """A study of a task without classes whose data speaks of accuracy."""
    rows, parts, values = 60, [], []
    random = np.random.default_rng(0)
    for arm, objective in (("linear", ""), ("scratch", "causal"), ("pretrained", "causal")):
        for seed in (0, 1, 2):
            run = {"arm": arm, "objective": objective, "labels": 40, "seed": seed}
            scores = np.clip(random.normal(0.6, 0.4, rows), -0.5, 1.5)
            parts.append(run_predictions(run, range(rows), scores))
            for epoch in (1, 2):
                measured = {"split": "validation", "metric": "f1", "value": 0.5, "seconds": 1.0}
                values.append({**run, "epoch": epoch, **measured})
    about = {
        **ABOUT,
        **{"dataset": "accuracy.csv", "label_names": list(labels), "task": "multi-label"},
        "command": "headstart compare accuracy.csv --metric accuracy",
        **facts_of([40], ("linear", ""), ("scratch", "causal"), ("pretrained", "causal")),
        **{"metric": "f1", "warnings": [texts]},
    }
    named = [{"row": row, "text": texts, "gold": labels[0]} for row in range(rows)]
    write_results(folder, make_results(about, values, parts, named))
    return folder


def test_the_page_opens_with_the_recommendation_then_the_verdict_then_figures(report):
    """The recommendation came after the verdict."""
    page = report.path.read_text()
    places = [
        page.index("<h1>Take "),
        page.index(report.verdict.sentences[1].partition("(")[0]),
        page.index("<figure"),
    ]
    assert places == sorted(places)
    heading = text_of(re.search(r"<h1>.*?</h1>", page)[0])
    assert re.search(r"Take \w+: expect \d+\.\d % accuracy on new texts", heading)


def test_text_and_chart_have_the_same_sign(report):
    """The text said −2.1 points where the chart said +2.1."""
    page = text_of(report.path.read_text())
    chart = re.search(r"([+−]?[\d.]+) pretrained − TF-IDF", page)[1]
    said = [s for s in report.verdict.sentences + report.verdict.details if "Compared with TF" in s]
    first = re.search(
        r"pretrained is (?:([\d.]+) points (better|worse)|.*?\((−?[\d.]+) points)", said[0]
    )
    value = first[3] or ("" if first[2] == "better" else "−") + first[1]
    assert chart.lstrip("+") == value


def test_confusion_tables_name_their_axes(report):
    tables = re.findall(r'<table class="confusion.*?</table>', report.path.read_text(), flags=re.S)
    assert tables
    assert all("predicted" in text_of(one) and "true" in text_of(one) for one in tables)


def test_another_metric_changes_our_words_and_nothing_of_the_users(tmp_path):
    """The word "accuracy" was replaced in finished HTML, also in texts and commands."""
    page = text_of(build_report(f1_study(tmp_path)).path.read_text())
    for words in (
        *("headstart compare accuracy.csv --metric accuracy", "the accuracy is great"),
        *("Test F1 by number of labels", "% F1 on new texts", "points of test F1"),
    ):
        assert words in page
    ours = page
    for theirs in ("accuracy.csv", "--metric accuracy", "accuracy of details", "the accuracy is"):
        ours = ours.replace(theirs, "")
    assert "accuracy" not in ours.lower()


def test_intervals_of_f1_are_not_those_of_a_share(tmp_path):
    """Wilson's interval was used for F1."""
    build_report(f1_study(tmp_path))
    with (tmp_path / "tables" / "scores.csv").open() as file:
        means = list(csv.DictReader(file))
    assert len(means) == 3
    for row in means:
        wilson = wilson_interval(round(60 * float(row["value"])), 60)
        assert abs(float(row["low"]) - wilson.low) > 1e-4


def test_the_page_is_small_and_names_no_other_file_to_load(report):
    page = report.path.read_text()
    assert len(page) < 500_000
    assert not re.search(r"<(link|img|iframe|object)\b|\bsrc=|@import|url\(", page)


def test_every_figure_is_a_valid_svg_with_real_colours(report):
    figures = [*(report.path.parent / "figures").iterdir()]
    assert len(figures) >= 6
    for path in figures:
        ElementTree.parse(path)
        assert "var(--" not in path.read_text()


def test_rebuilding_gives_the_same_page(report):
    before = report.path.read_bytes()
    assert build_report(report.path.parent).path.read_bytes() == before


def test_hostile_text_stays_text(tmp_path):
    names = ("<b>bad</b>", HOSTILE)
    about = {"dataset": HOSTILE, "command": HOSTILE, "warnings": [HOSTILE], "corpus": HOSTILE}
    study = fake_study(tmp_path, Recipe(text=HOSTILE, label_names=names, about=about))
    page = build_report(study).path.read_text()
    assert HOSTILE not in page
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert "<b>bad</b>" not in page


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(seeds=1),
        Recipe(budgets=(30,), test_rows=6),
        Recipe(objectives=("causal", "masked")),
        Recipe(label_names=tuple(f"class {k}" for k in range(77)), test_rows=300),
        Recipe(skill={"tfidf": (0.3, 0.2)}),
        Recipe(skill={"scratch": (0.3, 0.2), "hf:x/y": (0.3, 0.2)}),
        Recipe(about={"pretraining": [], "parameters": {}, "warnings": [], "corpus": ""}),
    ],
    ids=[
        *("one seed", "tiny", "two objectives", "77 classes"),
        *("only tfidf", "hf arm", "nothing pretrained"),
    ],
)
def test_odd_studies_get_a_complete_report(tmp_path, recipe):
    report = build_report(fake_study(tmp_path, recipe))
    page = report.path.read_text()
    assert tuple(re.findall(r'<section id="(\w+)"', page)) == SECTIONS
    assert not re.search(r"\b(nan|inf|None)\b", text_of(page))
    assert report.verdict.sentences


def test_a_study_in_folds_speaks_of_labelled_rows_and_folds(tmp_path):
    """There is no test part, and no budget is all labels: each fold lacks its own rows."""
    about = {"folds": 5, "all_labels": 80, "splits": {"labelled": 100}}
    recipe = Recipe(budgets=(20, 80), test_rows=100, about=about)
    report = build_report(fake_study(tmp_path, recipe))
    page = text_of(report.path.read_text())
    assert "Accuracy on 100 labelled rows in 5 folds" in page
    assert "all 80 labels" not in page
    assert "measured in 5 folds" in report.recommendation.sentences[1]
