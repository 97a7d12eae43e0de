"""`headstart generate`, `fill` and `perplexity`: what a base can do as a language model."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from headstart.cli.options import Encoding, TextColumn
from headstart.cli.output import Debug, Json, print_json, results, styled, visible


def generate(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run pretrained with the causal objective.")
    ],
    prompt: Annotated[str, typer.Argument(help="The text to continue.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="The largest number of new tokens.")] = 60,
    temperature: Annotated[
        float, typer.Option(help="0 always takes the most probable token (greedy).")
    ] = 0.8,
    top_k: Annotated[
        int, typer.Option(help="Sample from the k most probable tokens only; 0 is all.")
    ] = 0,
    top_p: Annotated[
        float,
        typer.Option(help="Sample from the fewest tokens whose probabilities reach this sum."),
    ] = 0.95,
    seed: Annotated[int, typer.Option(help="The seed of the sampling.")] = 0,
    show_alternatives: Annotated[
        bool,
        typer.Option("--show-alternatives", help="Show the most probable tokens at each place."),
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Continue a prompt, with a base pretrained by the causal objective."""
    from headstart.language_model import Sampling, open_language_model
    from headstart.language_model import generate as continue_prompt

    opened = open_language_model(run, causal=True, to="write")
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    ids: list[int] = []
    rows = []
    shown = ""
    live = not json and not show_alternatives
    if live:
        sys.stdout.write(visible(prompt))
    for generated in continue_prompt(opened, prompt, tokens=tokens, sampling=sampling):
        ids.append(generated.token)
        rows.append(generated)
        text = opened.tokenizer.decode(ids)
        if live and not text.endswith("�"):  # half of a character waits for its other half
            sys.stdout.write(visible(text[len(shown) :]))
            sys.stdout.flush()
            shown = text
    text = opened.tokenizer.decode(ids)
    named = [
        {
            "token": opened.tokenizer.decode([row.token]),
            "alternatives": [
                {"token": opened.tokenizer.decode([i]) or "end of text", "probability": p}
                for i, p in row.alternatives
            ],
        }
        for row in rows
    ]
    ended = bool(ids) and ids[-1] == opened.tokenizer.end_id
    if json:
        print_json({"prompt": prompt, "text": text, "ended": ended, "tokens": named})
    elif live:
        sys.stdout.write(text[len(shown) :] + "\n")
    else:
        table = Table("token", "most probable", box=None, header_style="dim", pad_edge=False)
        for row in named:
            others = "  ".join(
                f"{other['token']!r} {other['probability']:.0%}"  # type: ignore[index]
                for other in row["alternatives"]
            )
            table.add_row(repr(row["token"]) if row["token"] else "end of text", others)
        results().print(table)


def fill(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run pretrained with a masked objective.")
    ],
    text: Annotated[str, typer.Argument(help="A text with [MASK] where a token is missing.")],
    candidates: Annotated[
        int, typer.Option(min=1, help="How many candidates to show for each gap.")
    ] = 5,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Fill each [MASK] of a text, with a base pretrained by a masked objective."""
    from headstart.language_model import fill as fill_gaps
    from headstart.language_model import open_language_model

    opened = open_language_model(run, causal=False, to="fill a gap")
    filled = fill_gaps(opened, text, candidates=candidates)
    if json:
        gaps = [
            [{"piece": piece, "probability": share} for piece, share in gap.candidates]
            for gap in filled
        ]
        print_json({"text": text, "gaps": gaps})
        return
    console = results()
    for gap in filled:
        shown = Text(f"gap {gap.gap + 1}: ")
        for number, (piece, share) in enumerate(gap.candidates):
            shown.append("  " if number else "")
            shown.append_text(
                styled("[bold]{piece}[/] {share:.1%}", piece=piece.strip(), share=share)
            )
        console.print(shown)


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
    from headstart.cli.display import progress_bar
    from headstart.language_model import open_language_model
    from headstart.language_model import perplexity as measure
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
