"""The report in a real browser: no error, no request, and the switches work."""

import pytest

from headstart.study.report.build import build_report
from tests.study.fake_study import Recipe, fake_study

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
pytestmark = pytest.mark.slow
HOSTILE = "<script>document.title='owned'</script><img src=http://localhost:9/x onerror=alert(1)>"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    names = ("negative", "positive")
    about = {"warnings": [HOSTILE]}
    recipe = Recipe(about=about, label_names=names, objectives=("causal", "masked"))
    return build_report(fake_study(folder, recipe)).path.as_uri()


def size(browser, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500},
    )


def colour(browser):
    script = "return getComputedStyle(document.body).backgroundColor"
    return browser.execute_script(script)


@pytest.fixture
def page(browser, address):
    size(browser, 1280)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)
    return browser


def test_the_page_logs_no_error_sends_no_request_and_runs_no_hostile_text(page, address):
    assert page.get_log("browser") == []
    log = [entry["message"] for entry in page.get_log("performance")]
    (request,) = [message for message in log if "Network.requestWillBeSent" in message]
    assert address.rpartition("/")[2] in request
    assert page.title == "rotten-tomatoes: does pretraining help?"
    assert "<img src=" in page.find_element("id", "data").text


def test_the_switch_shows_single_seeds_and_hides_them_again(page):
    line = page.find_element("css selector", "#epochs-1600-causal .wide .seeds path")
    band = page.find_element("css selector", "#epochs-1600-causal .wide .band")
    switch = page.find_element("id", "seeds")
    shown = []
    for _ in range(2):
        shown.append((line.is_displayed(), band.is_displayed()))
        switch.click()
    assert shown == [(False, True), (True, False)]
    assert not line.is_displayed()


def test_the_button_and_the_system_turn_light_into_dark(page):
    colours = [colour(page)]
    page.find_element("id", "theme").click()
    colours.append(colour(page))
    page.refresh()
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    colours.append(colour(page))
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert colours[0] != colours[1] == colours[2]


def test_hovering_shows_the_values(page):
    chart = page.find_element("css selector", "#labels .wide svg")
    webdriver.ActionChains(page).move_to_element(chart).perform()
    tip = page.find_element("id", "tip").text
    assert tip.startswith("400 labels\n")
    assert "TF-IDF" in tip


@pytest.mark.parametrize("width", [320, 768])
def test_nothing_scrolls_sideways(page, width):
    size(page, width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_no_letter_of_a_picture_is_cut_off(page):
    cut = """
        const shown = [...document.querySelectorAll("figure svg")].filter(s => s.clientWidth);
        return shown.flatMap(s => {
          const box = s.getBoundingClientRect();
          return [...s.querySelectorAll("text")].filter(t => {
            const r = t.getBoundingClientRect();
            return r.left < box.left - 1 || r.right > box.right + 1;
          }).map(t => t.textContent);
        });"""
    found = []
    for width in (390, 1280):
        size(page, width)
        found += page.execute_script(cut)
    assert found == []
