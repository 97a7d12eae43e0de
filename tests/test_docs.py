"""Pages that are generated are current, and the site makes no request to another host."""

import os
import re
import subprocess
import sys

import pytest

from tests.pages import ROOT, load_script

# What a browser loads by itself; a link that a person clicks is allowed.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//[^"'\s>]+
    |<link[^>]*\shref=["']?(?:https?:)?//[^"'\s>]+
    |url\(["']?(?:https?:)?//[^"')]+
    |@import\s+["'](?:https?:)?//[^"']+""",
    flags=re.VERBOSE,
)


def test_the_reference_page_is_current():
    reference = load_script("docs/reference.py")
    written = reference.PAGE.read_text(encoding="utf-8")
    assert written == reference.reference_page(), "run: python docs/reference.py"


@pytest.mark.slow
def test_the_site_loads_nothing_from_other_hosts(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    pages = [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".css")]
    loaded = [found[0] for path in pages if (found := LOADED.search(path.read_text("utf-8")))]
    assert pages
    assert loaded == []
