"""`headstart tokenizer`: learn a tokenizer from a corpus and write its file."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.output import Debug, Json, print_json, results
from headstart.cli.progress import progress
from headstart.errors import HeadstartError


class Kind(StrEnum):
    """The models that can be trained."""

    bpe = "bpe"
    unigram = "unigram"


def tokenizer(
    corpus: Annotated[
        list[str], typer.Argument(help="Text files, folders or names, such as imdb.")
    ],
    out: Annotated[Path, typer.Option(help="Where to write the tokenizer (tokenizer.json).")],
    vocab_size: Annotated[int, typer.Option(help="Pieces in the vocabulary, at the most.")] = 8192,
    kind: Annotated[
        Kind, typer.Option(help="Byte-level BPE, or a byte-level unigram model.")
    ] = Kind.bpe,
    text_column: Annotated[str | None, typer.Option(help="The column that holds the text.")] = None,
    encoding: Annotated[str, typer.Option(help="The encoding of text files.")] = "utf-8",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a tokenizer on a CORPUS, in any language; every text comes back unchanged."""
    if out.suffix != ".json":
        raise HeadstartError(
            f"a tokenizer is written as JSON, not as {out.name}",
            where=out,
            fix=f"--out {out.with_suffix('.json')}",
        )
    from headstart.text.reading.corpus import read_corpus
    from headstart.text.tokenizers.train_tokenizer import train_tokenizer

    documents = read_corpus(corpus, text_column=text_column, encoding=encoding)
    start = time.perf_counter()
    with progress("learning pieces", "documents") as show:
        trained = train_tokenizer(documents, vocab_size=vocab_size, kind=kind.value, progress=show)
    trained.save(out)
    seconds = time.perf_counter() - start
    if json:
        print_json(
            {
                "file": str(out),
                "kind": kind.value,
                "vocab_size": trained.vocab_size,
                "fingerprint": trained.fingerprint,
                "seconds": round(seconds, 3),
            }
        )
        return
    console = results()
    console.print(f"{trained.vocab_size:,} pieces ({kind.value}) in {seconds:.1f} s → ", end="")
    console.print(str(out), markup=False, soft_wrap=True)
    if trained.vocab_size < vocab_size:
        console.print(f"The corpus has no more than these: {vocab_size:,} were asked for.")
