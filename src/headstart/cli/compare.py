"""`headstart compare`: does pretraining help this task, by how much, and how many labels does it
save?
"""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli import options
from headstart.cli.output import Debug, Json, messages, print_json, results
from headstart.studies.arms import arms as arms_known

if TYPE_CHECKING:
    from headstart.studies.run import StudyRun

REPORT_STAGE = "computing intervals and writing the report"


def compare(
    dataset: Annotated[
        list[str] | None,
        typer.Argument(
            help="Labelled texts: files, a folder with files called train, validation and test, or "
            "a name. By default rotten-tomatoes, pretrained on imdb.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The study's folder.")] = Path("studies/compare"),
    name: Annotated[
        str | None,
        typer.Option(
            help="What the report calls the dataset; by default its file.", show_default=False
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="classification (default), pairs, multi-label, tagging or spans.",
            show_default=False,
        ),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            help="Text to pretrain on; may be given several times. Without it the dataset's own "
            "training texts are the corpus.",
            show_default=False,
        ),
    ] = None,
    documents: options.DocumentsOption = None,
    held_out: options.HeldOut = None,
    task_text: Annotated[
        str | None,
        typer.Option(
            help="on (default) or off: whether the training texts join the corpus, without labels.",
            show_default=False,
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="A file; else one is trained on the corpus.", show_default=False),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="A run of headstart pretrain, or hf:PATH, instead of pretraining.", metavar="RUN"
        ),
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(
            help=f"Of {', '.join(arms_known())}, or hf:PATH for somebody else's base. By default "
            f"all but {', '.join(name for name, arm in arms_known().items() if not arm.default)}.",
            show_default=False,
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="causal (default), masked, masked+next-sentence, or several: causal,masked.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Label budgets. By default 100,400,all.", show_default=False),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How often each training is repeated.")] = 3,
    bases: Annotated[
        int, typer.Option(help="Pretrainings; with several, intervals include their luck.")
    ] = 1,
    choose_by: Annotated[
        str | None,
        typer.Option(
            help="What chooses epochs, strengths and weights: the label budget itself, the "
            "validation part beside it, or nothing: all epochs are taken (the lab's way).",
            metavar="budget|validation|nothing",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Exactly so many; by default each network chooses.", show_default=False),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Cut choices, seeds, pretraining, then label budgets until it fits.",
            show_default=False,
        ),
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            help="Of pretraining, for each objective: 2M. Several amounts show what more would "
            "bring: 0.5M,1M,2M.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[str, typer.Option(help="small or lab (with the lab's training).")] = "small",
    vocab_size: options.Size = None,
    width: options.Size = None,
    layers: options.Size = None,
    heads: options.Size = None,
    feed_forward: options.Size = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens of a window of a labelled text.", show_default=False)
    ] = None,
    validation: options.Word = None,
    test: options.Word = None,
    text_column: options.Word = None,
    second_column: Annotated[str | None, typer.Option(help="Of pairs.")] = None,
    label_column: options.Word = None,
    encoding: options.Word = None,
    drop_overlap: options.DropOverlap = None,
    jobs: Annotated[
        int | None, typer.Option(help="Trainings side by side.", show_default=False)
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="Of all jobs on this machine together.", show_default=False),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="fp32 (default: nearly the same numbers on every machine), or bf16 where "
            "`headstart doctor` finds it faster.",
            show_default=False,
        ),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            help="Where trainings run: local (default: this machine), ray or slurm.",
            show_default=False,
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            help="Of the Ray cluster: HOST:6379 or auto. By default Ray is started here.",
            show_default=False,
        ),
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option(help="Of each training, on Ray or Slurm. Default: 1.", show_default=False),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(help="GB of each training, on Ray or Slurm.", show_default=False),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(help="Of each training, on Ray or Slurm.", show_default=False)
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Slurm's.", show_default=False)] = None,
    time_limit: Annotated[
        int | None,
        typer.Option(help="Minutes of one Slurm job. Default: 240.", show_default=False),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            help="A plan that --dry-run --json printed, instead of making one.", show_default=False
        ),
    ] = None,
    dry_run: options.DryRun = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare ways to get a classifier, with error bars, and write a report.

    headstart compare my-labels.csv --corpus my-text.txt --out studies/mine

    Killed or stopped, the same command resumes where it was.
    """
    given = options.given_settings(locals(), but=("out", "plan", "dry_run", "json", "debug"))
    if "objective" in given:
        given["objectives"] = given.pop("objective")
    for name in {"arms", "objectives", "labels"} & given.keys():
        given[name] = names(given[name])
    _run(given, out, plan, dry_run=dry_run, json=json)


def plan_document(study: "StudyRun") -> dict[str, Any]:
    """The plan as `--dry-run --json` prints it."""
    from headstart.studies.executors import find_executor

    resources = study.recipe.resources(study.plan.threads)
    return {
        **vars(study.plan),
        "resources": find_executor(study.recipe.executor).words(resources),
        "arms": study.recipe.arms,
        "trainings": len(study.runs),
        "warnings": study.data.warnings,
    }


def names(written: str) -> list[str]:
    """A list that was written with commas."""
    return [name.strip() for name in written.split(",") if name.strip()]


def _run(given: dict[str, Any], out: Path, plan: Path | None, *, dry_run: bool, json: bool) -> None:
    from headstart.base_source import pin_base
    from headstart.cli.compare_display import CompareDisplay
    from headstart.studies.progress_file import ProgressFile
    from headstart.studies.recipe import make_study_recipe
    from headstart.studies.record import write_results
    from headstart.studies.report.build import write_report
    from headstart.studies.run import StudyRun, join_listeners
    from headstart.studies.token_series import smaller_study
    from headstart.training.loop import Interrupted

    if "base" in given:
        given["base"] = pin_base(given["base"])
    if "arms" in given:
        given["arms"] = [pin_base(name) for name in given["arms"]]
    smaller: list[int] = []
    if "tokens" in given:
        *smaller, given["tokens"] = options.read_amounts(given["tokens"])
    recipe = make_study_recipe(**given)
    command = shlex.join(["headstart", *sys.argv[1:]])
    progress = ProgressFile(out)
    with CompareDisplay() as display:
        try:
            listener = join_listeners(display.listener(), progress.listener())
            study = StudyRun(recipe, out, listener=listener, plan=plan)
            if dry_run:
                display.on_plan(study)
                if json:
                    print_json(plan_document(study))
                return
            study.run()
            for amount in smaller:
                part = smaller_study(study, amount, display.listener())
                part.run()
                write_results(part, command=command)
        except (Interrupted, KeyboardInterrupt):
            messages().print(
                f"stopped; what is finished is kept. Resume with: {command}",
                markup=False,
                soft_wrap=True,
            )
            raise typer.Exit(130) from None
        display.on_stage(REPORT_STAGE)
        progress.stage(REPORT_STAGE)
        best = write_results(study, command=command)
        written = write_report(out)
        progress.write("finished")
    if json:
        print_json(
            {
                "verdict": written.sentences,
                "advice": written.advice,
                "report": str(written.path),
                "best": {"arm": best.run.arm, "own_accuracy": best.accuracy},
                "kept": str(out / "best") if best.kept else None,
                "plan": vars(study.plan),
                "minutes": study.minutes,
            }
        )
        return
    console = results()
    console.print(" ".join(written.sentences), markup=False)
    for line in written.advice:
        console.print(line, markup=False, soft_wrap=True)
    console.print(f"report: {written.path}", markup=False, soft_wrap=True)
    if written.missing:
        messages().print(written.missing, markup=False)
