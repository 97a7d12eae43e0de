"""`headstart pretrain`: a corpus becomes a base."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli import options
from headstart.cli.options import machine_settings, saved_when_stopped
from headstart.cli.output import Debug, Json, print_json, results, styled
from headstart.errors import HeadstartError

SECONDS = ("save_seconds", "stuck_seconds")
NO_SETTINGS = ("out", "track", "tensorboard", *SECONDS, "resume", "dry_run", "json", "debug")


def pretrain(
    corpus: Annotated[
        list[str] | None,
        typer.Argument(help="Text files, folders or names (imdb).", show_default=False),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="Go on with this run, hf:PATH or hf:owner/name; else a base is made.",
            show_default=False,
        ),
    ] = None,
    match_vocabulary: Annotated[
        str | None,
        typer.Option(help="Let the base go over to this tokenizer.", show_default=False),
    ] = None,
    out: options.RunFolder = Path("runs/base"),
    objective: Annotated[
        str | None,
        typer.Option(help="causal (default), masked or masked+next-sentence.", show_default=False),
    ] = None,
    minutes: options.Number = None,
    epochs: options.Number = None,
    tokens: Annotated[str | None, typer.Option(help="A number, or 2M.", show_default=False)] = None,
    steps: options.Whole = None,
    preset: Annotated[
        str | None, typer.Option(help="small (default), lab, bert or gpt2.", show_default=False)
    ] = None,
    vocab_size: options.Size = None,
    width: options.Size = None,
    layers: options.Size = None,
    heads: options.Size = None,
    feed_forward: options.Size = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="A file; else one is trained on the corpus.", show_default=False),
    ] = None,
    tokenizer_kind: options.TokenizerKind = None,
    text_column: options.Word = None,
    encoding: options.Word = None,
    documents: options.DocumentsOption = None,
    task_text: Annotated[
        str | None,
        typer.Option(
            help="A labelled dataset: its training texts join the corpus, mostly at the end; its "
            "validation and test texts are kept out.",
            show_default=False,
        ),
    ] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of a row.")] = None,
    batch_tokens: Annotated[int | None, typer.Option(help="Tokens of a step.")] = None,
    mask_share: options.Number = None,
    output: Annotated[
        str | None,
        typer.Option(
            help="What a step's output layer scores: full (every piece), candidates, or auto "
            "(the faster one, the default).",
            show_default=False,
        ),
    ] = None,
    frequent: Annotated[
        int | None,
        typer.Option(help="Candidates: how many of the most frequent pieces.", show_default=False),
    ] = None,
    drawn: Annotated[
        int | None,
        typer.Option(help="Candidates: how many draws from the others.", show_default=False),
    ] = None,
    embedding_start: Annotated[
        str | None, typer.Option(help="cooccurrence (default) or random.")
    ] = None,
    learning_rate: options.Number = None,
    embedding_learning_rate: Annotated[
        float | None,
        typer.Option(help="Of the vocabulary's rows; by default the same.", show_default=False),
    ] = None,
    held_out: options.HeldOut = None,
    seed: options.Whole = None,
    device: options.Word = None,
    threads: options.Whole = None,
    processes: Annotated[
        int | None,
        typer.Option(
            help="Share every batch among so many processes; under torchrun, leave it out.",
            show_default=False,
        ),
    ] = None,
    shard: Annotated[
        bool | None,
        typer.Option(
            "--shard/--no-shard",
            help="Let each process hold only its part of the blocks' weights and moments.",
            show_default=False,
        ),
    ] = None,
    precision: options.PrecisionOption = None,
    track: options.Track = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="The same as --track tensorboard.")
    ] = False,
    save_seconds: options.SaveSeconds = 60.0,
    stuck_seconds: Annotated[
        float, typer.Option(help="How long processes wait for one that does not answer.")
    ] = 300.0,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Pretrain a base on your own text.

    headstart pretrain my-text.txt --minutes 10 --out runs/base
    """
    given = options.given_settings(locals(), but=NO_SETTINGS)
    if tokens is not None:
        given["tokens"] = _amount(tokens)
    names = [*(track or []), *(["tensorboard"] if tensorboard else [])]
    seconds = {"save_seconds": save_seconds, "stuck_seconds": stuck_seconds}
    _run(given, out, names, seconds, resume=resume, dry_run=dry_run, json=json)


