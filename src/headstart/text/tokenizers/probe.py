"""A foreign `tokenizer.json` is tried out first: it may hold expressions that never end.

Regular expressions and replacements in such a file are programs of a kind. Those that we train
have none. A file that has some is opened in a process of its own first, which tokenizes a few
short texts made of the file's own characters, within bounds of time and memory.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError

SECONDS = 20.0  # for all probes; a tokenizer in use needs a few milliseconds for them
GROWTH = 32  # characters that a normalizer may make of one
MEMORY = 4 << 30
RISKY = ("Replace", "Split", "Precompiled")  # kinds of steps whose behaviour the file decides

# Runs in the other process, which knows nothing of Headstart: quick to start, easy to end.
_PROBE = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
except (ImportError, ValueError, OSError):
    pass
import tokenizers
inner = tokenizers.Tokenizer.from_file(sys.argv[1])
characters = sorted(set(sys.stdin.buffer.read().decode("utf-8", "ignore")) | set("a 0.\\n"))[:64]
texts = [c * n + end for c in characters for n in (30, 2000) for end in ("", "!", "\\0", " x")]
texts.append("".join(characters) * 20)
for text in texts:
    if inner.normalizer is not None:
        made = inner.normalizer.normalize_str(text)
        if len(made) > int(sys.argv[3]) * (len(text) + 10):
            sys.exit(f"its normalizer makes {len(made):,} characters of {len(text):,}")
    inner.encode(text, add_special_tokens=False)
"""


def check_tokenizer_file(path: Path) -> None:
    """Refuse a `tokenizer.json` whose expressions take forever or multiply the text.

    Parameters
    ----------
    path : a file that the tokenizers library can open.
    """
    content = path.read_bytes()
    if any(f'"{kind}"'.encode() in content for kind in RISKY):
        _probe(str(path), content)


@cache
def _probe(path: str, content: bytes) -> None:
    characters = "".join(sorted(set("".join(_patterns(json.loads(content))))))
    command = [sys.executable, "-c", _PROBE, path, str(MEMORY), str(GROWTH)]
    try:
        done = subprocess.run(
            command,
            input=characters.encode("utf-8", "ignore"),
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise _refused(
            f"a text of 2,000 characters takes it more than {SECONDS:.0f} s", path
        ) from None
    except OSError:  # no second process can be started here: use it unprobed
        return
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise _refused(lines[-1] if lines else "the library gave up", path)


def _refused(why: str, path: str) -> HeadstartError:
    return HeadstartError(
        f"this tokenizer cannot be used: {why}",
        where=path,
        fix="take one from a source that you trust, or train one: headstart tokenizer CORPUS",
    )


def _patterns(value: Any) -> Iterator[str]:
    """Every expression and replacement of the file."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("Regex", "String", "content") and isinstance(inner, str):
                yield inner
            elif key != "vocab":
                yield from _patterns(inner)
    elif isinstance(value, list):
        for inner in value[:1_000]:
            yield from _patterns(inner)
