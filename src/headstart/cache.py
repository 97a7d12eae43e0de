"""Where Headstart keeps what can be made again: tokenizers and token stores."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """`$HEADSTART_CACHE`, or the place where this system keeps caches."""
    if given := os.environ.get("HEADSTART_CACHE"):
        return Path(given).expanduser()
    return user_cache_path("headstart", appauthor=False)
