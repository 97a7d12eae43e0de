"""Run the quick tests with the lowest and with the newest versions that pyproject.toml allows.

    python -m tests.dependency_ranges            # both, about half an hour
    python -m tests.dependency_ranges lowest     # a folder .venv-lowest is made, and kept

Not part of CI. The lowest versions are those of direct dependencies; pip selects the versions of
indirect dependencies and of development tools. Both runs use the lowest version of PyTorch, because
newer builds may install packages for GPUs.
"""

import argparse
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXTRAS = ("hf", "hub", "lab", "onnx", "serve")


def lowest_versions() -> list[str]:
    """Return a constraint NAME==LOWEST for every direct dependency of users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"]]
    for extra in EXTRAS:
        named += project["optional-dependencies"][extra]
    found: dict[str, str] = {}
    for one in named:
        name, _, version = re.split(r"(>=|==)", one.split(",")[0])
        name = name.split("[")[0]
        found[name] = max(found.get(name, version), version, key=as_numbers)
    return [f"{name}=={version}" for name, version in found.items()]


def as_numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def test_with(which: str) -> int:
    """Install one end of the ranges into a separate environment and run the quick tests."""
    folder = ROOT / f".venv-{which}"
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    lowest = lowest_versions()
    wanted = lowest if which == "lowest" else [one for one in lowest if one.startswith("torch==")]
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(wanted) + "\n")
    package = f".[{','.join(('dev', *EXTRAS))}]"
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", constraints]
    subprocess.run([*install, "--editable", package], cwd=ROOT, check=True)
    return subprocess.run(
        [python, "-m", "pytest", "--numprocesses", "auto", "-m", "not slow"], cwd=ROOT
    ).returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="*", help="lowest, newest or both")
    chosen = parser.parse_args().which or ["lowest", "newest"]
    sys.exit(max([test_with(which) for which in chosen]))
