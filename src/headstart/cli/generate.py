"""`headstart generate`: continue a prompt with a causal base."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from headstart.cli.output import Debug, Json, print_json, results


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
    from headstart.inference.generate import Sampling
    from headstart.inference.generate import generate as continue_prompt
    from headstart.run_folder import open_language_model

    opened = open_language_model(run, causal=True, to="write")
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    ids: list[int] = []
    rows = []
    shown = ""
    live = not json and not show_alternatives
    if live:
        sys.stdout.write(prompt)
    for generated in continue_prompt(opened, prompt, tokens=tokens, sampling=sampling):
        ids.append(generated.token)
        rows.append(generated)
        text = opened.tokenizer.decode(ids)
        if live and not text.endswith("�"):  # half of a character waits for its other half
            sys.stdout.write(text[len(shown) :])
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
