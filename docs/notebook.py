"""Write lab.ipynb from lab.md: `python docs/notebook.py`. The page is the only source.

A `python` block becomes a cell, and the `text` block behind it, what the cell prints, is dropped.
Everything else stays as it is: sentences, commands and what they printed. A test compares the
notebook with what this would write, and runs it.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "lab.md"
NOTEBOOK = ROOT / "docs" / "lab.ipynb"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^(?=## )", flags=re.MULTILINE)
INTRODUCTION = """\
*This notebook is the page [lab.md](lab.md). It runs in about a minute on two cores, without a
network. To experiment, change the names in capitals at the top of a cell and run the cell again. To
run a command that begins with `headstart`, use a terminal, or a cell with `!` before the command.*
"""


def cells(page: str) -> list[dict[str, object]]:
    """The page as cells: every `python` block one of code, what lies between them Markdown."""
    found: list[dict[str, object]] = []

    def add(kind: str, text: str) -> None:
        cell = {"cell_type": kind, "id": f"cell-{len(found)}", "metadata": {}}
        more = {"execution_count": None, "outputs": []} if kind == "code" else {}
        found.append(cell | more | {"source": text.strip("\n").splitlines(keepends=True)})

    def add_words(text: str) -> None:
        for part in SECTION.split(text):
            if part.strip():
                add("markdown", part)

    *blocks, last = BLOCK.split(page)
    words = ""
    for before, language, body in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
        words += before
        is_output = found and found[-1]["cell_type"] == "code" and words.strip() in ("", "prints")
        if language == "python":
            add_words(words)
            add("code", body)
            words = ""
        elif language == "text" and is_output:
            words = ""
        else:
            words += f"```{language}\n{body}```\n"
    add_words(words + last)
    return found


def notebook(page: str) -> str:
    """The notebook of a page, without outputs."""
    title, rest = page.split("\n", 1)
    document = {
        "cells": cells(f"{title}\n\n{INTRODUCTION}\n{rest}"),
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
