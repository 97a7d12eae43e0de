"""Broken files, damaged documents and wild options, built from a grammar with Hypothesis."""

import csv
import io
import json
import struct
from typing import Any

from hypothesis import strategies as st

NASTY = [
    *("", " ", "\0", "\x1b[31m", "\x1e", "\u2028", "\ufeff", "\ufdd0", "😀", "é", "[/]", "[bold]"),
    *('"', "'", '""', ",", "\t", "\r", "\n", "\r\n", "=1+1", "@x", "|", "<b>", "{}", "null", "nan"),
    *("a", "word", "two words", "0", "1e999", "-1", "٣", "\ud800", "x" * 300),
]
cells = st.lists(st.sampled_from(NASTY), max_size=4).map("".join)
labels = st.sampled_from(["a", "b", "c", "[neg]", "=x", "1", "1.0", "", "nan"])
scalars = st.sampled_from(
    [None, True, 0, -1, 1, 3, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, "", "x", "\ud800", "a" * 999]
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "label", "a", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)
# What options are given that is no sensible value of most of them.
WILD = (
    "",
    " ",
    "0",
    "-1",
    "-0",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "99999999999999999999",
    "abc",
    "😀",
)
WILD += ("0x10", "1.5", "٣", "--json", "\x1b[31m", "[/]", "..", "/dev/null", "a,b", "hub:", "none")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@st.composite
def tables(draw: st.DrawFn, delimiter: str = ",") -> bytes:
    """A table of texts and labels with invalid cells."""
    rows = draw(st.lists(st.tuples(cells, labels), max_size=8))
    header = draw(
        st.sampled_from([["text", "label"], ["label", "text"], ["text"], ["text", "text"]])
    )
    file = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
    writer.writerow(header)
    for row in rows:
        if draw(st.integers(0, 9)):
            writer.writerow(row)
        else:
            file.write(draw(cells) + draw(st.sampled_from(["\n", "\r\n", "\r", ""])))
    return _encoded(file.getvalue())


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode() + b"\n"


records = st.fixed_dictionaries({"text": cells | values, "label": labels | values}) | values
json_lines = st.lists(records.map(_line) | cells.map(_encoded), max_size=6).map(b"".join)
json_files = st.lists(records, max_size=5).map(lambda rows: _line(rows)) | values.map(_line)
texts = st.lists(cells.map(_encoded), max_size=8).map(b"\n".join)
conll = st.lists(
    st.tuples(
        cells, st.sampled_from(["\t", " ", "  ", ""]), st.sampled_from(["O", "B-X", "I-", ""])
    )
    .map("".join)
    .map(_encoded),
    max_size=10,
).map(b"\n".join)
answers = st.fixed_dictionaries({"text": cells, "answer_start": scalars}) | values
questions = st.fixed_dictionaries(
    {"context": cells | values},
    optional={
        "qas": st.lists(
            st.fixed_dictionaries({"question": cells, "answers": st.lists(answers, max_size=2)})
            | values,
            max_size=3,
        )
    },
)
squad = st.lists(questions | values, max_size=3).map(
    lambda found: _line({"data": [{"paragraphs": found}]})
)


FILES: dict[str, st.SearchStrategy[bytes]] = {
    ".csv": tables(),
    ".tsv": tables("\t"),
    ".jsonl": json_lines,
    ".json": json_files | squad,
    ".txt": texts,
    ".conll": conll,
}


@st.composite
def damaged_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes cut short, cut out, flipped, doubled or put in."""
    made = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(0, len(made) - 1)))
        how = draw(st.sampled_from(["cut", "delete", "flip", "insert", "repeat", "keep"]))
        if how == "cut":
            del made[place:]
        elif how == "delete":
            del made[place : place + draw(st.integers(1, 64))]
        elif how == "flip" and made:
            made[place] ^= 1 << draw(st.integers(0, 7))
        elif how == "insert":
            made[place:place] = draw(
                st.sampled_from([b"\0", b"\xff", b'"', b"\n", b"\xef\xbb\xbf", b"{"])
            )
        elif how == "repeat":
            made += made[place : place + 256]
    return bytes(made)


@st.composite
def damaged_json(draw: st.DrawFn, content: bytes) -> bytes:
    """A JSON document with one value replaced, removed or added, wherever it lies."""
    document = json.loads(content)
    node: Any = document
    for _ in range(draw(st.integers(0, 5))):
        children = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not children:
            break
        key = draw(st.sampled_from(children[:200]))
        if isinstance(node[key], dict | list) and draw(st.booleans()):
            node = node[key]
            continue
        if draw(st.booleans()):
            node[key] = draw(values)
        else:
            del node[key]
        return json.dumps(document).encode()
    return json.dumps(draw(values)).encode()


@st.composite
def damaged_safetensors(draw: st.DrawFn, content: bytes) -> bytes:
    """Another header, another length of it, or bytes that are not there."""
    (length,) = struct.unpack("<Q", content[:8])
    header, body = content[8 : 8 + length], content[8 + length :]
    header = draw(damaged_json(header) | st.just(header))
    size = draw(
        st.sampled_from([len(header), 0, 1, len(header) * 2, 2**40, 2**63]) | st.just(len(header))
    )
    return (
        struct.pack("<Q", size)
        + header
        + draw(st.sampled_from([body, body[: len(body) // 2], b""]))
    )