def _amount(written: str) -> int:
    if "," in written:
        raise HeadstartError(
            f"a pretraining has one number of tokens, and {written!r} are several",
            fix="give one, or compare them: headstart compare DATASET --tokens 0.5M,1M,2M",
        )
    return options.read_amounts(written, fix="write --tokens 2000000, or 2M")[0]


def _run(
    given: dict[str, Any],
    out: Path,
    trackers: list[str],
    seconds: dict[str, Any],
    *,
    resume: bool,
    dry_run: bool,
    json: bool,
) -> None:
    from headstart.cli.training_display import TrainingDisplay
    from headstart.training.listener import Listeners, find_trackers
    from headstart.training.pretrain import follow, plan_pretraining, pretrain, sharing
    from headstart.training.pretrain_prepare import prepare_pretraining
    from headstart.training.processes.launch import (
        follow_first,
        is_follower,
        is_restarted,
        process_count,
        under_torchrun,
    )
    from headstart.training.recipe import read_recipe
    from headstart.training.recipe_file import FILE

    if "processes" in given and under_torchrun():
        raise HeadstartError(
            "torchrun has started the processes already", fix="leave --processes out"
        )
    if is_follower():  # of a process that torchrun has started, which prints and writes
        follow_first(follow, stuck_seconds=seconds["stuck_seconds"])
        return
    # Killed before there was anything to resume from: a resumed run simply starts.
    resume = (resume or is_restarted()) and ((out / FILE).exists() or "corpus" not in given)
    recipe = read_recipe(out).changed(**given) if resume else _new_recipe(given)
    if "shard" not in given and process_count(recipe.processes) == 1:
        recipe = recipe.changed(shard=False)  # one process goes on with what several have begun
    with TrainingDisplay() as display:
        listener = Listeners([display, *find_trackers(trackers)])
        if dry_run:
            with sharing(recipe, stuck_seconds=seconds["stuck_seconds"]) as ranks:
                setup = prepare_pretraining(
                    recipe, out, resume=resume, listener=listener, ranks=ranks
                )
                _show_plan(plan_pretraining(setup, listener=listener).plan, json)
            return
        with saved_when_stopped(f"headstart pretrain --resume --out {out}"):
            summary = pretrain(recipe, out, resume=resume, listener=listener, **seconds)
    if json:
        print_json(summary)
        return
    found = summary["held_out"]
    results().print(
        styled(
            "[bold]{out}[/]: {tokens:,} tokens at {speed:,.0f} per second; held-out perplexity "
            "[bold]{perplexity:,.1f}[/] (a unigram model has {unigram:,.1f})",
            out=str(out),
            tokens=summary["tokens"],
            speed=summary["tokens_per_second"],
            perplexity=found["perplexity"],
            unigram=summary["unigram_perplexity"],
        )
    )
    if found["perplexity"] > summary["unigram_perplexity"]:
        results().print(
            styled(
                "[yellow]That is worse than counting how often each piece occurs[/]: train longer "
                "(--minutes, --tokens), or give more text"
            )
        )


def _new_recipe(given: dict[str, Any]) -> Any:
    from headstart.base_source import pin_base
    from headstart.training.further import usual_objective
    from headstart.training.recipe import make_pretrain_recipe

    if "corpus" not in given:
        raise HeadstartError(
            "no corpus was given", fix="name a text file: headstart pretrain my-text.txt --out RUN"
        )
    if "base" in given:
        given["base"] = pin_base(given["base"])
        given.setdefault("objective", usual_objective(given["base"]))
    if given.get("shard"):
        given.setdefault("precision", "fp32")
    return make_pretrain_recipe(**{**given, **machine_settings(given)})


def _show_plan(plan: Any, json: bool) -> None:
    from headstart.cli.training_display import duration, processes_in_words

    if json:
        print_json(vars(plan))
        return
    speed = plan.tokens / plan.steps / plan.seconds_per_step
    results().print(
        f"{plan.parameters:,} parameters; {plan.memory_bytes / 1e6:,.0f} MB for weights, gradients "
        f"and optimizer, about {plan.peak_memory_bytes / 1e9:.1f} GB in all\n"
        f"{plan.steps:,} steps, {plan.tokens:,} tokens: {plan.epochs:.2f} epochs of the corpus's "
        f"{plan.corpus_tokens:,}\n"
        f"about {duration(plan.seconds)} at {speed:,.0f} tokens per second "
        f"with {processes_in_words(plan)}"
    )
