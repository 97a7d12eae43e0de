"""Write the tree of the source into architecture.md: `python docs/tree.py`.

One line for each folder with the first sentence of its docstring, and the names of its files
below; a test compares the page with what this would write.
"""

import ast
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "headstart"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- tree: python docs/tree.py -->\n```\n", "```\n<!-- end of tree -->"
WIDTH = 110


def tree(folder: Path = SOURCE, depth: int = 0) -> str:
    """The lines of a folder and of everything in it."""
    indent = "  " * depth
    lines = [f"{indent}{folder.name}/".ljust(24) + sentence(folder / "__init__.py")]
    names = [f.stem for f in sorted(folder.glob("*.py")) if f.stem not in ("__init__", "__main__")]
    lines += textwrap.wrap(
        " · ".join(names), WIDTH, initial_indent=indent + "    ", subsequent_indent=indent + "    "
    )
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        lines.append(tree(inner, depth + 1))
    return "\n".join(lines)


def sentence(file: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n")[0]


def page_with_tree(page: str) -> str:
    """The page with its tree brought up to date."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + tree() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with_tree(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
