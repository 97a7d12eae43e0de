"""A Ray cluster that is isolated from those of other tests and of the user."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock


@contextmanager
def own_ray() -> Iterator[Path]:
    """Make Ray store its files and look for clusters in a separate folder."""
    with (
        # Not a test's own folder: the names of sockets must be short.
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        mock.patch.dict(os.environ, RAY_TMPDIR=folder, RAY_USAGE_STATS_ENABLED="0"),
    ):
        os.environ.pop("RAY_ADDRESS", None)
        yield Path(folder) / "ray"
