"""Find the commands and the Python blocks of a page of the documentation.

A fenced block is `python`, `text` (the output of the block before it), the content of a file, or
commands.
"""

import re
import shlex
import sys
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
REFUSED = "# an error"
FILES = ("csv", "json", "conll")  # blocks that show what a file looks like


@dataclass
class Block:
    """A fenced block, and the `text` block behind it."""

    language: str
    line: int
    lines: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)

    @property
    def commands(self) -> list[str]:
        """One command each, continued lines joined; without blank lines and comments."""
        if self.language == "python":
            return []
        joined = "\n".join(self.lines).replace("\\\n", " ").splitlines()
        return [line for line in joined if line.strip() and not line.lstrip().startswith("#")]

    @property
    def code(self) -> str:
        return "\n".join(self.lines)


def read_blocks(page: str) -> list[Block]:
    """The fenced blocks of a page that a person would type, in order."""
    blocks: list[Block] = []
    inside: Block | None = None
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"```(\w*)\s*$", line)
        if inside is None and fence:
            inside = Block(fence[1], number)
        elif inside is not None and fence:
            if inside.language == "text":
                blocks[-1].printed = inside.lines
            elif inside.language not in FILES:
                blocks.append(inside)
            inside = None
        elif inside is not None:
            inside.lines.append(line)
    assert inside is None, f"{page}: the block of line {inside.line if inside else 0} has no end"
    return blocks


def load_script(path: str) -> ModuleType:
    """A script of the repository as a module."""
    spec = spec_from_file_location(f"script_{Path(path).stem}", ROOT / path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look it up
    spec.loader.exec_module(module)
    return module


def words_of(command: str) -> list[str]:
    """The command as a shell would cut it, without its comment."""
    return shlex.split(command, comments=True)
