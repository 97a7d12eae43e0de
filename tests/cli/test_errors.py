"""Every error is one message and one exit code, in any terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from headstart.cli.console import Display, messages, run_guarded
from headstart.errors import HeadstartError

FULL = Path("/dev/full")


def guarded(error):
    def command():
        raise error

    return run_guarded(command)


@pytest.fixture
def bare_arguments(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["headstart", "inspect"])
    return tmp_path / "cache"


def test_a_problem_from_outside_ends_with_code_2_and_its_place(capsys, bare_arguments):
    assert guarded(OSError(28, "No space left on device", "runs/a")) == 2
    told = capsys.readouterr()
    assert "the disk is full" in told.err
    assert "runs/a" in told.err
    assert "Traceback" not in told.err


def test_a_problem_in_the_cache_names_the_variable_that_moves_it(capsys, bare_arguments):
    place = bare_arguments / "stores" / "a"
    guarded(OSError(28, "No space left on device", str(place)))
    assert "HEADSTART_CACHE" in capsys.readouterr().err
    guarded(HeadstartError("no rows", where=place, fix="check the spelling", code="invalid"))
    assert "HEADSTART_CACHE" not in capsys.readouterr().err


def test_a_bug_ends_with_code_1_and_its_traceback(capsys, bare_arguments):
    assert guarded(KeyError("boom")) == 1
    told = capsys.readouterr().err
    assert "bug in Headstart: KeyError: 'boom'" in told
    assert "report" in told
    assert "Traceback" in told


@pytest.mark.parametrize("error", [KeyError("boom"), HeadstartError("no rows", where="a.csv")])
def test_with_json_an_error_is_one_document_too(capsys, monkeypatch, bare_arguments, error):
    monkeypatch.setattr(sys, "argv", ["headstart", "inspect", "--json"])
    assert guarded(error) in (1, 2)
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["error"]
    assert list(document["error"]) == ["what", "where", "fix", "code"]
    monkeypatch.setattr(sys, "argv", ["headstart", "predict", "RUN", "--", "--json"])
    guarded(error)
    assert capsys.readouterr().out == ""  # after -- it is a text
    assert guarded(KeyboardInterrupt()) == 130


@pytest.mark.parametrize(
    ("surroundings", "json_wanted"),
    [({"LC_ALL": "C", "PYTHONUTF8": "0"}, False), ({"PYTHONIOENCODING": "ascii"}, True)],
    ids=["C locale", "ascii"],
)
def test_any_encoding_of_the_terminal_will_do(headstart, write, surroundings, json_wanted):
    write("d.csv", "text,label\n" + "".join(f"größe → {n},λ{n % 2}\n" for n in range(20)))
    folder = write("x", "").parent
    arguments = ["inspect", "d.csv", *(["--json"] if json_wanted else [])]
    result = headstart(*arguments, cwd=folder, env={**os.environ, **surroundings})
    assert result.returncode == 0, result.stderr
    if json_wanted:
        assert "λ0" in str(json.loads(result.stdout))


@pytest.mark.skipif(not FULL.exists(), reason="needs Linux's /dev/full")
def test_standard_output_on_a_full_disk_is_one_message(headstart):
    command = [sys.executable, "-m", "headstart", "params", "--json"]
    with FULL.open("w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2
    assert "the disk is full" in result.stderr
    assert "Traceback" not in result.stderr


def test_control_characters_are_shown_and_not_sent(capsys):
    table = Table("a")
    table.add_row("cell\x1b[2J\x07")
    console = messages()
    console.print("text\x1b]0;title\x07\ta\nb")
    console.print(Text("styled\x9b31m"))
    console.print(table)
    told = capsys.readouterr().err
    assert not set("\x1b\x07\x9b") & set(told)
    assert r"text\x1b]0;title\x07" in told
    assert r"styled\x9b31m" in told
    assert r"cell\x1b[2J\x07" in told


def test_without_a_terminal_each_stage_is_a_line(capsys):
    with Display() as display:
        for name in ("reading", "pretraining"):
            display.stage(name)(10, 200)
    assert capsys.readouterr().err == "reading …\npretraining …\n"
