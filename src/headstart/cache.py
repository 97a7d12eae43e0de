"""Where Headstart keeps what can be made again: tokenizers and token stores."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """`$HEADSTART_CACHE`, or the place where this system keeps caches."""
    if given := os.environ.get("HEADSTART_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "headstart"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "headstart"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "headstart"
