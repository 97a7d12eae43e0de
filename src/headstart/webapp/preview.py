"""Look at the beginning of an upload, in a separate process: the server parses none.

python -m headstart.webapp.preview FILE --json
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from headstart.cli.console import print_json, run_guarded
from headstart.data.columns import Columns, ReadOptions, choose_columns
from headstart.data.readers import FORMATS
from headstart.data.sources import find_source, storable
from headstart.data.splits import FILE_KINDS, guess_task
from headstart.errors import HeadstartError

ROWS, COLUMNS, CHARACTERS = 5, 12, 160  # that are shown
SECONDS = 120  # that looking may take
TABLE_TASKS = ["classification", "pairs", "multi-label"]


def preview(path: Path) -> dict[str, Any]:
    """Return the columns of a file, its first rows, and what the reader guesses."""
    task, _ = guess_task([path])
    source = find_source(path, FILE_KINDS.get(task))
    table = FORMATS[source.kind](source, "utf-8")
    found = Columns()
    if task not in FILE_KINDS:
        try:
            found = choose_columns(table.names, table.sample, ReadOptions())
        except HeadstartError:  # the user has to choose
            found = Columns(table.names[0])
    rows = [[_cell(row.get(name)) for name in table.names[:COLUMNS]] for row in table.sample[:ROWS]]
    return {
        "tasks": [task] if task in FILE_KINDS else sorted(TABLE_TASKS, key=task.__ne__),
        "columns": [storable(name) for name in table.names],
        "rows": rows,
        "text_column": storable(found.text) if found.label else "",
        "label_column": storable(found.label or ""),
    }


def _cell(value: object) -> str:
    words = "" if value is None else " ".join(str(value).split())
    return words if len(words) <= CHARACTERS else words[: CHARACTERS - 1] + "…"


def look_at(path: Path) -> dict[str, Any]:
    """Return the preview of a file, or raise its error, from a separate process."""
    command = [sys.executable, "-P", "-m", __spec__.name, path.name, "--json"]
    try:
        ended = subprocess.run(command, cwd=path.parent, capture_output=True, timeout=SECONDS)
        found: dict[str, Any] = json.loads(ended.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        raise HeadstartError(
            "the file could not be opened: it took too long or too much memory",
            where=path.name,
            fix="give a smaller file; a large JSON file is better written as JSON Lines (.jsonl)",
            code="too-large",
        ) from None
    if "error" in found:
        raise HeadstartError(**found["error"])
    return found


if __name__ == "__main__":
    sys.exit(run_guarded(lambda: print_json(preview(Path(sys.argv[1])))))
