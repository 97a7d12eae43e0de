"""Files to read, written for one test."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    """Write a file; a name that ends in .gz is gzipped."""

    def write_file(name: str, content: bytes | str) -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_file


@pytest.fixture
def reviews(write: Callable[[str, bytes | str], Path]) -> Path:
    """A tidy CSV with forty different texts, half good and half bad."""
    lines = ["text,label"]
    lines += [f"review number {n} says {'yes' if n % 2 else 'no'},{n % 2}" for n in range(40)]
    return write("reviews.csv", "\n".join(lines) + "\n")
