"""`headstart pretrain` and `finetune`, and how a training looks while it runs."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from headstart.cli.console import (
    Display,
    duration,
    interval,
    messages,
    note,
    print_json,
    record_table,
    results,
    styled,
    write,
)
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
}
SWAP_COLUMNS = {"part": "", "status": "", "parameters": ",", "why": ""}
NOT_METRICS = ("step", "train_loss", "loss", "validation_loss", "seconds", "total_seconds")
SCRATCH = (
    "no --base: the network starts from scratch. To pretrain one first: "
    "headstart pretrain my-text.txt --out runs/base"
)
WORSE_THAN_UNIGRAM = (
    "[yellow]That is worse than a unigram model[/], which knows only how frequent each token is: "
    "train longer (--minutes, --tokens), or give more text"
)
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
    summary = run.summary
    if dry_run:
        print_plan(run.plan, json=json)
    elif json:
        print_json(summary)
    else:
        write(
            "[bold]{out}[/]: {tokens:,} tokens at {tokens_per_second:,.0f} per second; held-out "
            "perplexity [bold]{held_out[perplexity]:,.1f}[/] (a unigram model has "
            "{unigram_perplexity:,.1f})",
            out=out,
            **summary,
        )
        if summary["held_out"]["perplexity"] > summary["unigram_perplexity"]:
            write(WORSE_THAN_UNIGRAM)
        write("next: headstart finetune LABELLED-FILE --base {out}", out=out)


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
        note(SCRATCH)
    from headstart.training.finetune import finetune as train

    with TrainDisplay("texts", 1) as display, resumable("finetune", out):
        run = train(config, out, resume=resume, callbacks=[display], dry_run=dry_run)
        if dry_run:
            print_plan(run.plan, json=json)
            return
    summary = run.summary
    compared = find_baselines(out, run) if baselines else []
    if json:
        print_json(summary | {"baselines": compared})
        return
    metrics = _metrics(summary["validation"])
    shown = ", ".join(f"{metric_name(name)} {value:.1%}" for name, value in metrics.items())
    line = "[bold]{out}[/]: epoch {best}, on validation: [bold]{shown}[/]"
    write(line, out=out, best=summary["best_epoch"], shown=shown)
    if compared:
        results().print(baseline_table(compared, metrics), "")
    if summary.get("test_rows", 1):
        write("next: headstart evaluate {out}, once: it reads the test part", out=out)
    else:
        hint = "there is no test part; evaluate it on other rows: headstart evaluate {out} FILE"
        write(hint, out=out)


def make_config(
    config_class: type[C], given: dict[str, Any], out: Path, *, resume: bool, source: str
) -> tuple[C, bool]:
    """Make the config of a training before anything heavy is imported.

    Parameters
    ----------
    source : the setting that names the data. If it is given, resuming a folder in which nothing
        was started yet starts.

    Returns
    -------
    The config, and whether there is a run to resume: its own config, with what was given.
    """
    if given.get("base") is not None:
        given = given | {"base": pin_base(given["base"])}
    if resume and (is_run(out) or not given.get(source)):
        return config_class.from_dict({**vars(config_class.load(out)), **given}), True
    config_class.create(**given)  # a bad value is reported before any file is read
    return config_class.create(**with_task(given)), False


@contextmanager
def resumable(command: str, out: Path) -> Iterator[None]:
    """Print how to resume a training that was stopped; it has saved itself."""
    from headstart.training.processes import Processes
    from headstart.training.trainer import Interrupted

    try:
        yield
    except Interrupted as stopped:
        if Processes().first:
            messages().print(
                f"stopped and saved at step {stopped.step:,}; resume with: "
                f"headstart {command} --resume --out {out}",
                soft_wrap=True,
            )
        raise typer.Exit(130) from None


def print_plan(plan: dict[str, Any], *, json: bool) -> None:
    """Print the plan of a training that is not done."""
    if json:
        print_json(plan)
    else:
        write("{plan}", plan=plan_text(plan))


def plan_text(plan: dict[str, Any]) -> str:
    """Describe the plan of a training in one line."""
    if "corpus_tokens" in plan:
        what = (
            f"{counted(plan['steps'], 'step')}, {plan['tokens']:,} tokens "
            f"({plan['epochs']:.2f} epochs of {plan['corpus_tokens']:,})"
        )
    else:
        labels = ", ".join(plan["labels"][:8]) + (", …" if len(plan["labels"]) > 8 else "")
        what = (
            f"{plan['task']}, {plan['train_rows']:,} training rows, {plan['validation_rows']:,} "
            f"validation rows; labels: {labels}; {counted(plan['epochs'], 'epoch')} of "
            f"{counted(plan['steps_per_epoch'], 'step')}"
        )
    threads = counted(plan["threads"], "thread")
    seconds = "" if plan["seconds"] is None else f", about {duration(plan['seconds'])}"
    return f"{what}; {plan['parameters']:,} parameters; {threads}, {plan['precision']}{seconds}"


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: 1 epoch, 2 epochs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _metrics(row: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in row.items() if name not in NOT_METRICS}


class TrainDisplay(Display, Callback):
    """Shows the stages of a training, its plan, its progress and a line per evaluation."""

    def on_start(self, run: Any, step: int) -> None:
        self.end_stage()
        plan, console = run.plan, messages()
        self._has_epochs = run.task is not None
        console.print(styled("[bold]plan[/]: {text}", text=plan_text(plan)), soft_wrap=True)
        if step:
            console.print(f"resumed at step {step:,} of {plan['steps']:,}")
        for text in plan.get("notes", ()):
            note(text)
        if plan.get("swap"):
            console.print(record_table(plan["swap"], SWAP_COLUMNS))
        if truncated := plan.get("truncated"):
            note(
                f"{truncated:,} of {plan['train_rows']:,} training texts are longer than "
                f"{plan['length']} tokens; their rest is not read (--length, or --long windows)"
            )

    def on_warning(self, message: str) -> None:
        note(message)

    def on_step(self, state: Any) -> None:
        speed = state.tokens / max(state.seconds, 1e-9)
        more = f", loss {state.loss:.3f}, {speed:,.0f} tokens/s"
        self.show_training("steps", state.step, state.steps, more)

    def on_evaluation(self, state: Any) -> None:
        row = state.history[-1]
        place = f"epoch {len(state.history)}" if self._has_epochs else f"step {state.step:,}"
        words = [place, f"train loss {row['train_loss']:.4f}", f"held-out loss {row['loss']:.4f}"]
        for name, value in _metrics(row).items():
            words.append(f"{metric_name(name)} {value:{FORMATS.get(name, '.1%')}}")
        shown = Text("  ".join([*words, duration(row["total_seconds"])]))
        shown.append("  best" if state.best_step == state.step else "", style="green")
        messages().print(shown, soft_wrap=True)


def find_baselines(folder: Path, run: Any, rows: Any = None) -> list[dict[str, Any]]:
    """Compute the baselines of a run on `rows`, by default its validation rows.

    The rows that trained the run are those that its training has read; for a run that was opened,
    the dataset is read again.
    """
    from headstart.baselines.baselines import baselines_for, baselines_of_run

    with messages().status("computing baselines …"):
        try:
            if run.splits is None:
                return baselines_of_run(folder, run.task, rows)
            train, validation = run.splits.train, run.splits.validation
            return baselines_for(run.task, train, validation, validation)
        except (HeadstartError, OSError) as problem:  # the dataset may have moved since
            note(f"no baselines: {getattr(problem, 'what', problem)}")
            return []


def baseline_table(found: list[dict[str, Any]], metrics: Iterable[str]) -> Table:
    """Make a table of baselines, with the first two of the metrics and their intervals."""
    rows = [
        {metric_name(name): interval(metric) for name, metric in one["metrics"].items()}
        | {"compared with": one["name"], "": one["about"]}
        for one in found
    ]
    names = map(metric_name, dict.fromkeys(metrics))
    known = [name for name in names if any(name in row for row in rows)][:2]
    return record_table(rows, {"compared with": "", **dict.fromkeys(known, ""), "": ""})
