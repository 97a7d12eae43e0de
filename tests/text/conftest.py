"""Files to read, for the tests of `text/`."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def reviews(write: Callable[[str, bytes | str], Path]) -> Path:
    """A tidy CSV with forty different texts, half good and half bad."""
    lines = ["text,label"]
    lines += [f"review number {n} says {'yes' if n % 2 else 'no'},{n % 2}" for n in range(40)]
    return write("reviews.csv", "\n".join(lines) + "\n")
