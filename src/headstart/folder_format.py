"""The format of run and study folders: which version wrote a folder, and can this one read it?"""

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.files import write_text

FILE = "format.json"
FORMAT = 1  # raise it when this version could no longer be read by the one before


def write_format(folder: Path) -> None:
    """Write down the format of this version's folders, and the version."""
    content = {"format": FORMAT, "headstart": installed_version()}
    write_text(folder / FILE, json.dumps(content, indent=2) + "\n")


def check_format(folder: Path) -> None:
    """Refuse a folder of a newer format. One without `format.json` is older than the file."""
    path = folder / FILE
    if not path.is_file():
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        number, writer = int(content["format"]), str(content.get("headstart", "unknown"))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HeadstartError(f"{FILE} is damaged", where=path) from None
    if number > FORMAT:
        raise HeadstartError(
            f"Headstart {writer} made this folder, in format {number}; "
            f"this is Headstart {installed_version()}, which reads formats up to {FORMAT}",
            where=folder,
            fix=f"install that version or a newer one: pip install 'headstart>={writer}'",
        )


def installed_version() -> str:
    """The version of Headstart that is running."""
    try:
        return version("headstart")
    except PackageNotFoundError:  # run from its source, without an installation
        return "unknown"
