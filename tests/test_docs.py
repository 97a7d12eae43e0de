"""The documentation site: built without warnings, current, and without requests to other hosts."""

import importlib.util
import os
import re
import subprocess
import sys

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
