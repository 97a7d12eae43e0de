"""`headstart pretrain` and `finetune`, and how a training looks while it runs."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.table import Table

from headstart.cli import console
from headstart.cli.options import (
    Baselines,
    Debug,
    DryRun,
    Json,
    Resume,
    from_config,
    option,
    with_task,
)
from headstart.config import Config, FinetuneConfig, PretrainConfig, is_run, pin_base
from headstart.errors import HeadstartError
from headstart.evaluation import metric_name
from headstart.training.callbacks import Callback

FORMATS = {  # other metrics are shares
    "perplexity": ",.1f",
    "bits_per_byte": ".3f",
    "masked_tokens": ".4f",
    "next_sentence": ".4f",
    "contrastive": ".4f",
}
NOT_METRICS = ("step", "train_loss", "loss", "validation_loss", "seconds", "total_seconds")
PRETRAINED = (
    "[bold]{out}[/]: {tokens:,} tokens at {tokens_per_second:,.0f} per second; {found}\n"
    "next: {program} finetune LABELLED-FILE --base {out}"
)
PERPLEXITY = "held-out perplexity {perplexity:,.1f} (a unigram model has {unigram:,.1f})"
DOCUMENTS = "a held-out span finds its document among others in {document_accuracy:.1%} of cases"
C = TypeVar("C", bound=Config)


@from_config(PretrainConfig)
def pretrain(
    given: dict[str, Any],
    out: Annotated[Path, option(help="The run's folder. Default: runs/base.")] = Path("runs/base"),
    resume: Resume = False,
    dry_run: DryRun = False,
    processes: Annotated[
        int, option(help="Processes of this machine that share the training.", min=1, max=512)
    ] = 1,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Pretrain a base on your own text.

    headstart pretrain my-text.txt --minutes 10 --out runs/base
    """
    config, resume = make_config(PretrainConfig, given, out, resume=resume, source="corpus")
    from headstart.training.initialization import base_objective
    from headstart.training.pretrain import pretrain as train
    from headstart.training.processes import Processes, launch, reported_once

    running = Processes()
    if processes > 1 and running.count == 1:
        raise typer.Exit(launch(processes, sys.argv[1:]))
    if config.base is not None and "objective" not in given and not resume:
        config = config.replace(objective=base_objective(config.base))
    with TrainDisplay() as display, resumable("pretrain", out), reported_once():
        run = train(config, out, resume=resume, callbacks=[display], dry_run=dry_run)
    if not running.first:
        return
    if dry_run:
        console.print_result(run.plan, show_plan, json=json)
    elif json:
        console.print_json(run.summary)
    else:
        held_out, unigram = run.summary["held_out"], run.summary.get("unigram_perplexity")
        found = [] if unigram is None else [PERPLEXITY.format(unigram=unigram, **held_out)]
        found += [DOCUMENTS.format(**held_out)] if "document_accuracy" in held_out else []
        console.write(
            PRETRAINED,
            out=out,
            program=console.program(),
            found="; ".join(found),
            **run.summary,
        )
        if unigram is not None and held_out["perplexity"] >= unigram:
            console.note(
                "this base does not predict better than the unigram model: it has learned nothing "
                "yet. Train longer (--minutes, --tokens) or give more text"
            )


