"""A Ray of a test's own, which joins neither another test's nor the user's, nor they it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock


@contextmanager
def own_ray() -> Iterator[Path]:
    """Let Ray keep everything in a folder of its own, in which it also looks for what runs."""
    with (
        # Not a test's own folder: the names of sockets must be short.
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        mock.patch.dict(os.environ, RAY_TMPDIR=folder, RAY_USAGE_STATS_ENABLED="0"),
    ):
        os.environ.pop("RAY_ADDRESS", None)
        yield Path(folder) / "ray"
