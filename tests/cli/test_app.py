"""The command line's manners, the same for every command."""

import subprocess
import sys

import pytest

from headstart.cli.app import COMMANDS
from headstart.cli.output import styled


def test_version_is_printed(headstart):
    result = headstart("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("headstart 0.")


def test_unknown_command_ends_with_code_2_and_no_traceback(headstart):
    result = headstart("fly")
    assert result.returncode == 2
    assert "fly" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_the_help_page_names_every_command(headstart):
    page = headstart("--help").stdout
    assert all(command in page for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json_and_debug(headstart, command):
    page = headstart(command, "--help").stdout
    assert "--json" in page
    assert "--debug" in page


@pytest.mark.parametrize("arguments", ["'--help'", "'params'"])
def test_answering_does_not_import_the_heavy_libraries(arguments):
    code = (
        f"import sys; sys.argv = ['headstart', {arguments}]\n"
        "from headstart.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'datasets', 'sklearn', 'scipy', 'pandas', 'numpy', 'pyarrow'}\n"
        "print('HEAVY', sorted(heavy & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "HEAVY []" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("value", ["[neg]", "[/]", "[bold]x", ":smile:", "a\\", "{b}"])
def test_a_styled_message_takes_its_values_literally(value):
    shown = styled("[bold]{name}[/] is {share:.0%}", name=value, share=0.5)
    assert shown.plain == f"{value} is 50%"
    assert [(span.start, span.end) for span in shown.spans] == [(0, len(value))]
