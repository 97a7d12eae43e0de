"""Wheel and source distribution: built, installed into an empty environment, and used."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.pages import ROOT


def run(*command: object, cwd: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = list(map(str, command))
    ended = subprocess.run(words, cwd=cwd, env=clean, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.mark.slow
def test_an_installed_wheel_works_from_an_empty_environment(built, tmp_path):
    """Its dependencies are those of this environment: tests do not use the network."""
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "venv")
    folder = "Scripts" if sys.platform == "win32" else "bin"
    python = tmp_path / "venv" / folder / "python"
    command = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*command, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)
    dependencies = Path(site.strip()) / "dependencies.pth"
    dependencies.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    code = "import headstart; print(headstart.__file__)"
    assert str(tmp_path) in run(python, "-c", code, cwd=tmp_path)
    headstart = tmp_path / "venv" / folder / "headstart"
    assert run(headstart, "--version", cwd=tmp_path).startswith("headstart ")
    assert "988,402" in run(
        headstart, "params", "--preset", "lab", "--vocab-size", 100, cwd=tmp_path
    )
    run(python, "-c", "from headstart import HeadstartClassifier, load", cwd=tmp_path)
