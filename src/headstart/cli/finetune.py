"""`headstart finetune`: a base and labelled texts become a classifier."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli import options
from headstart.cli.options import machine_settings, saved_when_stopped
from headstart.cli.output import Debug, Json, print_json, results, styled


def finetune(
    dataset: Annotated[
        list[str] | None,
        typer.Argument(help="Labelled files or a name (rotten-tomatoes).", show_default=False),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="A pretrained run, hf:PATH (or hf:owner/name), or none: from scratch."),
    ] = None,
    out: options.RunFolder = Path("runs/finetuned"),
    task: Annotated[
        str | None,
        typer.Option(help="classification (default), pairs, multi-label, tagging or spans."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Without a base: small (default), lab, bert, gpt2. lab: as the lab did."),
    ] = None,
    new_head: Annotated[
        str | None,
        typer.Option(help="The new head: fitted to the base (default) or drawn at random."),
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="full (default), frozen or gradual.", show_default=False)
    ] = None,
    layer_decay: Annotated[
        float | None, typer.Option(help="Each layer down learns this much slower.")
    ] = None,
    pooling: Annotated[
        str | None, typer.Option(help="last, mean, first, max, mean+max; else the preset's.")
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(help="own (default), or huggingface: one that stock transformers has."),
    ] = None,
    fresh: Annotated[
        bool | None, typer.Option("--fresh", help="The base's network, but from scratch.")
    ] = None,
    epochs: options.Whole = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many epochs without a better one.")
    ] = None,
    choose_by: Annotated[
        str | None, typer.Option(help="The best epoch by validation's metric (default) or loss.")
    ] = None,
    batch_size: options.Whole = None,
    learning_rate: options.Number = None,
    warmup: Annotated[float | None, typer.Option(help="Share of the steps.")] = None,
    weight_decay: options.Number = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a window; of a text at most with --long cut.")
    ] = None,
    long: Annotated[
        str | None, typer.Option(help="Longer texts: windows, pooled as one (default), or cut.")
    ] = None,
    balance: Annotated[
        bool | None, typer.Option("--balance", help="Rare classes count as much as common ones.")
    ] = None,
    label_smoothing: options.Number = None,
    validation: Annotated[str | None, typer.Option(help="A file of its own.")] = None,
    test: Annotated[str | None, typer.Option(help="A file of its own; kept for evaluate.")] = None,
    text_column: options.Word = None,
    second_column: Annotated[str | None, typer.Option(help="Of pairs.")] = None,
    label_column: options.Word = None,
    encoding: options.Word = None,
    drop_overlap: options.DropOverlap = None,
    split_seed: options.Whole = None,
    objective: Annotated[str | None, typer.Option(help="Without a base: causal, masked.")] = None,
    vocab_size: options.Size = None,
    width: options.Size = None,
    layers: options.Size = None,
    heads: options.Size = None,
    feed_forward: options.Size = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Without a base: a file or a run; else it is trained.")
    ] = None,
    tokenizer_kind: options.TokenizerKind = None,
    match_vocabulary: Annotated[
        str | None, typer.Option(help="Go over to this tokenizer, keeping shared pieces.")
    ] = None,
    seed: options.Whole = None,
    device: options.Word = None,
    threads: options.Whole = None,
    precision: options.PrecisionOption = None,
    track: options.Track = None,
    save_seconds: options.SaveSeconds = 60.0,
    resume: options.Resume = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Swap a base's head and fine-tune it on your labels.

    headstart finetune reviews.csv --base runs/base --out runs/classifier
    """
    given = options.given_settings(
        locals(), but=("out", "track", "save_seconds", "resume", "json", "debug")
    )
    _run(given, out, track or [], save_seconds, resume=resume, json=json)


def _run(
    given: dict[str, Any],
    out: Path,
    trackers: list[str],
    save_seconds: float,
    *,
    resume: bool,
    json: bool,
) -> None:
    from headstart.cli.training_display import FinetuneDisplay
    from headstart.training.finetune import finetune
    from headstart.training.listener import Listeners, find_trackers
    from headstart.training.recipe import read_finetune_recipe
    from headstart.training.recipe_file import FILE

    # Killed before there was anything to resume from: a resumed run simply starts.
    resume = resume and ((out / FILE).exists() or "dataset" not in given)
    recipe = read_finetune_recipe(out).changed(**given) if resume else _new_recipe(given)
    with FinetuneDisplay() as display:
        listener = Listeners([display, *find_trackers(trackers)])
        with saved_when_stopped(f"headstart finetune --resume --out {out}"):
            summary = finetune(
                recipe, out, resume=resume, listener=listener, save_seconds=save_seconds
            )
    if json:
        print_json(summary)
        return
    found = summary["validation"]
    shown = ", ".join(
        f"{name.replace('_', ' ')} {value:.1%}"
        for name, value in found.items()
        if name not in ("train_loss", "validation_loss", "seconds")
    )
    results().print(
        styled(
            "[bold]{out}[/]: epoch {epoch} is the best by validation: [bold]{shown}[/]\n"
            "evaluate it, once: headstart evaluate {out}",
            out=str(out),
            epoch=summary["best_epoch"],
            shown=shown,
        )
    )


def _new_recipe(given: dict[str, Any]) -> Any:
    from headstart.base_source import pin_base
    from headstart.errors import HeadstartError
    from headstart.training.recipe import make_recipe

    if "dataset" not in given:
        raise HeadstartError(
            "no dataset was given",
            fix="name a file of labelled texts: headstart finetune reviews.csv --base RUN",
        )
    if "base" not in given:
        raise HeadstartError(
            "no base was given",
            fix="name a pretrained run with --base RUN, or train from scratch with --base none",
        )
    given["base"] = pin_base(given["base"])
    return make_recipe(**{**given, **machine_settings(given)})
