"""`headstart inspect`, `tokenizer` and `tokenize`: what is in the data, before any training."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headstart.cli.console import plain_table, print_json, progress_bar, results
from headstart.cli.options import Debug, Json, from_config, option
from headstart.config import DatasetSettings, PretrainConfig
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.text.checking.inspection import Inspection, Overlap

BAR = 20  # characters of the bar of the most frequent label
MOST_LABELS = 50  # are printed; --json has all
EQUAL = "equal: but for case and spacing; similar: most sequences of three words are the same"


@from_config(DatasetSettings)
def inspect(
    given: dict[str, Any],
    corpus: Annotated[
        list[str] | None,
        option(help="Unlabelled text: a file, a folder or a name; can be repeated.", panel="Data"),
    ] = None,
    documents: Annotated[
        str | None,
        option(
            help="What one document of plain text is: line, blank-line or file; by default a line "
            "of a file, a whole file of a folder.",
            panel="Data",
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        option(help="Count tokens of this tokenizer; by default words.", panel="Data"),
    ] = None,
    length: Annotated[
        int, option(min=1, help="Count the tokens beyond this length. Default: 512.", panel="Data")
    ] = 512,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Look at data before training: sizes, labels, lengths, duplicates, overlap, odd characters.

    headstart inspect reviews.csv --corpus my-text.txt
    """
    config = DatasetSettings.from_dict(given)
    if not config.dataset and not corpus:
        raise HeadstartError(
            "no data was given",
            fix="give labelled data, or unlabelled text with --corpus; to try it: "
            "headstart inspect rotten-tomatoes --corpus imdb",
        )
    from headstart.text.checking.inspect import inspect_data
    from headstart.text.reading.corpus import read_corpus
    from headstart.text.tokenizers.tokenizer import load_tokenizer

    splits = unlabelled = None
    with progress_bar("reading", "rows") as show:
        if config.dataset:
            splits = read_parts(config, progress=show)
        if corpus:
            columns = {"text_column": config.text_column, "encoding": config.encoding}
            unlabelled = read_corpus(corpus, documents=documents, **columns)  # type: ignore
    if config.drop_overlap and splits and unlabelled:
        evaluated = [splits.validation, *([splits.test] if splits.test else [])]
        unlabelled = unlabelled.without(text for part in evaluated for text in part.texts)
    encoder = None if tokenizer is None else load_tokenizer(tokenizer)
    with progress_bar("inspecting", "MB", scale=1e6) as show:
        found = inspect_data(splits, unlabelled, length=length, tokenizer=encoder, progress=show)
    if json:
        print_json(asdict(found))
    else:
        print_inspection(found, results())


def read_parts(config: DatasetSettings, **more: Any) -> Any:
    """Read the parts of any task's dataset as texts with one label each."""
    from headstart.tasks import find_task
    from headstart.text.reading.dataset import Splits

    kind = find_task(config.task)
    parts = kind.read(config.dataset, **config.read_options(), **more)
    task = kind.from_rows(parts.train)
    return Splits(
        task.inspected(parts.train),
        task.inspected(parts.validation),
        None if parts.test is None else task.inspected(parts.test),
        getattr(parts, "found", ()),
        getattr(parts, "notes", ()),
    )


def print_inspection(found: "Inspection", console: Console) -> None:
    """Print what was read, sizes, labels, overlap, odd characters and warnings."""
    sections: list[tuple[str, RenderableType | None]] = [
        ("Read", Group(*map(Text, found.found))),
        ("Texts", _sizes(found)),
        ("Labels", _labels(found)),
        ("The same text in two places", _overlaps(found.overlaps)),
        ("The same text with several labels", _conflicts(found)),
        ("Odd characters", _odd_characters(found)),
        ("Warnings", _warnings(found)),
    ]
    for title, body in sections:
        if body is not None:
            console.print(Text(title, style="bold"))
            console.print(Padding(body, (0, 0, 1, 2)))


