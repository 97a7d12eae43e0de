"""`headstart inspect`: look at the data before training."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.options import Encoding, LabelColumn, TextColumn
from headstart.cli.output import Debug, Json, print_json, results
from headstart.cli.progress import progress
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.text.checking.inspect import Encoder


def inspect(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA…",
            help="Labelled text: CSV, TSV, JSON Lines, JSON or Parquet files (also .gz), a "
            "built-in name (rotten-tomatoes, imdb), hub:owner/name, or the lab's folder.",
        ),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="Unlabelled text: a file, a folder or a name. Can be repeated."),
    ] = None,
    validation: Annotated[str | None, typer.Option(help="A separate file for validation.")] = None,
    test: Annotated[str | None, typer.Option(help="A separate file for the test part.")] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    encoding: Encoding = "utf-8",
    documents: Annotated[
        str | None,
        typer.Option(
            help="What one document of a plain text corpus is: line, blank-line or file. "
            "Default: a line of a file, a whole file of a folder."
        ),
    ] = None,
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
    from headstart.cli.inspect_page import print_page
    from headstart.text.checking.inspect import inspect_data
    from headstart.text.reading.corpus import read_corpus
    from headstart.text.reading.read import read_dataset

    if not data and not corpus:
        raise HeadstartError(
            "no data was given",
            fix="give labelled data, or unlabelled text with --corpus; to try it: "
            "headstart inspect rotten-tomatoes --corpus imdb",
        )
    splits = unlabelled = None
    with progress("reading", "rows") as report:
        if data:
            splits = read_dataset(
                data,
                text_column=text_column,
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
    with progress("inspecting", "MB", scale=1e6) as report:
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


def _load(path: str | None) -> "Encoder | None":
    if path is None:
        return None
    from headstart.text.tokenizers.tokenizer import load_tokenizer

    return load_tokenizer(Path(path))
