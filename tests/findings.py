"""What a hostile and a new user found, what happens now, and the test that holds it.

The rows are in findings.txt. `python -m tests.findings` (or `make findings`) prints them as tables;
with `--write` they are put into docs/reliability.md. `tests/test_findings.py` checks that every
test named there exists.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "tests" / "findings.txt"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- findings: python -m tests.findings --write -->", "<!-- end of findings -->"


class Finding(NamedTuple):
    """One row: its name, what was tried, what happens now, and `file::test`."""

    row: str
    tried: str
    now: str
    test: str


def read_tables() -> dict[str, list[Finding]]:
    """The findings by the title of their table."""
    tables: dict[str, list[Finding]] = {}
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            tables[line.removeprefix("## ")] = rows = []
        elif line:
            rows.append(Finding(*line.split(" | ")))
    return tables


def printed() -> str:
    """The tables in Markdown."""
    parts = []
    for title, findings in read_tables().items():
        lines = [f"### {title}", "", "| # | tried | now | test |", "|---|---|---|---|"]
        for one in findings:
            file, _, name = one.test.partition("::")
            words = name.removeprefix("test_").replace("_", " ")
            lines.append(f"| {one.row} | {one.tried} | {one.now} | `{file}`: {words} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/reliability.md")
    if not parser.parse_args().write:
        print(printed())
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{printed()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