def _table(*columns: str) -> Table:
    table = plain_table(padding=(0, 3, 0, 0))
    for number, column in enumerate(columns):
        # Names are folded, not truncated: two long ones may differ at their ends only.
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _sizes(found: "Inspection") -> Table:
    parts, unit = found.parts, found.unit
    table = _table("", *(part.name for part in parts))
    table.add_row("texts", *(f"{part.documents:,}" for part in parts))
    table.add_row(unit, *(f"{part.tokens:,}" for part in parts))
    for name, label in (("5", "5 %"), ("50", "median"), ("95", "95 %"), ("max", "longest")):
        cells = (f"{part.percentiles.get(name, 0):,}" for part in parts)
        table.add_row(f"{unit} per text, {label}", *cells)
    table.add_row(
        f"longer than {found.length:,} {unit}", *(f"{part.cut_documents:,}" for part in parts)
    )
    shares = (part.cut_tokens / max(1, part.tokens) for part in parts)
    beyond = (f"{part.cut_tokens:,} ({s:.1%})" for part, s in zip(parts, shares, strict=True))
    table.add_row(f"{unit} beyond that", *beyond)
    table.add_row("duplicates", *(f"{part.duplicates:,}" for part in parts))
    table.add_row("near-duplicates", *(f"{part.near_duplicates:,}" for part in parts))
    return table


def _labels(found: "Inspection") -> Table | None:
    parts = [part for part in found.parts if part.labels]
    if not parts:
        return None
    table = _table("", *(part.name for part in parts), "")
    table.columns[-1].justify = "left"
    labels = parts[0].labels or {}
    shown = list(labels)
    if len(labels) > MOST_LABELS:
        shown = sorted(labels, key=lambda name: -labels[name])[:MOST_LABELS]
    largest = max(1, *labels.values())
    for name in shown:
        counts = [(part.labels or {})[name] for part in parts]
        cells = (
            f"{count:,} ({count / max(1, part.documents):.0%})"
            for count, part in zip(counts, parts, strict=True)
        )
        bar = "█" * max(1, round(labels[name] / largest * BAR))
        table.add_row(Text(name), *cells, Text(bar, style="cyan"))
    if len(shown) < len(labels):
        table.add_row(Text(f"… and {len(labels) - len(shown):,} more", style="dim"))
    return table


def _overlaps(overlaps: "list[Overlap]") -> Group | None:
    if not overlaps:
        return None
    with_corpus = any(overlap.inside is not None for overlap in overlaps)
    table = _table("", "equal", "similar", *(["inside"] if with_corpus else []), "of texts")
    parts: list[RenderableType] = [table]
    if any(overlap.examples for overlap in overlaps):
        parts.append(Text(EQUAL, style="dim"))
    if with_corpus:
        from headstart.text.checking.containment import WINDOW

        inside = (
            f"inside: a validation or test text of {WINDOW} words or more that a longer document "
            "contains word for word, but for case and punctuation"
        )
        parts.append(Text(inside, style="dim"))
    for overlap in overlaps:
        counts = [overlap.equal, overlap.similar, *([overlap.inside] if with_corpus else [])]
        cells = (
            Text("–" if count is None else f"{count:,}", style="yellow" if count else "")
            for count in counts
        )
        table.add_row(f"{overlap.part} texts in {overlap.other}", *cells, f"{overlap.texts:,}")
        for example in overlap.examples[:2]:
            how = "equal" if example.equal else f"{example.similarity:.0%} similar"
            how = "inside a longer document" if example.inside else how
            parts.append(Text(f"{overlap.part} in {overlap.other}, {how}:", style="dim"))
            parts.append(_quote(example.other if example.inside else example.text))
            if example.text != example.other and not example.inside:
                parts.append(_quote(example.other))
    return Group(*parts)


def _conflicts(found: "Inspection") -> Group | None:
    if not found.conflicts:
        return None
    examples = found.conflict_examples
    quotes = (_quote(f"{' / '.join(one.labels)}: {one.text}") for one in examples)
    return Group(Text(f"{found.conflicts:,} texts, such as"), *quotes)


def _odd_characters(found: "Inspection") -> Group | None:
    shown: list[RenderableType] = []
    for kind, example in found.odd_examples.items():
        parts = [part for part in found.parts if kind in part.odd_characters]
        counts = ", ".join(f"{part.name} {part.odd_characters[kind]:,}" for part in parts)
        shown += [Text(f"{kind}: {counts}"), _quote(f"…{example}…", style="dim")]
    return Group(*shown) if shown else None


