"""`headstart tokenize`: show how a tokenizer splits a text."""

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.output import Debug, Json, print_json, results


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
