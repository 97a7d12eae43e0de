"""`headstart inspect`: look at the data before training."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headstart.cli.display import progress_bar
from headstart.cli.options import DocumentsOption, Encoding, LabelColumn, TextColumn
from headstart.cli.output import Debug, Json, print_json, results
from headstart.errors import HeadstartError
from headstart.text.checking.inspection import Inspection, Overlap

if TYPE_CHECKING:
    from headstart.text.checking.inspect import Encoder
    from headstart.text.reading.dataset import Splits


def inspect(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA…",
            help="Labelled text: CSV, TSV, JSON Lines, JSON or Parquet files (also .gz), a "
            "built-in name (rotten-tomatoes, imdb), hub:owner/name, or a folder with files called "
            "train, validation and test.",
        ),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="Unlabelled text: a file, a folder or a name. Can be repeated."),
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            help="What the labels are: classification, pairs, multi-label, tagging, spans."
        ),
    ] = "classification",
    validation: Annotated[str | None, typer.Option(help="A separate file for validation.")] = None,
    test: Annotated[str | None, typer.Option(help="A separate file for the test part.")] = None,
    text_column: TextColumn = None,
    second_column: Annotated[
        str | None, typer.Option(help="Of pairs: the second text.", show_default=False)
    ] = None,
    label_column: LabelColumn = None,
    encoding: Encoding = "utf-8",
    documents: DocumentsOption = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Count the tokens of this tokenizer. Default: count words."
        ),
    ] = None,
    length: Annotated[
        int, typer.Option(min=1, help="Count what would be cut at this many tokens.")
    ] = 512,
    seed: Annotated[int, typer.Option(help="The seed of the split, if one is made.")] = 0,
    drop_overlap: Annotated[
        bool,
        typer.Option(
            "--drop-overlap",
            help="Remove texts that validation or test also hold from train and corpus.",
        ),
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Look at data before training: sizes, labels, lengths, duplicates, overlap, odd characters."""
    from headstart.text.checking.inspect import inspect_data
    from headstart.text.reading.corpus import read_corpus

    if not data and not corpus:
        raise HeadstartError(
            "no data was given",
            fix="give labelled data, or unlabelled text with --corpus; to try it: "
            "headstart inspect rotten-tomatoes --corpus imdb",
        )
    splits = unlabelled = None
    with progress_bar("reading", "rows") as report:
        if data:
            splits = read_parts(
                task,
                data,
                text_column=text_column,
                second_column=second_column,
                label_column=label_column,
                encoding=encoding,
                validation=validation,
                test=test,
                seed=seed,
                drop_overlap=drop_overlap,
                progress=report,
            )
        if corpus:
            unlabelled = read_corpus(
                corpus,
                text_column=text_column,
                encoding=encoding,
                documents=documents,  # type: ignore[arg-type]
            )
    if drop_overlap and splits and unlabelled:
        held_out = [splits.validation, *([splits.test] if splits.test else [])]
        unlabelled = unlabelled.without(text for part in held_out for text in part.texts)
    with progress_bar("inspecting", "MB", scale=1e6) as report:
        inspection = inspect_data(
            splits,
            unlabelled,
            length=length,
            tokenizer=_load(tokenizer),
            progress=report,
        )
    if json:
        print_json(asdict(inspection))
    else:
        print_page(inspection, results())


def read_parts(task: str, data: list[str], **how: Any) -> "Splits":
    """The parts of any task's dataset, as texts with one label each."""
    from headstart.tasks import find_task
    from headstart.text.reading.dataset import Splits

    kind = find_task(task)
    parts = kind.read(data, **how)
    reader = kind.from_rows(parts.train)
    return Splits(
        reader.inspected(parts.train),
        reader.inspected(parts.validation),
        None if parts.test is None else reader.inspected(parts.test),
        getattr(parts, "found", ()),
        getattr(parts, "notes", ()),
    )


def _load(path: str | None) -> "Encoder | None":
    if path is None:
        return None
    from headstart.text.tokenizers.tokenizer import load_tokenizer

    return load_tokenizer(Path(path))


_BAR = 20
EQUAL = "equal: case and spacing aside; nearly: most sequences of three words are the same"
MOST_LABELS = 50  # of the labels; --json has all


def print_page(inspection: Inspection, console: Console) -> None:
    """Print the report: what was read, sizes, labels, overlap, odd characters and warnings."""
    _section(console, "Read", Group(*(Text(line) for line in inspection.found)))
    _section(console, "Texts", _sizes(inspection))
    if any(part.labels for part in inspection.parts):
        _section(console, "Labels", _labels(inspection))
    if inspection.overlaps:
        _section(console, "The same text in two places", _overlaps(inspection.overlaps))
    if inspection.conflicts:
        _section(console, "The same text with several labels", _conflicts(inspection))
    if inspection.odd_examples:
        _section(console, "Odd characters", _odd(inspection))
    _section(console, "Warnings", _warnings(inspection))


