"""The command line as a whole: its help, its speed, and where its options come from."""

import json
import subprocess
import sys

import pytest

from headstart.cli.app import COMMANDS

HEAVY = ("torch", "sklearn", "numpy", "scipy", "pyarrow", "datasets", "transformers", "pandas")


def test_the_version_and_the_help_are_printed(headstart):
    assert headstart("--version").stdout.startswith("headstart 0.")
    result = headstart()
    assert result.returncode == 2
    assert all(command in result.stdout for command in COMMANDS)
    assert "error" not in result.stderr


@pytest.mark.parametrize(
    ("command", "hint"),
    [("fly", "--help"), ("evalute", "'evaluate'")],
)
def test_an_unknown_command_ends_with_code_2_and_a_hint(headstart, command, hint):
    result = headstart(command)
    assert result.returncode == 2
    assert command in result.stderr
    assert hint in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json_and_debug(headstart, command):
    page = headstart(command, "--help").stdout
    assert "--json" in page
    assert "--debug" in page


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["finetune", "--help"],
        ["params"],
        ["finetune", "x.csv", "--token-dropout", "35"],
        ["pretrain", "x.txt", "--layers", "four"],
        ["compare", "--labels"],
        ["finetune"],
    ],
    ids=" ".join,
)
def test_help_and_bad_options_do_not_import_the_heavy_libraries(arguments):
    code = (
        f"import sys; sys.argv = ['headstart', *{arguments}]\n"
        "from headstart.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print('HEAVY', sorted({set(HEAVY)} & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "HEAVY []" in result.stdout, result.stdout + result.stderr


def test_all_bad_values_are_in_one_message_with_a_fix(headstart):
    bad = ["--token-dropout", 35, "--layers", "four", "--long", "cut"]
    result = headstart("finetune", "x.csv", *bad, "--json")
    assert result.returncode == 2
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "config"
    assert all(option in error["what"] for option in ("--token-dropout", "--layers", "--long"))
    assert "long_token_dropout" not in error["what"]
    assert error["fix"]
