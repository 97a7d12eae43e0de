"""The app in a real browser: all steps of a study, and errors."""

import csv
import json
from pathlib import Path

import pytest

from tests.corpora import write_corpus
from tests.labelled import dataset, write_csv
from tests.webapp.conftest import TINY, serving, wait_until

HOSTILE = "\"><img src=x onerror=document.title='owned'>.csv"
MARKUP = "<b id=owned>animal</b>"
# Every command: `inspect` and `compare --dry-run` print at once; a study has an epoch now and then.
COMMANDS = """
import json, pathlib, sys, time
if "inspect" in sys.argv or "--dry-run" in sys.argv:
    found = {"found": sys.argv[1:], "warnings": ["one note"], "parts": [], "overlaps": [],
             "unit": "words", "seconds": 60,
             "arms": ["scratch"], "seeds": [0], "folds": 1, "budgets": [20], "trainings": 2,
             "pretrain_tokens": 0, "jobs": 1, "cuts": []}
    print(json.dumps(found))
    sys.exit()
folder = pathlib.Path([a for a in sys.argv if a.startswith("--out=")][0][6:])
folder.mkdir(exist_ok=True)
plan = {"event": "plan", "trainings": 2, "seconds": 60, "pretrain_tokens": 0, "budgets": [20],
        "seeds": [0], "arms": ["scratch"], "objectives": [], "metric": "accuracy"}
def write(event):
    with (folder / "progress.jsonl").open("a") as file:
        file.write(json.dumps({"time": time.time(), **event}) + "\\n")
run = {"arm": "scratch", "objective": "causal", "labels": 20, "seed": 0, "fold": 0}
try:
    write(plan)
    for epoch in range(1, 4_000):
        write({"event": "epoch", **run, "epoch": epoch, "value": 0.5 + epoch / 10_000})
        time.sleep(0.1)
except KeyboardInterrupt:
    sys.exit(130)
"""
NAMELESS = """
    const named = (e) => e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim();
    const all = [...document.querySelectorAll("main input, select, textarea, button, progress, a")];
    return all.filter((one) => !named(one)).map((one) => one.outerHTML);
"""


