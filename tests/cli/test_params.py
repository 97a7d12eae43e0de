"""`headstart params`."""

import json

import pytest


def test_json_has_the_labs_numbers(headstart_json):
    counted = headstart_json("params", "--preset", "lab", "--vocab-size", 100, "--classes", 2)
    assert counted["base"] == 988_000
    assert counted["heads"] == {"language_modeling": 20_100, "classification": 402}
    assert counted["total"] == {"language_modeling": 1_008_100, "classification": 988_402}
    by_name = {(part["of"], part["name"]): part for part in counted["parts"]}
    assert by_name["base", "attention"]["formula"] == "n·(4·d² + 4·d)"
    assert by_name["base", "attention"]["count"] == 643_200
    assert counted["layer"] == {"attention": 160_800, "feed-forward": 80_400, "norms": 800}


def test_the_page_shows_totals_formulas_and_common_mistakes(headstart):
    page = headstart("params", "--preset", "lab", "--explain").stdout
    for expected in ("21,018,401", "10,968,602", "n·(2·d·f + f + d)", "the two totals swapped"):
        assert expected in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "lab", "--heads", "3"], "width 200 is not divisible by 3 heads"),
        (["--width", "-64"], "--width is -64; it must be at least 1"),
        (["--classes", "1"], "classes is 1; it must be at least 2"),
        (["--preset", "huge"], "choose small, lab, bert, gpt2"),
        (["--objective", "guess"], "choose causal, masked"),
        (["--layers", "four"], "--layers"),
    ],
)
def test_bad_input_is_one_message_and_code_2(headstart, arguments, message):
    result = headstart("params", *arguments, "--json")
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert list(json.loads(result.stdout)) == ["error"]


def test_debug_shows_the_traceback(headstart):
    result = headstart("params", "--preset", "huge", "--debug")
    assert result.returncode == 2
    assert "Traceback" in result.stderr
