"""The command line's manners, the same for every command."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import headstart.cli
from headstart.cli.app import COMMANDS, command_function
from headstart.cli.output import styled

CLI = sorted(Path(headstart.cli.__file__).parent.glob("*.py"))


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
def test_the_line_of_a_command_is_the_first_paragraph_of_its_help(command):
    function = command_function(command)
    paragraph = inspect.getdoc(function).split("\n\n")[0]
    assert COMMANDS[command] == " ".join(paragraph.split())


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


@pytest.mark.parametrize("file", CLI, ids=lambda file: file.stem)
def test_markup_stands_only_in_the_fixed_templates_of_styled(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    templates = [
        id(call.args[0])
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "styled"
    ]
    marked = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and "[/]" in str(node.value) and id(node) not in templates
    ]
    assert file.stem == "output" or marked == []