class Page:
    """The actions of a user on the page."""

    def __init__(self, browser):
        self.browser = browser

    def all(self, css):
        return self.browser.find_elements("css selector", css)

    def see(self, css, words="", seconds=90):
        """Wait until something is shown that has these words."""

        def look():
            try:
                shown = [one for one in self.all(css) if one.is_displayed() and words in one.text]
            except Exception:  # it was replaced meanwhile
                return None
            return shown[0] if shown else None

        try:
            return wait_until(look, seconds)
        except AssertionError:
            shown = self.browser.find_element("id", "main").text[:2000]
            raise AssertionError(f"{css} with {words!r} is not there, but:\n{shown}") from None

    def click(self, css, words=""):
        from selenium.common.exceptions import StaleElementReferenceException

        def press():
            try:
                self.see(css, words).click()
            except StaleElementReferenceException:  # it was replaced meanwhile
                return False
            return True

        wait_until(press)

    def fill(self, css, words):
        box = self.see(css)
        box.clear()
        box.send_keys(words)

    def text(self, css="main"):
        return self.see(css).text

    def errors(self):
        log = self.browser.get_log("browser")
        return [one for one in log if "404" not in one["message"] and "422" not in one["message"]]

    def requests(self):
        """The address of everything that the browser has asked for."""
        entries = self.browser.get_log("performance")
        log = [json.loads(entry["message"])["message"] for entry in entries]
        asked = [one["params"] for one in log if one["method"] == "Network.requestWillBeSent"]
        return {one["request"]["url"] for one in asked}

    def width(self, pixels):
        metrics = {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": pixels < 500}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def problems(self):
        """Find problems for phones, desktops and screen readers."""
        found = self.browser.execute_script(NAMELESS)
        for pixels in (390, 1280):
            self.width(pixels)
            shown = self.browser.execute_script("return document.documentElement.scrollWidth")
            found += [f"{shown} pixels on {pixels}"] if shown > pixels else []
        return found


@pytest.fixture
def page(browser):
    made = Page(browser)
    made.width(1280)
    browser.get_log("browser")
    browser.get_log("performance")
    return made


@pytest.fixture
def files(tmp_path):
    rows = dataset(120, wrong=0.1)
    named = type(rows)("films", rows.texts, rows.labels, (MARKUP, "person"))
    return write_csv(tmp_path / HOSTILE, named), write_corpus(tmp_path / "corpus.txt", 150)


def open_file(page, path):
    page.see(".drop", "Labelled texts")
    page.all("#data")[0].send_keys(str(path))
    page.click("button", "Look at the data")


@pytest.mark.slow
def test_the_whole_way_from_a_file_to_predictions(page, files, tmp_path):
    data, corpus = files
    with serving(tmp_path / "app", extra=TINY) as served:
        browser = page.browser
        browser.get(served.address)
        page.see(".drop", "Labelled texts")
        assert "key" not in browser.current_url
        page.all("#corpus")[0].send_keys(str(corpus))
        open_file(page, data)

        # What inspect sees, with names and labels as plain text.
        page.see(".bars", MARKUP)
        assert HOSTILE in page.text("h1")
        assert page.problems() == []

        # The plan, changed.
        page.click("button", "Continue to the plan")
        page.see("#start")
        page.fill("#seeds-count", "1")
        page.fill("#labels", "20all")
        page.click("button", "Update the plan")
        assert "20all" in page.see("[role=alert]").text  # here, and not on another step
        page.fill("#labels", "20 all")
        for arm in ("cooc-lr", "cooc-init", "stack"):
            page.click(f"#arm-{arm}")
        page.click("button", "Update the plan")
        page.see("section p", "30 trainings: 3 arms × 1 seed × 5 folds")
        assert page.problems() == []
        page.click("#start")

        # Stopped while it runs, and resumed.
        page.see("section p", "of 30 trainings")
        page.click("button", "Stop")
        page.click("button", "Resume")

        # The curves grow, and the report comes by itself.
        page.see("figure svg")
        page.see(".report #verdict h1")
        page.click(".contents a", "Data")  # scrolls, and stays in this step
        assert page.see(".report #labels svg")
        assert MARKUP in page.see(".report").text
        assert page.problems() == []
        page.click("#save-report")
        saved = Path(browser.downloads) / "report.html"
        wait_until(lambda: saved.exists() and saved.stat().st_size)

        # Try it.
        page.click("button", "Try the classifier")
        assert "expect" in page.text(".expected")
        page.fill("textarea", "the old cat chases the mouse .")
        page.click("button", "Predict")
        assert page.see(".verdict strong").text in (MARKUP, "person")
        assert page.problems() == []
        page.all("#file")[0].send_keys(str(data))
        page.click("#download")
        downloaded = Path(browser.downloads) / "predictions.csv"
        wait_until(lambda: downloaded.exists() and downloaded.stat().st_size)
        with downloaded.open(newline="") as table:
            rows = list(csv.DictReader(table))
        assert len(rows) == 120
        assert {row["predicted_label"] for row in rows} <= {MARKUP, "person"}

        # Nothing ran that should not, and nothing left the machine.
        assert browser.title.endswith("· Headstart")
        assert page.all("#owned") == []
        assert page.errors() == []
        assert browser.get_cookies() == []
        # The browser's own first page is not the app's.
        own = ("data:", "chrome://", f"blob:{served.origin}", served.origin)
        assert [one for one in page.requests() if not one.startswith(own)] == []

        # Deleted, asked twice.
        browser.get(served.origin)
        page.see(".row", "finished")
        page.click(".row button", "Delete")
        page.click(".row button.danger")
        wait_until(lambda: page.all(".row") == [])
        assert served.studies.all() == []


def test_a_study_is_looked_at_planned_started_stopped_and_resumed(page, tmp_path, fake_command):
    """All steps of a study with fake commands, which are quick."""
    fake_command(COMMANDS)
    with serving(tmp_path / "app") as served:
        page.browser.get(served.origin)
        assert "the app printed" in page.see("[role=alert]").text  # without the key
        page.browser.get("about:blank")
        page.browser.get_log("browser")
        page.browser.get(served.address)
        open_file(page, write_csv(tmp_path / "films.csv", dataset(40)))
        page.click("button", "Continue to the plan")
        page.click("#start")
        page.see("figure svg")
        page.click("button", "Stop")
        page.click("button", "Resume")
        page.see("button", "Stop")
        (study,) = served.studies.all()
        assert study.job("study").is_running
        assert page.errors() == []


@pytest.mark.slow
def test_a_broken_file_is_one_message_and_columns_that_are_not_clear_are_chosen(
    page, tmp_path, fake_command
):
    fake_command(COMMANDS)
    (tmp_path / "broken.csv").write_bytes(b"")
    (tmp_path / "odd.csv").write_text("one,two,three\nfine,good,1\nbad,poor,2\n")
    with serving(tmp_path / "app") as served:
        page.browser.get(served.address)
        open_file(page, tmp_path / "broken.csv")
        error = page.see("[role=alert]").text
        assert "broken.csv" in error
        assert str(tmp_path) not in error
        open_file(page, tmp_path / "odd.csv")
        page.see(".notes")
        assert "fine" in page.text("table.preview")
        for box, name in (("#text_column", "one"), ("#label_column", "two")):
            page.click(f"{box} option[value={name}]")
        page.click("button", "Look at the data")
        page.click("summary", "How the files were read")
        page.see("details li", "--text-column=one")
        page.see("details li", "--label-column=two")
