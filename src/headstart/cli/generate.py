"""`headstart generate`: let a causal base write on."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from headstart.cli.output import Debug, Json, print_json, results


def generate(
    run: Annotated[Path, typer.Argument(help="The folder of a causal run.")],
    prompt: Annotated[str, typer.Argument(help="What to go on from.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="At most so many.")] = 60,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.8,
    top_k: Annotated[int, typer.Option(help="Only the k most probable; 0 is all.")] = 0,
    top_p: Annotated[float, typer.Option(help="Only the fewest that reach this share.")] = 0.95,
    seed: int = 0,
    show_alternatives: Annotated[
        bool, typer.Option("--show-alternatives", help="Show each token's probabilities.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write on from a prompt, with a base pretrained by the causal objective."""
    from headstart.inference.generate import Sampling
    from headstart.inference.generate import generate as write
    from headstart.run_folder import open_language_model

    opened = open_language_model(run, causal=True, to="write")
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    ids: list[int] = []
    rows = []
    shown = ""
    live = not json and not show_alternatives
    if live:
        sys.stdout.write(prompt)
    for written in write(opened, prompt, tokens=tokens, sampling=sampling):
        ids.append(written.token)
        rows.append(written)
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
        table = Table("token", "might have been", box=None, header_style="dim", pad_edge=False)
        for row in named:
            others = "  ".join(
                f"{other['token']!r} {other['probability']:.0%}"  # type: ignore[index]
                for other in row["alternatives"]
            )
            table.add_row(repr(row["token"]) if row["token"] else "end of text", others)
        results().print(table)
