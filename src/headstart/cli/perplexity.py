"""`headstart perplexity`: how well a causal base predicts a text."""

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.options import Encoding, TextColumn
from headstart.cli.output import Debug, Json, print_json, results, styled


def perplexity(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run pretrained with the causal objective.")
    ],
    files: Annotated[
        list[str], typer.Argument(help="Text files, folders or built-in names, such as imdb.")
    ],
    length: Annotated[int, typer.Option(min=2, help="Tokens per window.")] = 256,
    text_column: TextColumn = None,
    encoding: Encoding = "utf-8",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure how well a base predicts texts that it has not seen."""
    from headstart.cli.progress import progress as progress_bar
    from headstart.inference.perplexity import perplexity as measure
    from headstart.run_folder import open_language_model
    from headstart.text.reading.corpus import read_corpus

    opened = open_language_model(run, causal=True, to="measure the perplexity of a text")
    corpus = read_corpus(files, text_column=text_column, encoding=encoding)
    with progress_bar("reading", "documents") as progress:
        found = measure(opened, corpus, length=length, progress=progress)
    if json:
        derived = {"perplexity": found.perplexity, "bits_per_byte": found.bits_per_byte}
        print_json({**vars(found), **derived})
        return
    results().print(
        styled(
            "perplexity [bold]{perplexity:,.1f}[/] per token, {bits:.3f} bits per byte, over "
            "{tokens:,} tokens of {documents:,} documents",
            perplexity=found.perplexity,
            bits=found.bits_per_byte,
            tokens=found.tokens,
            documents=found.documents,
        )
    )
