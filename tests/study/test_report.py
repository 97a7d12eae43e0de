"""The report is complete, self-contained, and safe for any data."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from headstart.study.report.build import build_report
from tests.study.fake_study import Recipe, fake_study

SECTIONS = (
    *("verdict", "labels", "epochs", "pretraining", "trust"),
    *("data", "network", "glossary", "rerun"),
)
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\" & 'x"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return build_report(fake_study(tmp_path_factory.mktemp("study")))


def text_of(html):
    """Return the visible text of the report."""
    html = re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub("<.*?>", " ", html)).replace("\u00a0", " ")


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
