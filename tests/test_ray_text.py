"""`docs/ray_text.py` prepares text with Ray Data, and its parts are a corpus."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.text.reading.corpus import read_corpus
from tests.own_ray import own_ray

SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "ray_text.py"
OTHER = "127.0.0.1:1"  # a cluster of somebody else, that is not for this


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
def test_text_of_several_files_is_cleaned_and_each_document_kept_once(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    first = "A document  of\tsome length.\nAnother one of some length.\nshort\n"
    (source / "a.txt").write_text(first)
    (source / "b.txt").write_text("a document of some length.\nA third one, of some length.\n")
    with own_ray() as folder:
        folder.mkdir()
        (folder / "ray_current_cluster").write_text(OTHER)
        result = subprocess.run(
            [sys.executable, SCRIPT, source, out, "--parts", "4"],
            env={**os.environ, "RAY_AUTH_MODE": "disabled"},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert result.returncode == 0, result.stdout + result.stderr
    documents = list(read_corpus(sorted(map(str, out.glob("*.parquet")))))
    assert sorted(text.lower() for text in documents) == [
        "a document of some length.",
        "a third one, of some length.",
        "another one of some length.",
    ]
