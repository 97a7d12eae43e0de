"""The documentation site: built without warnings, current, and without requests to other hosts."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib

import pytest

from tests.pages import ROOT

# What a browser loads by itself; a link that a person clicks is allowed.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?P<src>(?:https?:)?//[^"'\s>]+)
    |<link[^>]*\shref=["']?(?P<href>(?:https?:)?//[^"'\s>]+)
    |url\(["']?(?P<url>(?:https?:)?//[^"')]+)
    |@import\s+["'](?P<imported>(?:https?:)?//[^"']+)""",
    flags=re.VERBOSE,
)


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_page_is_current():
    reference = load_script("reference")
    written = reference.PAGE.read_text(encoding="utf-8")
    assert written == reference.reference_page(), "run: python docs/reference.py"


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_loads_nothing_from_other_hosts(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    pages = [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".css")]
    assert len(pages) > 20
    for path in pages:
        loaded = LOADED.search(path.read_text(encoding="utf-8"))
        assert loaded is None, f"{path.name} loads {loaded and loaded[0]}"


def test_every_script_that_a_page_names_exists():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "research").glob("*.md")]
    for page in pages:
        for script in re.findall(r"\b(?:bench|docs)/\w+\.py", page.read_text(encoding="utf-8")):
            assert (ROOT / script).is_file(), f"{page.name} names {script}"


def test_citation_and_changelog_have_the_version_of_the_package():
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_gallery_is_written_with_its_reports(tmp_path):
    arguments = ["--quick", "--only", "sentences", "--folder", "studies", "--out", "docs"]
    command = [sys.executable, ROOT / "docs" / "gallery.py", *arguments]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    page = (tmp_path / "docs" / "gallery.md").read_text(encoding="utf-8")
    (report,) = re.findall(r"\]\((gallery/.*\.html)\)", page)
    assert "Take " in page
    assert (tmp_path / "docs" / report).is_file()
