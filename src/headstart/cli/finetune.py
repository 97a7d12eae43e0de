"""`headstart finetune`: a base and labelled texts become a classifier."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.output import Debug, Json, messages, print_json, results

Given = typer.Option(show_default=False)


def finetune(
    dataset: Annotated[
        list[str] | None,
        typer.Argument(help="Labelled files or a name (rotten-tomatoes).", show_default=False),
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="A pretrained run, or none: from scratch.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The run's folder.")] = Path("runs/finetuned"),
    task: Annotated[
        str | None,
        typer.Option(help="classification (default), pairs, multi-label, tagging or spans."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Without a base: small (default), lab, bert, gpt2. lab: as the lab did."),
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
    fresh: Annotated[
        bool | None, typer.Option("--fresh", help="The base's network, but from scratch.")
    ] = None,
    epochs: Annotated[int | None, Given] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many epochs without a better one.")
    ] = None,
    choose_by: Annotated[
        str | None, typer.Option(help="The best epoch by validation's metric (default) or loss.")
    ] = None,
    batch_size: Annotated[int | None, Given] = None,
    learning_rate: Annotated[float | None, Given] = None,
    warmup: Annotated[float | None, typer.Option(help="Share of the steps.")] = None,
    weight_decay: Annotated[float | None, Given] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of a text at most.")] = None,
    long: Annotated[
        str | None, typer.Option(help="Longer texts: cut (default) or windows (averaged).")
    ] = None,
    balance: Annotated[
        bool | None, typer.Option("--balance", help="Rare classes count as much as common ones.")
    ] = None,
    label_smoothing: Annotated[float | None, Given] = None,
    validation: Annotated[str | None, typer.Option(help="A file of its own.")] = None,
    test: Annotated[str | None, typer.Option(help="A file of its own; kept for evaluate.")] = None,
    text_column: Annotated[str | None, Given] = None,
    second_column: Annotated[str | None, typer.Option(help="Of pairs.")] = None,
    label_column: Annotated[str | None, Given] = None,
    encoding: Annotated[str | None, Given] = None,
    drop_overlap: Annotated[
        bool | None, typer.Option("--drop-overlap", help="Take out what other parts hold too.")
    ] = None,
    split_seed: Annotated[int | None, Given] = None,
    objective: Annotated[str | None, typer.Option(help="Without a base: causal, masked.")] = None,
    vocab_size: Annotated[int | None, Given] = None,
    width: Annotated[int | None, Given] = None,
    layers: Annotated[int | None, Given] = None,
    heads: Annotated[int | None, Given] = None,
    feed_forward: Annotated[int | None, Given] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Without a base: a file or a run; else it is trained.")
    ] = None,
    tokenizer_kind: Annotated[str | None, typer.Option(help="bpe or unigram.")] = None,
    match_vocabulary: Annotated[
        str | None, typer.Option(help="Go over to this tokenizer, keeping shared pieces.")
    ] = None,
    seed: Annotated[int | None, Given] = None,
    device: Annotated[str | None, Given] = None,
    threads: Annotated[int | None, Given] = None,
    precision: Annotated[str | None, typer.Option(help="fp32 or bf16.")] = None,
    save_seconds: Annotated[float, typer.Option(help="Time between two checkpoints.")] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Swap a base's head and fine-tune it on your labels.

    headstart finetune reviews.csv --base runs/base --out runs/classifier
    """
    settings = {name: value for name, value in locals().items() if value is not None}
    for other in ("out", "save_seconds", "resume", "json", "debug"):
        settings.pop(other, None)
    if "feed_forward" in settings:
        settings["feed_forward_width"] = settings.pop("feed_forward")
    if not dataset:
        settings.pop("dataset", None)
    _run(settings, out, save_seconds, resume=resume, json=json)


def _run(
    given: dict[str, Any], out: Path, save_seconds: float, *, resume: bool, json: bool
) -> None:
    from headstart.cli.finetune_display import FinetuneDisplay
    from headstart.training.finetune import FinetuneListener, finetune
    from headstart.training.finetune_recipe import read_finetune_recipe
    from headstart.training.loop import Interrupted
    from headstart.training.recipe_file import FILE

    # Killed before there was anything to go on from: a resumed run simply starts.
    resume = resume and ((out / FILE).exists() or "dataset" not in given)
    recipe = read_finetune_recipe(out).changed(**given) if resume else _new_recipe(given)
    with FinetuneDisplay() as display:
        listener = FinetuneListener(
            display.stages, display.on_start, display.on_step, display.on_epoch
        )
        try:
            summary = finetune(
                recipe, out, resume=resume, listener=listener, save_seconds=save_seconds
            )
        except Interrupted as stopped:
            messages().print(
                f"stopped and saved at step {stopped.step:,}; go on with: "
                f"headstart finetune --resume --out {out}"
            )
            raise typer.Exit(130) from None
    if json:
        print_json(summary)
        return
    found = summary["validation"]
    shown = ", ".join(
        f"{name.replace('_', ' ')} [bold]{value:.1%}[/]"
        for name, value in found.items()
        if name not in ("train_loss", "validation_loss", "seconds")
    )
    results().print(
        f"[bold]{out}[/]: epoch {summary['best_epoch']} is the best by validation: {shown}\n"
        f"judge it, once: headstart evaluate {out}"
    )


def _new_recipe(given: dict[str, Any]) -> Any:
    import torch

    from headstart.errors import HeadstartError
    from headstart.machine.device import pick_device
    from headstart.machine.facts import choose_threads
    from headstart.machine.precision import choose_precision
    from headstart.training.finetune_recipe import make_recipe

    if "dataset" not in given:
        raise HeadstartError(
            "no dataset was given",
            fix="name a file of labelled texts: headstart finetune reviews.csv --base RUN",
        )
    if "base" not in given:
        raise HeadstartError(
            "nothing was said about the base",
            fix="name a pretrained run with --base RUN, or train from scratch with --base none",
        )
    torch.set_num_threads(choose_threads(given.get("threads")))  # for the look at bf16
    device = pick_device(given.get("device"))
    precision = given.get("precision") or choose_precision(device).precision
    machine = {"device": str(device), "precision": precision}
    return make_recipe(**{**given, **machine})
