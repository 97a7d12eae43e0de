"""Files of every kind with the same four labelled texts."""

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as parquet

# Quotes, delimiters, a line break and other scripts: what an untidy file has.
ROWS = [
    ('A fine film; truly, "fine"', "good"),
    ("Dull\nand long, alas", "bad"),
    ("très émouvant, 本当に", "good"),
    ("No\tthank you", "bad"),
]


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def _delimited(delimiter: str) -> bytes:
    lines = [f"text{delimiter}label"]
    lines += [f"{_quoted(text)}{delimiter}{_quoted(label)}" for text, label in ROWS]
    return ("\n".join(lines) + "\n").encode()


def _records() -> list[dict[str, str]]:
    return [{"text": text, "label": label} for text, label in ROWS]


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(_records()), sink)
    return bytes(sink.getvalue().to_pybytes())


CONTENT: dict[str, Callable[[], bytes]] = {
    "a.csv": lambda: _delimited(","),
    "semicolon.csv": lambda: _delimited(";"),
    "bom.csv": lambda: b"\xef\xbb\xbf" + _delimited(","),
    "windows.csv": lambda: _delimited(",").replace(b"\n", b"\r\n"),
    "blank-lines.csv": lambda: _delimited(",").replace(b'"good"\n', b'"good"\n\n'),
    "a.tsv": lambda: _delimited("\t"),
    "a.jsonl": lambda: "\n".join(map(json.dumps, _records())).encode(),
    "a.json": lambda: json.dumps(_records()).encode(),
    "wrapped.json": lambda: json.dumps({"version": 1, "data": _records()}).encode(),
    "lines.json": lambda: "\n".join(map(json.dumps, _records())).encode(),
    "a.parquet": _parquet,
}