@from_config(FinetuneConfig)
def finetune(
    given: dict[str, Any],
    out: Annotated[Path, option(help="The run's folder. Default: runs/finetuned.")] = Path(
        "runs/finetuned"
    ),
    resume: Resume = False,
    dry_run: DryRun = False,
    baselines: Baselines = True,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Swap a base's head and fine-tune it on your labels.

    headstart finetune reviews.csv --base runs/base --out runs/classifier
    """
    config, resume = make_config(FinetuneConfig, given, out, resume=resume, source="dataset")
    if config.base is None and not resume:
        console.note(
            "no --base: the network starts from scratch. To pretrain one first: "
            f"{console.program()} pretrain my-text.txt --out runs/base"
        )
    from headstart.training.finetune import finetune as train

    with TrainDisplay() as display, resumable("finetune", out):
        run = train(config, out, resume=resume, callbacks=[display], dry_run=dry_run)
        if dry_run:
            console.print_result(run.plan, show_plan, json=json)
            return
    summary = run.summary
    compared = find_baselines(out, run) if baselines else []
    if json:
        console.print_json(summary | {"baselines": compared})
        return
    metrics = _metrics(summary["validation"])
    console.write(
        "[bold]{out}[/]: epoch {best}, on validation: [bold]{shown}[/]",
        out=out,
        best=summary["best_epoch"],
        shown=", ".join(f"{metric_name(name)} {value:.1%}" for name, value in metrics.items()),
    )
    if compared:
        console.show(baseline_table(compared, metrics), "")
    console.write(
        "next, once, at the end: {program} evaluate {out} (on the test part)",
        program=console.program(),
        out=out,
    )


def make_config(
    config_class: type[C], given: dict[str, Any], out: Path, *, resume: bool, source: str
) -> tuple[C, bool]:
    """Make the config of a training before anything heavy is imported.

    Also returns whether there is a run to resume; then the config is its own, with what was given.
    If `source`, the setting that names the data, is given, resuming a folder in which nothing was
    started yet starts.
    """
    if given.get("base") is not None:
        given = given | {"base": pin_base(given["base"])}
    if resume and (is_run(out) or not given.get(source)):
        return config_class.from_dict({**vars(config_class.load(out)), **given}), True
    config_class.create(**given)  # a bad value is reported before any file is read
    return config_class.create(**with_task(given)), False


@contextmanager
def resumable(command: str, out: Path) -> Iterator[None]:
    """Print how to resume a training that was stopped; its checkpoint is already saved."""
    from headstart.training.processes import Processes
    from headstart.training.trainer import Interrupted

    try:
        yield
    except Interrupted as stopped:
        if Processes().first:
            console.message(
                "stopped and saved at step {step:,}; resume with: "
                "{program} {command} --resume --out {out}",
                step=stopped.step,
                program=console.program(),
                command=command,
                out=out,
            )
        raise typer.Exit(130) from None


def show_plan(plan: dict[str, Any]) -> None:
    """Print the plan of a dry run."""
    console.write("{plan}", plan=plan_text(plan))


def plan_text(plan: dict[str, Any]) -> str:
    """Describe the plan of a training in one line."""
    what = "{task}, epochs: {epochs:,}, {train_rows:,} training rows, {validation_rows:,} "
    what += "validation rows, labels: {labels}"
    if "corpus_tokens" in plan:
        what = "{tokens:,} tokens ({epochs:.2f} epochs of {corpus_tokens:,})"
    what = (
        "{steps:,} steps: " + what + "; {parameters:,} parameters; {threads} threads, {precision}"
    )
    labels = console.shortened(", ".join(plan.get("labels", [])))
    seconds = "" if plan["seconds"] is None else f", about {console.duration(plan['seconds'])}"
    return what.format(**plan | {"labels": labels}) + seconds


def _metrics(row: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in row.items() if name not in NOT_METRICS}


class TrainDisplay(console.Display, Callback):
    """Shows the stages of a training, its plan, its progress and a line per evaluation."""

    training = "training"  # the name of the stage of all steps

    def on_start(self, run: Any, step: int) -> None:
        plan, resumed = run.plan, f"; resumed at step {step:,}" if step else ""
        self._place = "step" if run.task is None else "epoch"
        console.message("[bold]plan[/]: {text}{resumed}", text=plan_text(plan), resumed=resumed)
        for text in plan.get("notes", ()):
            console.note(text)
        if plan.get("swap"):
            columns = {"part": "", "status": "", "parameters": ",", "why": ""}
            console.messages().print(console.record_table(plan["swap"], columns))
        if truncated := plan.get("truncated"):
            console.note(
                f"{truncated:,} of {plan['train_rows']:,} training texts are longer than "
                f"{plan['length']} tokens; the rest of them is not read (see --length and --long)"
            )

    def on_warning(self, message: str) -> None:
        console.note(message)

    def on_step(self, state: Any) -> None:
        if self.name != self.training:
            self._steps = self.stage(self.training, state.step)
        speed = state.tokens / max(state.seconds, 1e-9)
        self._steps(
            state.step,
            state.steps,
            f", step {state.step:,}, loss {state.loss:.3f}, {speed:,.0f} tokens/s",
        )

    def on_evaluation(self, state: Any) -> None:
        row = state.history[-1]
        number = state.step if self._place == "step" else len(state.history)
        metrics = [
            f"{metric_name(name)} {value:{FORMATS.get(name, '.1%')}}"
            for name, value in _metrics(row).items()
        ]
        console.message(
            "{place} {number:,}  train loss {train_loss:.4f}  held-out loss {loss:.4f}  {metrics}  "
            "{time}[green]{best}[/]",
            place=self._place,
            number=number,
            metrics="  ".join(metrics),
            time=console.duration(row["total_seconds"]),
            best="  best" if state.best_step == state.step else "",
            **{name: row[name] for name in ("train_loss", "loss")},
        )


def find_baselines(folder: Path, run: Any, rows: Any = None) -> list[dict[str, Any]]:
    """Compute the baselines of a run on `rows`, by default the validation rows of its training."""
    from headstart.baselines.baselines import baselines_for, baselines_of_run

    with console.messages().status("computing baselines …"):
        try:
            if run.splits is None:
                return baselines_of_run(folder, run.task, rows)
            train, validation = run.splits.train, run.splits.validation
            return baselines_for(run.task, train, validation, validation)
        except (HeadstartError, OSError) as problem:  # the dataset may have moved since
            console.note(f"no baselines: {getattr(problem, 'what', problem)}")
            return []


def baseline_table(found: list[dict[str, Any]], metrics: Iterable[str]) -> Table:
    """Make a table of baselines, with the first two of the metrics and their intervals."""
    rows = [
        {metric_name(name): console.interval(metric) for name, metric in one["metrics"].items()}
        | {"compared with": one["name"], "": one["about"]}
        for one in found
    ]
    names = map(metric_name, dict.fromkeys(metrics))
    known = [name for name in names if any(name in row for row in rows)][:2]
    return console.record_table(rows, {"compared with": "", **dict.fromkeys(known, ""), "": ""})