def _warnings(found: "Inspection") -> RenderableType:
    if not found.warnings:
        return Text("none", style="green")
    table = Table.grid(padding=(0, 1))
    for warning in found.warnings:
        table.add_row(Text("!", style="bold yellow"), Text(warning))
    return table


def _quote(text: str, length: int = 160, style: str = "") -> RenderableType:
    """Quote a text of the data in one line, shortened."""
    flat = text.replace("\n", " ")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in flat[:length])
    end = "…" if len(flat) > length else ""
    return Padding(Text(f"“{shown}{end}”", style=style), (0, 0, 0, 2))


@from_config(
    PretrainConfig, only=("corpus", "vocab_size", "tokenizer_kind", "text_column", "encoding")
)
def tokenizer(
    given: dict[str, Any],
    out: Annotated[Path, option(help="The file to write: tokenizer.json.")],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a tokenizer on a corpus in any language; every text can be decoded unchanged.

    headstart tokenizer my-text.txt --vocab-size 8000 --out tokenizer.json
    """
    config = PretrainConfig.from_dict(given)
    if out.suffix != ".json":
        raise HeadstartError(
            f"a tokenizer is written as JSON, not as {out.name}",
            where=out,
            fix=f"--out {out.with_suffix('.json')}",
        )
    from headstart.model.presets import preset
    from headstart.text.reading.corpus import read_corpus
    from headstart.text.tokenizers.train_tokenizer import train_tokenizer

    size = config.vocab_size or preset(config.preset).base.vocab_size
    kind = config.tokenizer_kind
    documents = read_corpus(config.corpus, text_column=config.text_column, encoding=config.encoding)
    start = time.perf_counter()
    with progress_bar("training the tokenizer", "documents") as show:
        trained = train_tokenizer(documents, vocab_size=size, kind=kind, progress=show)
    trained.save(out)
    seconds = time.perf_counter() - start
    if json:
        facts = {"file": str(out), "kind": kind, "vocab_size": trained.vocab_size}
        more = {"fingerprint": trained.fingerprint, "seconds": round(seconds, 3)}
        print_json(facts | more)
        return
    line = f"{out}: {trained.vocab_size:,} tokens ({kind}) in {seconds:.1f} s"
    results().print(line, soft_wrap=True)
    if trained.vocab_size < size:
        results().print(f"The corpus has no more tokens than that: --vocab-size is {size:,}.")


def tokenize(
    file: Annotated[
        Path, typer.Argument(help="tokenizer.json, SentencePiece .model, dict.txt, or a folder.")
    ],
    texts: Annotated[list[str], typer.Argument(help="The texts to tokenize.")],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the tokens and ids of texts.

    headstart tokenize tokenizer.json "a fine film"
    """
    from headstart.text.tokenizers.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(file)
    rows: list[dict[str, Any]] = []
    for text, ids in zip(texts, tokenizer.encode(texts), strict=True):
        decoded = tokenizer.decode(ids)
        tokens = tokenizer.pieces(text)
        rows.append({"text": text, "tokens": tokens, "ids": ids, "decoded": decoded})
    if json:
        specials = {**tokenizer.specials, "unknown": tokenizer.unknown_id}
        print_json({"vocab_size": tokenizer.vocab_size, "specials": specials, "texts": rows})
        return
    console = results()
    for row in rows:
        _print_tokens(console, **row)


def _print_tokens(
    console: Console, text: str, tokens: list[str], ids: list[int], decoded: str
) -> None:
    line = Text()
    # Neighbours differ in colour and a middle dot is a space: every boundary is visible.
    for number, token in enumerate(tokens):
        shown = token.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥")
        line.append(shown, style=("black on cyan", "black on yellow")[number % 2])
        line.append("|")
    console.print(line, soft_wrap=True)
    console.print(" ".join(map(str, ids)), style="dim", soft_wrap=True)
    words = len(text.split()) or 1
    console.print(f"tokens: {len(ids):,}, per word: {len(ids) / words:.2f}", style="dim")
    if decoded != text:
        console.print(f"decoded as: {decoded}", soft_wrap=True)
