"""`headstart inspect` and `tokenizer`: what is in the data, before any training."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headstart.cli.console import (
    facts_table,
    print_json,
    print_sections,
    progress_bar,
    record_table,
    shortened,
    write,
)
from headstart.cli.options import Debug, Json, from_config, option, with_task
from headstart.config import DatasetSettings, PretrainConfig
from headstart.errors import HeadstartError

MOST_LABELS = 50  # are printed; --json has all
PERCENTILES = {"5": "5 %", "50": "median", "95": "95 %", "max": "longest"}
OVERLAP_COLUMNS = {"": "", "equal": ",", "similar": ",", "inside": ",", "contains": ","}
OVERLAP_COLUMNS["of texts"] = ","
OVERLAP_HELP = (
    "equal: but for case and spacing; similar: most sequences of three words are the same; inside: "
    "a longer text contains it word for word; contains: it contains a shorter text"
)


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
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Look at data before training: sizes, labels, lengths, duplicates, overlap.

    headstart inspect reviews.csv --corpus my-text.txt
    """
    DatasetSettings.from_dict(given)  # a bad value is reported before any file is read
    config = DatasetSettings.from_dict(with_task(given))
    if not config.dataset and not corpus:
        raise HeadstartError(
            "no data was given",
            fix="give labelled data, or unlabelled text with --corpus; to try it: "
            "headstart inspect rotten-tomatoes --corpus imdb",
        )
    from headstart.data.corpus import read_corpus
    from headstart.data.inspect import inspect_data
    from headstart.data.tokenizers import load_tokenizer
    from headstart.tasks import find_task

    splits: Any = None
    unlabelled = None
    with progress_bar("reading", "rows") as show:
        if config.dataset:
            splits = find_task(config.task).read(
                config.dataset, **config.read_options(), progress=show
            )
        if corpus:
            columns = {"text_column": config.text_column, "encoding": config.encoding}
            unlabelled = read_corpus(corpus, documents=documents, **columns)  # type: ignore
    if config.drop_overlap and splits and unlabelled:
        evaluated = [part for part in (splits.validation, splits.test) if part is not None]
        unlabelled = unlabelled.without(text for part in evaluated for text in part.groups)
    encoder = None if tokenizer is None else load_tokenizer(tokenizer)
    with progress_bar("inspecting", "MB", scale=1e6) as show:
        found = inspect_data(splits, unlabelled, tokenizer=encoder, progress=show)
    if json:
        print_json(asdict(found))
    else:
        print_sections(inspection_sections(found))


def inspection_sections(found: Any) -> dict[str, Sequence[RenderableType]]:
    """Return what an inspection found, as titles with lines and tables."""
    sizes = {part["name"]: _sizes(part, found.unit) for part in found.parts}
    labelled = [part for part in found.parts if part["labels"]]
    return {
        "Read": found.found,
        "Texts": [facts_table(sizes)],
        "Labels": [_labels(labelled)] if labelled else [],
        "The same text in two places": _overlaps(found.overlaps),
        "Warnings": [Text(f"! {one}", style="yellow") for one in found.warnings] or ["none"],
    }


def _sizes(part: Any, unit: str) -> dict[str, int | str]:
    percentiles = {
        f"{unit} per text, {words}": part["percentiles"].get(name, 0)
        for name, words in PERCENTILES.items()
    }
    return {
        "texts": part["documents"],
        unit: part["tokens"],
        **percentiles,
        "duplicates": part["duplicates"],
    }


def _labels(parts: list[Any]) -> Table:
    """Make a table of the most frequent labels of the first part, with their shares."""
    labels = parts[0]["labels"]
    frequent = sorted(labels, key=lambda name: -labels[name])[:MOST_LABELS]
    table = facts_table(
        {
            part["name"]: {
                shortened(name): f"{count:,} ({count / max(1, part['labelled']):.0%})"
                for name, count in part["labels"].items()
                if name in frequent
            }
            for part in parts
        }
    )
    if len(frequent) < len(labels):
        table.add_row(f"… and {len(labels) - len(frequent):,} more")
    return table


def _overlaps(overlaps: list[Any]) -> list[RenderableType]:
    rows: list[dict[str, Any]] = []
    examples: list[RenderableType] = []
    for one in overlaps:
        place = f"{one['part']} texts in {one['other']}"
        rows.append({**one["counts"], "": place, "of texts": one["texts"]})
        if one["examples"]:
            examples.append(Text(f"{place}, such as:", style="dim"))
        examples += [f"  “{shortened(text)}”" for text in one["examples"]]
    if not rows:
        return []
    return [record_table(rows, OVERLAP_COLUMNS), Text(OVERLAP_HELP, style="dim"), *examples]


@from_config(PretrainConfig, only=("corpus", "vocab_size", "text_column", "encoding"))
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
    from headstart.data.corpus import read_corpus, with_progress
    from headstart.data.tokenizers import train_tokenizer
    from headstart.model.presets import preset

    size = config.vocab_size or preset(config.preset).base.vocab_size
    documents = read_corpus(config.corpus, text_column=config.text_column, encoding=config.encoding)
    with progress_bar("training the tokenizer", "MB", scale=1e6) as show:
        trained = train_tokenizer(with_progress(documents, show), vocab_size=size)
    trained.save(out)
    facts = {
        "file": str(out),
        "vocab_size": trained.vocab_size,
        "fingerprint": trained.fingerprint,
    }
    if json:
        print_json(facts)
        return
    write("{file}: {vocab_size:,} tokens", **facts)
    if trained.vocab_size < size:
        write("The corpus has no more tokens than that: --vocab-size is {size:,}.", size=size)
