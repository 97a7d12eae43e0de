"""Fixtures for every test: the command line as a user runs it."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

Result = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def headstart() -> Callable[..., Result]:
    """Run `headstart ARGUMENTS…` in a process of its own, as a user would."""

    def run(*arguments: object, **options: Any) -> Result:
        command = [sys.executable, "-m", "headstart", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)

    return run


@pytest.fixture(scope="session")
def headstart_json(headstart: Callable[..., Result]) -> Callable[..., Any]:
    """Run a command with `--json`; its standard output must be one JSON document."""

    def run(*arguments: object) -> Any:
        result = headstart(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run
