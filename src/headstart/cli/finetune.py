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
        typer.Argument(
            help="Labelled files, a folder with files called train, validation and test, or a name "
            "(rotten-tomatoes).",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="A pretrained run, hf:PATH (or hf:owner/name), or none: from scratch."),
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(
            help="network (default), tfidf or nb (linear, no base), or stack: TF-IDF and a network."
        ),
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
    minutes: Annotated[
        float | None, typer.Option(help="Fewer epochs, where more would take longer.")
    ] = None,
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
    token_dropout: Annotated[
        float | None,
        typer.Option(
            help="Share of a text's tokens left out, others in each epoch. Default: 0.35 of texts "
            "that are longer than a window, none of others.",
            show_default=False,
        ),
    ] = None,
    average: Annotated[
        float | None,
        typer.Option(help="Share of the epochs, from the end, whose weights are averaged."),
    ] = None,
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
    baselines: options.Baselines = "on",
    save_seconds: options.SaveSeconds = 60.0,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Swap a base's head and fine-tune it on your labels.

    headstart finetune reviews.csv --base runs/base --out runs/classifier
    """
    given = options.given_settings(
        locals(),
        but=("out", "track", "baselines", "save_seconds", "resume", "dry_run", "json", "debug"),
    )
    beside = options.is_on("baselines", baselines)
    if dry_run:
        _show_plan(_recipe(given, out, resume)[0], out, json=json)
    else:
        _run(given, out, track or [], save_seconds, resume=resume, baselines=beside, json=json)


def _run(
    given: dict[str, Any],
    out: Path,
    trackers: list[str],
    save_seconds: float,
    *,
    resume: bool,
    baselines: bool,
    json: bool,
) -> None:
    from headstart.baselines.finetune_arm import finetune_arm
    from headstart.cli.baseline_display import find_baselines, show_baselines, spoken
    from headstart.cli.training_display import FinetuneDisplay
    from headstart.tasks import find_task
    from headstart.training.listener import Listeners, find_trackers

    recipe, resume = _recipe(given, out, resume)
    with FinetuneDisplay() as display:
        listener = Listeners([display, *find_trackers(trackers)])
        with saved_when_stopped(f"headstart finetune --resume --out {out}"):
            summary = finetune_arm(
                recipe, out, resume=resume, listener=listener, save_seconds=save_seconds
            )
        task = find_task(summary["task"])(summary["labels"])
        beside = find_baselines(out, task) if baselines else None
    if json:
        print_json(summary | ({"baselines": beside[0]} if beside else {}))
        return
    found = summary["validation"]
    shown = ", ".join(
        f"{spoken(name)} {value:.1%}"
        for name, value in found.items()
        if name not in ("train_loss", "validation_loss", "seconds")
    )
    chosen = (
        f"epoch {summary['best_epoch']} is the best by validation"
        if "best_epoch" in summary
        else f"{summary['arm']}, by validation"
    )
    console = results()
    console.print(
        styled(
            "[bold]{out}[/]: {chosen}: [bold]{shown}[/]",
            out=str(out),
            chosen=chosen,
            shown=shown,
        )
    )
    if beside:
        show_baselines(console, *beside, names=list(found))
    hint = "evaluate it, once: headstart evaluate {out}"
    if not summary.get("test_rows", 1):
        hint = "there is no test part; evaluate it on other labelled rows: {command} {out} FILE"
    console.print(styled(hint, out=str(out), command="headstart evaluate"), soft_wrap=True)


def _recipe(given: dict[str, Any], out: Path, resume: bool) -> tuple[Any, bool]:
    """The recipe, and whether there is a run to be resumed."""
    from headstart.training.recipe import for_long_texts, read_finetune_recipe
    from headstart.training.recipe_file import FILE

    # Killed before there was anything to resume from: a resumed run simply starts.
    resume = resume and ((out / FILE).exists() or "dataset" not in given)
    if not resume:
        return _new_recipe(given), resume
    return read_finetune_recipe(out).changed(**for_long_texts(given)), resume


def _show_plan(recipe: Any, out: Path, *, json: bool) -> None:
    """What would be done and how long it would take; nothing is written."""
    from headstart.cli.training_display import FinetuneDisplay, duration
    from headstart.errors import HeadstartError
    from headstart.training.finetune import plan_finetuning
    from headstart.training.finetune_prepare import prepare_finetuning
    from headstart.training.listener import RunStart
    from headstart.training.recipe import NETWORK

    if recipe.arm != NETWORK:
        raise HeadstartError(f"the arm {recipe.arm} takes seconds, and has no plan to show")
    with FinetuneDisplay() as display:
        setup = prepare_finetuning(recipe, out, listener=display)
        plan = plan_finetuning(setup, timed=True).plan
        if not json:
            display.on_start(RunStart("finetuning", out, recipe, plan, 0))
    if json:
        print_json({**vars(plan), "swap": [vars(row) for row in plan.swap]})
        return
    results().print(
        f"{plan.parameters:,} parameters; {plan.epochs} epochs of {plan.evaluate_every:,} steps, "
        f"about {duration(plan.seconds or 0)}"
    )


def _new_recipe(given: dict[str, Any]) -> Any:
    from headstart.base_source import pin_base
    from headstart.baselines.finetune_arm import needs_base
    from headstart.errors import HeadstartError
    from headstart.training.recipe import NETWORK, make_recipe

    if "dataset" not in given:
        raise HeadstartError(
            "no dataset was given",
            fix="name a file of labelled texts: headstart finetune reviews.csv --base RUN",
        )
    if "base" not in given and needs_base(given.get("arm", NETWORK)):
        raise HeadstartError(
            "no base was given",
            fix="name a pretrained run with --base RUN, or train from scratch with --base none",
        )
    if "base" in given:
        given["base"] = pin_base(given["base"])
    return make_recipe(**{**given, **machine_settings(given)})
