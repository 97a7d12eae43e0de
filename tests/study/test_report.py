"""The report: whole, self-contained, and safe whatever the data holds."""

import csv
import itertools
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from headstart.errors import HeadstartError
from headstart.studies.report import build_report
from headstart.studies.report.build import write_report
from headstart.studies.report.svg import spread, ticks
from headstart.studies.results import read_study, write_measures, write_predictions, write_study
from tests.study.fake_study import Recipe, fake_study

SECTIONS = (
    *("verdict", "epochs", "labels", "pretraining", "trust", "examples"),
    *("data", "network", "rerun"),
)
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\" & 'x"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_report(fake_study(tmp_path_factory.mktemp("study")))


def test_the_page_has_the_nine_sections_in_order(report):
    page = report.path.read_text()
    assert tuple(re.findall(r'<section id="(\w+)"', page)) == SECTIONS


def test_the_page_opens_with_the_verdict(report):
    page = report.path.read_text()
    heading = re.search(r"<h1>(.*?)</h1>", page)[1]
    assert re.sub("<.*?>", "", heading) == report.sentences[0]


def test_the_first_figure_of_the_labs_experiment_is_its_curves_by_epoch(report, tmp_path):
    folder = fake_study(tmp_path, Recipe(preset="lab", budgets=(400, 1600), test_rows=100))
    pages = [path.read_text() for path in (report.path, write_report(folder).path)]
    usual, lab = (re.findall(r'<figure id="([\w+-]+)"', page) for page in pages)
    assert lab[0] == "epochs-1600"
    assert usual[0].startswith("difference")
    assert len(lab) == len(set(lab))
    assert lab.count("epochs-400") == 1
    assert "<h1>" in pages[1].partition("<figure")[0]


def test_the_page_is_small_and_names_no_other_file_to_load(report):
    page = report.path.read_text()
    assert len(page) < 500_000
    assert not re.search(r"<(link|img|iframe|object)\b|\bsrc=|@import|url\(", page)


def test_every_figure_is_a_valid_svg_with_real_colours_and_a_png(report):
    svgs = [path for path in report.figures if path.suffix == ".svg"]
    assert len(svgs) >= 7
    for path in svgs:
        ElementTree.parse(path)
        assert "var(--" not in path.read_text()
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_every_table_has_a_header_and_lines_as_wide(report):
    for path in report.tables:
        with path.open() as file:
            head, *lines = csv.reader(file)
        assert lines, path
        assert all(len(line) == len(head) for line in lines)


def test_rebuilding_gives_the_same_page(report):
    before = report.path.read_bytes()
    assert build_report(report.path.parent).read_bytes() == before


def test_hostile_text_stays_text(tmp_path):
    names = ("<b>bad</b>", HOSTILE)
    study = fake_study(tmp_path, Recipe(text=HOSTILE, label_names=names))
    page = build_report(study).read_text()
    assert HOSTILE not in page
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert "<b>bad</b>" not in page


def test_no_cell_of_a_table_is_a_formula(tmp_path):
    study = fake_study(tmp_path, Recipe(label_names=("=cmd|'/C calc'!A0", "@x", "-y", "+z")))
    build_report(study)
    cells = {cell for path in study.glob("tables/*.csv") for cell in _cells(path)}
    assert {"'=cmd|'/C calc'!A0", "'@x", "'-y", "'+z"} <= cells
    assert not any(cell.startswith(("=", "@", "-y", "+z")) for cell in cells)


def _cells(path):
    with path.open(newline="") as file:
        return [cell for row in csv.reader(file) for cell in row]


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(seeds=1),
        Recipe(budgets=(30,), test_rows=6),
        Recipe(objectives=("causal", "masked")),
        Recipe(label_names=("a", "b", "c")),
        Recipe(label_names=tuple(f"class {k}" for k in range(20))),
        Recipe(skill={"tfidf": (0.3, 0.2)}),
        Recipe(skill={"scratch": (0.3, 0.2), "pretrained": (0.3, 0.2)}),
    ],
    ids=["one seed", "tiny", "two objectives", "3 classes", "20 classes", "only tfidf", "two arms"],
)
def test_odd_studies_get_a_whole_report(tmp_path, recipe):
    page = build_report(fake_study(tmp_path, recipe)).read_text()
    assert tuple(re.findall(r'<section id="(\w+)"', page)) == SECTIONS
    assert not re.search(
        r"\b(nan|inf|None)\b", re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    )


def test_a_study_without_a_finished_run_is_refused(tmp_path):
    fake_study(tmp_path)
    write_measures(tmp_path, [])
    write_predictions(tmp_path, [])
    with pytest.raises(HeadstartError, match="no finished run"):
        build_report(tmp_path)


def test_a_study_that_pretrained_nothing_says_so(tmp_path):
    study = read_study(fake_study(tmp_path))
    bare = {**vars(study), "pretraining": [], "parameters": {}, "warnings": [], "corpus": ""}
    write_study(tmp_path, type(study)(**bare))
    assert "pretrained nothing itself" in build_report(tmp_path).read_text()


def test_without_the_extra_the_report_is_whole_and_names_its_install_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)  # as if it were not installed
    written = write_report(fake_study(tmp_path))
    assert "pip install 'headstart[figures]'" in written.missing
    assert {path.suffix for path in written.figures} == {".svg"}


def test_labels_are_moved_apart_and_stay_inside():
    places = spread([100, 101, 102, 250], gap=16, low=0, high=250)
    ordered = sorted(places)
    assert all(b - a >= 16 for a, b in itertools.pairwise(ordered))
    assert max(places) <= 250


def test_ticks_are_round_numbers_within_the_range():
    assert ticks(0.52, 0.81) == [0.6, 0.7, 0.8]
    assert ticks(0, 5e6, 5) == [0, 1e6, 2e6, 3e6, 4e6, 5e6]
