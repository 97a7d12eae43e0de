"""`headstart pretrain`: a corpus becomes a base."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.output import Debug, Json, messages, print_json, results

Given = typer.Option(show_default=False)


def pretrain(
    corpus: Annotated[
        list[str] | None,
        typer.Argument(help="Text files, folders or names (imdb).", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="The run's folder.")] = Path("runs/base"),
    objective: Annotated[
        str | None,
        typer.Option(help="causal (default), masked or masked+next-sentence.", show_default=False),
    ] = None,
    minutes: Annotated[float | None, Given] = None,
    epochs: Annotated[float | None, Given] = None,
    tokens: Annotated[int | None, Given] = None,
    steps: Annotated[int | None, Given] = None,
    preset: Annotated[
        str | None, typer.Option(help="small (default), lab, bert or gpt2.", show_default=False)
    ] = None,
    vocab_size: Annotated[int | None, Given] = None,
    width: Annotated[int | None, Given] = None,
    layers: Annotated[int | None, Given] = None,
    heads: Annotated[int | None, Given] = None,
    feed_forward: Annotated[int | None, Given] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="A file; else one is trained on the corpus.", show_default=False),
    ] = None,
    tokenizer_kind: Annotated[str | None, typer.Option(help="bpe or unigram.")] = None,
    text_column: Annotated[str | None, Given] = None,
    encoding: Annotated[str | None, Given] = None,
    documents: Annotated[
        str | None, typer.Option(help="What one text is: line, blank-line or file.")
    ] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of a row.")] = None,
    batch_tokens: Annotated[int | None, typer.Option(help="Tokens of a step.")] = None,
    mask_share: Annotated[float | None, Given] = None,
    embedding_start: Annotated[
        str | None, typer.Option(help="cooccurrence (default) or random.")
    ] = None,
    learning_rate: Annotated[float | None, Given] = None,
    held_out: Annotated[float | None, typer.Option(help="Share of the documents.")] = None,
    seed: Annotated[int | None, Given] = None,
    device: Annotated[str | None, Given] = None,
    threads: Annotated[int | None, Given] = None,
    precision: Annotated[str | None, typer.Option(help="fp32 or bf16.")] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")
    ] = False,
    save_seconds: Annotated[float, typer.Option(help="Time between two checkpoints.")] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan only.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Pretrain a base on your own text.

    headstart pretrain my-text.txt --minutes 10 --out runs/base
    """
    given = {
        "corpus": corpus or None,
        "objective": objective,
        "minutes": minutes,
        "epochs": epochs,
        "tokens": tokens,
        "steps": steps,
        "preset": preset,
        "vocab_size": vocab_size,
        "width": width,
        "layers": layers,
        "heads": heads,
        "feed_forward_width": feed_forward,
        "tokenizer": tokenizer,
        "tokenizer_kind": tokenizer_kind,
        "text_column": text_column,
        "encoding": encoding,
        "documents": documents,
        "length": length,
        "batch_tokens": batch_tokens,
        "mask_share": mask_share,
        "embedding_start": embedding_start,
        "learning_rate": learning_rate,
        "held_out": held_out,
        "seed": seed,
        "device": device,
        "threads": threads,
        "precision": precision,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    extras = {"save_seconds": save_seconds, "tensorboard": tensorboard}
    _run(chosen, out, extras, resume=resume, dry_run=dry_run, json=json)


def _run(
    given: dict[str, Any],
    out: Path,
    extras: dict[str, Any],
    *,
    resume: bool,
    dry_run: bool,
    json: bool,
) -> None:
    from headstart.cli.training_display import TrainingDisplay
    from headstart.training.loop import Interrupted
    from headstart.training.pretrain import Listener, Pretraining
    from headstart.training.recipe import read_recipe
    from headstart.training.recipe_file import FILE

    # Killed before there was anything to go on from: a resumed run simply starts.
    resume = resume and ((out / FILE).exists() or "corpus" not in given)
    recipe = read_recipe(out).changed(**given) if resume else _new_recipe(given)
    with TrainingDisplay() as display:
        listener = Listener(
            stages=display.stages,
            on_plan=display.on_plan,
            on_step=display.on_step,
            on_evaluation=display.on_evaluation,
            on_warning=display.on_warning,
        )
        training = Pretraining(recipe, out, resume=resume, listener=listener, **extras)
        if dry_run:
            _show_plan(training.plan, json)
            return
        try:
            summary = training.run()
        except Interrupted as stopped:
            messages().print(
                f"stopped and saved at step {stopped.step:,}; go on with: "
                f"headstart pretrain --resume --out {out}"
            )
            raise typer.Exit(130) from None
    if json:
        print_json(summary)
        return
    found = summary["held_out"]
    results().print(
        f"[bold]{out}[/]: {summary['tokens']:,} tokens at {summary['tokens_per_second']:,.0f} a "
        f"second; held-out perplexity [bold]{found['perplexity']:,.1f}[/] "
        f"(a unigram model has {summary['unigram_perplexity']:,.1f})"
    )


def _new_recipe(given: dict[str, Any]) -> Any:
    import torch

    from headstart.errors import HeadstartError
    from headstart.machine.device import pick_device
    from headstart.machine.facts import choose_threads
    from headstart.machine.precision import choose_precision
    from headstart.training.recipe import PretrainRecipe

    if "corpus" not in given:
        raise HeadstartError(
            "no corpus was given", fix="name a text file: headstart pretrain my-text.txt --out RUN"
        )
    torch.set_num_threads(choose_threads(given.get("threads")))  # for the look at bf16
    device = pick_device(given.get("device"))
    precision = given.get("precision") or choose_precision(device).precision
    machine = {"device": str(device), "precision": precision}
    return PretrainRecipe(**{**given, **machine})


def _show_plan(plan: Any, json: bool) -> None:
    from headstart.cli.training_display import duration, threads_in_words

    if json:
        print_json(vars(plan))
        return
    speed = plan.tokens / plan.steps / plan.seconds_per_step
    results().print(
        f"{plan.parameters:,} parameters; {plan.memory_bytes / 1e6:,.0f} MB for weights, gradients "
        f"and optimizer, about {plan.peak_memory_bytes / 1e9:.1f} GB in all\n"
        f"{plan.steps:,} steps, {plan.tokens:,} tokens: {plan.epochs:.2f} epochs of the corpus's "
        f"{plan.corpus_tokens:,}\n"
        f"about {duration(plan.seconds)} at {speed:,.0f} tokens a second "
        f"with {threads_in_words(plan.threads)}"
    )
