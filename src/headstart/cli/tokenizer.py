"""`headstart tokenizer` and `tokenize`: train a tokenizer, and see how it splits a text."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.display import progress_bar
from headstart.cli.options import Encoding, TextColumn
from headstart.cli.output import Debug, Json, print_json, results
from headstart.errors import HeadstartError


class KindChoice(StrEnum):
    """The models that can be trained."""

    bpe = "bpe"
    unigram = "unigram"


def tokenizer(
    corpus: Annotated[
        list[str], typer.Argument(help="Text files, folders or built-in names, such as imdb.")
    ],
    out: Annotated[Path, typer.Option(help="Where to write the tokenizer (tokenizer.json).")],
    vocab_size: Annotated[int, typer.Option(help="The largest size of the vocabulary.")] = 32_768,
    kind: Annotated[
        KindChoice, typer.Option(help="Byte-level BPE, or a byte-level unigram model.")
    ] = KindChoice.bpe,
    text_column: TextColumn = None,
    encoding: Encoding = "utf-8",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a tokenizer on a CORPUS, in any language; every text can be decoded unchanged."""
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
    with progress_bar("training the tokenizer", "documents") as show:
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
    console.print(
        f"{trained.vocab_size:,} tokens ({kind.value}) in {seconds:.1f} s → {out}", soft_wrap=True
    )
    if trained.vocab_size < vocab_size:
        console.print(f"The corpus has no more of them: --vocab-size is {vocab_size:,}.")


def tokenize(
    file: Annotated[
        Path, typer.Argument(help="tokenizer.json, SentencePiece .model, dict.txt, or a folder.")
    ],
    texts: Annotated[list[str], typer.Argument(help="The texts to tokenize.")],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the tokens and ids of TEXTS."""
    from headstart.text.tokenizers.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(file)
    all_ids = tokenizer.encode(texts)
    if json:
        rows = [
            {
                "text": text,
                "pieces": tokenizer.pieces(text),
                "ids": ids,
                "decoded": tokenizer.decode(ids),
            }
            for text, ids in zip(texts, all_ids, strict=True)
        ]
        specials = {**tokenizer.specials, "unknown": tokenizer.unknown_id}
        print_json({"vocab_size": tokenizer.vocab_size, "specials": specials, "texts": rows})
        return
    from rich.text import Text

    console = results()
    for text, ids in zip(texts, all_ids, strict=True):
        line = Text()
        # Neighbours differ in colour and a middle dot is a space: every boundary is visible.
        for number, piece in enumerate(tokenizer.pieces(text)):
            line.append(_visible(piece), style=("black on cyan", "black on yellow")[number % 2])
            line.append("|")
        console.print(line, soft_wrap=True)
        console.print(" ".join(map(str, ids)), style="dim", soft_wrap=True)
        words = len(text.split()) or 1
        console.print(f"tokens: {len(ids):,}, per word: {len(ids) / words:.2f}", style="dim")
        decoded = tokenizer.decode(ids)
        if decoded != text:
            console.print("decoded as: ", end="")
            console.print(decoded, soft_wrap=True)


def _visible(piece: str) -> str:
    return piece.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥")