def _section(console: Console, title: str, body: RenderableType) -> None:
    console.print(Text(title, style="bold"))
    console.print(Padding(body, (0, 0, 1, 2)))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for number, column in enumerate(columns):
        # Names are folded, not cut: two long ones may differ at their ends only.
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _sizes(inspection: Inspection) -> Table:
    parts, unit = inspection.parts, inspection.unit
    table = _table("", *(part.name for part in parts))
    table.add_row("texts", *(f"{part.documents:,}" for part in parts))
    table.add_row(unit, *(f"{part.tokens:,}" for part in parts))
    for name, label in (("5", "5 %"), ("50", "median"), ("95", "95 %"), ("max", "longest")):
        table.add_row(
            f"{unit} per text, {label}", *(f"{part.percentiles.get(name, 0):,}" for part in parts)
        )
    longer = [f"{part.cut_documents:,}" for part in parts]
    table.add_row(f"longer than {inspection.length:,} {unit}", *longer)
    table.add_row(
        f"{unit} beyond that",
        *(
            f"{part.cut_tokens:,} ({part.cut_tokens / max(1, part.tokens):.1%})"
            if part.cut_tokens
            else "0"
            for part in parts
        ),
    )
    table.add_row("repeated", *(f"{part.duplicates:,}" for part in parts))
    table.add_row("nearly repeated", *(f"{part.near_duplicates:,}" for part in parts))
    return table


def _labels(inspection: Inspection) -> Table:
    parts = [part for part in inspection.parts if part.labels]
    table = _table("", *(part.name for part in parts), "")
    labels = parts[0].labels or {}
    largest = max(labels.values(), default=0)
    shown = sorted(labels, key=lambda name: -labels[name])[:MOST_LABELS]
    for name in labels if len(labels) <= MOST_LABELS else shown:
        cells = []
        for part in parts:
            count = (part.labels or {})[name]
            cells.append(f"{count:,} ({count / max(1, part.documents):.0%})")
        share = labels[name] / max(1, largest)
        table.add_row(Text(name), *cells, Text("█" * max(1, round(share * _BAR)), style="cyan"))
    if len(labels) > MOST_LABELS:
        table.add_row(Text(f"… and {len(labels) - MOST_LABELS:,} more", style="dim"))
    table.columns[-1].justify = "left"
    return table


def _overlaps(overlaps: list[Overlap]) -> Group:
    with_corpus = any(overlap.inside is not None for overlap in overlaps)
    table = _table("", "equal", "nearly", *(["inside"] if with_corpus else []), "of texts")
    for overlap in overlaps:
        counts = [overlap.equal, overlap.similar, *([overlap.inside] if with_corpus else [])]
        table.add_row(
            f"{overlap.part} texts in {overlap.other}",
            *(
                Text("–" if count is None else f"{count:,}", style="yellow" if count else "")
                for count in counts
            ),
            f"{overlap.texts:,}",
        )
    parts: list[RenderableType] = [table]
    if any(overlap.examples for overlap in overlaps):
        parts.append(Text(EQUAL, style="dim"))
    if with_corpus:
        from headstart.text.checking.containment import WINDOW

        inside = (
            f"inside: a validation or test text of {WINDOW} words or more that stands word for "
            "word, case and punctuation aside, in a longer document"
        )
        parts.append(Text(inside, style="dim"))
    for overlap in overlaps:
        for example in overlap.examples[:2]:
            same = "equal" if example.equal else f"{example.similarity:.0%} alike"
            same = "inside a longer document" if example.inside else same
            parts.append(Text(f"{overlap.part} in {overlap.other}, {same}:", style="dim"))
            parts.append(_quote(example.other if example.inside else example.text))
            if example.text != example.other and not example.inside:
                parts.append(_quote(example.other))
    return Group(*parts)


def _conflicts(inspection: Inspection) -> Group:
    shown: list[RenderableType] = [Text(f"{inspection.conflicts:,} texts, such as")]
    for conflict in inspection.conflict_examples:
        shown.append(_quote(f"{' / '.join(conflict.labels)}: {conflict.text}"))
    return Group(*shown)


def _odd(inspection: Inspection) -> Group:
    shown: list[RenderableType] = []
    for kind, example in inspection.odd_examples.items():
        counts = [
            f"{part.name} {part.odd_characters[kind]:,}"
            for part in inspection.parts
            if kind in part.odd_characters
        ]
        shown.append(Text(f"{kind}: {', '.join(counts)}"))
        shown.append(_quote(f"…{example}…", style="dim"))
    return Group(*shown)


def _warnings(inspection: Inspection) -> RenderableType:
    if not inspection.warnings:
        return Text("none", style="green")
    table = Table.grid(padding=(0, 1))
    for warning in inspection.warnings:
        table.add_row(Text("!", style="bold yellow"), Text(warning))
    return table


def _quote(text: str, length: int = 160, style: str = "") -> RenderableType:
    """A text from the data, shortened; control characters are shown as escapes."""
    flat = " ".join(text.split(" ")).replace("\n", " ")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in flat[:length])
    return Padding(Text(f"“{shown}{'…' if len(flat) > length else ''}”", style=style), (0, 0, 0, 2))
