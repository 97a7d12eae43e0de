"""`headstart generate`, `fill` and `perplexity`: a base as a language model."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.console import print_json, progress_bar, record_table, results, visible, write
from headstart.cli.options import Debug, Json, from_config
from headstart.config import PretrainConfig

CausalRun = Annotated[
    Path, typer.Argument(help="The folder of a run pretrained with the causal objective.")
]


def generate(
    run: CausalRun,
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
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The seed of the sampling.")] = 0,
    show_alternatives: Annotated[
        bool,
        typer.Option("--show-alternatives", help="Show the most probable tokens at each position."),
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Continue a prompt, with a base pretrained by the causal objective.

    headstart generate runs/base "This film is"
    """
    from headstart import language_model

    opened = language_model.open_language_model(run, causal=True, to="write")
    sampling = language_model.Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    decode = opened.tokenizer.decode
    generated = language_model.generate(opened, prompt, tokens=tokens, sampling=sampling)
    if not json and not show_alternatives:
        _print_live(prompt, (one.token for one in generated), decode)
        return
    found = list(generated)
    ids = [one.token for one in found]
    steps: list[dict[str, Any]] = [
        {
            "token": decode([one.token]),
            "alternatives": [
                {"token": decode([other]) or "end of text", "probability": probability}
                for other, probability in one.alternatives
            ],
        }
        for one in found
    ]
    if json:
        ended = bool(ids) and ids[-1] == opened.tokenizer.end_id
        print_json({"prompt": prompt, "text": decode(ids), "ended": ended, "tokens": steps})
        return
    rows = []
    for step in steps:
        words = [f"{one['token']!r} {one['probability']:.0%}" for one in step["alternatives"]]
        rows.append({"token": repr(step["token"]), "most probable": "  ".join(words)})
    results().print(record_table(rows, {"token": "", "most probable": ""}))


def _print_live(prompt: str, tokens: Iterator[int], decode: Callable[[list[int]], str]) -> None:
    """Print the prompt, and every token as soon as it is generated."""
    sys.stdout.write(visible(prompt))
    ids: list[int] = []
    text = shown = ""
    for token in tokens:
        ids.append(token)
        text = decode(ids)
        if not text.endswith("\ufffd"):  # half of a character waits for its other half
            sys.stdout.write(visible(text[len(shown) :]))
            sys.stdout.flush()
            shown = text
    sys.stdout.write(visible(text[len(shown) :]) + "\n")


def fill(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run pretrained with a masked objective.")
    ],
    text: Annotated[str, typer.Argument(help="A text with [MASK] where a token is missing.")],
    candidates: Annotated[
        int, typer.Option(min=1, help="How many candidates to show for each [MASK].")
    ] = 5,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Fill each [MASK] of a text, with a base pretrained by a masked objective.

    headstart fill runs/masked "a [MASK] film"
    """
    from headstart import language_model

    opened = language_model.open_language_model(run, causal=False, to="fill a gap")
    gaps = language_model.fill(opened, text, candidates=candidates)
    if json:
        documents = [[{"token": token, "probability": p} for token, p in gap] for gap in gaps]
        print_json({"text": text, "gaps": documents})
        return
    for number, gap in enumerate(gaps, 1):
        words = "  ".join(f"{token.strip()} {probability:.1%}" for token, probability in gap)
        write("{mask} {number}: {words}", mask="[MASK]", number=number, words=words)


@from_config(PretrainConfig, only=("text_column", "encoding"))
def perplexity(
    given: dict[str, Any],
    run: CausalRun,
    files: Annotated[
        list[str], typer.Argument(help="Text files, folders or built-in names, such as imdb.")
    ],
    length: Annotated[int, typer.Option(min=2, help="Tokens per window.")] = 256,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure how well a base predicts texts that it was not trained on.

    headstart perplexity runs/base other-text.txt
    """
    from headstart import language_model
    from headstart.data.corpus import read_corpus

    to = "measure the perplexity of a text"
    opened = language_model.open_language_model(run, causal=True, to=to)
    corpus = read_corpus(files, **given)
    with progress_bar("reading", "documents") as show:
        found = language_model.perplexity(opened, corpus, length=length, progress=show)
    derived = {"perplexity": found.perplexity, "bits_per_byte": found.bits_per_byte}
    document = {**vars(found), **derived}
    if json:
        print_json(document)
    else:
        write(
            "perplexity [bold]{perplexity:,.1f}[/] per token, {bits_per_byte:.3f} bits per byte, "
            "over {tokens:,} tokens of {documents:,} documents",
            **document,
        )
