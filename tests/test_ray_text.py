"""`docs/ray_text.py` prepares text with Ray Data, and its parts are a corpus."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.text.reading.corpus import read_corpus

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "ray_text.py"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
def test_text_of_several_files_is_cleaned_and_each_document_kept_once(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    first = "A document  of\tsome length.\nAnother one of some length.\nshort\n"
    (source / "a.txt").write_text(first)
    (source / "b.txt").write_text("a document of some length.\nA third one, of some length.\n")
    quiet = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    subprocess.run(
        [sys.executable, SCRIPT, source, out],
        env={**os.environ, **quiet},
        check=True,
        capture_output=True,
        timeout=300,
    )
    documents = list(read_corpus(sorted(map(str, out.glob("*.parquet")))))
    assert sorted(text.lower() for text in documents) == [
        "a document of some length.",
        "a third one, of some length.",
        "another one of some length.",
    ]
