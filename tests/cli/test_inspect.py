"""`headstart inspect`, as a person runs it."""

import pytest


def test_a_page_is_printed_and_nothing_in_the_data_reaches_the_terminal(headstart, tmp_path):
    """Long labels are shown whole, many are summed up, and escape sequences are escaped."""
    long = "a label that is so long that it does not fit into its column of the table at all"
    rows = [f"text number {number},{long} {number // 2}" for number in range(600)]
    (tmp_path / "d.csv").write_text("\n".join(["text,label", *rows]))
    (tmp_path / "a.txt").write_bytes(b"red \x1b[31malert [bold]markup[/]\n" * 2)
    result = headstart("inspect", tmp_path / "d.csv", "--corpus", tmp_path / "a.txt")
    assert result.returncode == 0, result.stderr
    assert "300 labels" in result.stdout
    assert "at all 1" in " ".join(result.stdout.split())
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text,label\ncaf\xe9,1\n", "--encoding cp1252"),
        (None, "headstart inspect rotten-tomatoes"),
    ],
)
def test_a_problem_is_one_message_and_code_2(headstart, write, content, message):
    result = headstart("inspect", *([] if content is None else [write("a.csv", content)]))
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_json_has_the_same_facts(headstart_json, reviews, tmp_path):
    (tmp_path / "more.txt").write_text("review number 1 says yes\nsomething new\n")
    report = headstart_json("inspect", reviews, "--corpus", tmp_path / "more.txt")
    assert [part["name"] for part in report["parts"]] == ["train", "validation", "test", "corpus"]
    assert report["parts"][3]["words"] == 7
    assert sum(overlap["counts"]["equal"] for overlap in report["overlaps"]) == 1
