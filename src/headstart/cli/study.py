"""`headstart compare`, `labels` and `report`, and how a study looks while it runs."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.console import (
    Display,
    duration,
    messages,
    metric_name,
    note,
    print_json,
    record_table,
    results,
    write,
)
from headstart.cli.options import Debug, DryRun, Json, from_config, option, with_task
from headstart.cli.training import TrainDisplay
from headstart.config import PretrainConfig, StudyConfig, pin_base

REPORT_STAGE = "computing intervals and writing the report"
Study = Annotated[Path, typer.Argument(help="The folder of a study: the --out of compare.")]


@from_config(StudyConfig, several=("tokens",))
def compare(
    given: dict[str, Any],
    out: Annotated[Path, option(help="The study's folder. Default: studies/compare.")] = Path(
        "studies/compare"
    ),
    plan: Annotated[
        Path | None,
        option(help="A plan that --dry-run --json printed, instead of making one.", metavar="FILE"),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare ways to get a classifier, with confidence intervals, and write a report.

    headstart compare my-labels.csv --corpus my-text.txt --out studies/mine

    Without a dataset: rotten-tomatoes, pretrained on imdb. Stopped or killed, the same command
    resumes the study.
    """
    if given.get("base") is not None:
        given["base"] = pin_base(given["base"])
    given["arms"] = [pin_base(arm) for arm in given.get("arms", [])]
    smaller: list[int] = []
    if isinstance(given.get("tokens"), list):
        *smaller, given["tokens"] = sorted(given["tokens"])
    from headstart.studies.progress_file import ProgressFile
    from headstart.studies.recipe import make_study_recipe
    from headstart.studies.record import write_results
    from headstart.studies.report.build import write_report
    from headstart.studies.run import StudyRun, join_listeners
    from headstart.studies.token_series import smaller_study
    from headstart.training.trainer import Interrupted

    recipe = make_study_recipe(**with_task(given))
    command = shlex.join(["headstart", *sys.argv[1:]])
    progress = ProgressFile(out)
    with StudyDisplay() as display:
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
            line = f"stopped; finished trainings are saved. Resume with: {command}"
            messages().print(line, soft_wrap=True)
            raise typer.Exit(130) from None
        display.stage(REPORT_STAGE)
        progress.stage(REPORT_STAGE)
        best = write_results(study, command=command)
        written = write_report(out)
        progress.write("finished")
    more = {
        "best": {"arm": best.run.arm, "own_accuracy": best.accuracy},
        "kept": str(out / "best") if best.kept else None,
        "plan": vars(study.plan),
        "minutes": study.minutes,
    }
    _print_report(written, more, json=json)


def plan_document(study: Any) -> dict[str, Any]:
    """Return the plan as `--dry-run --json` prints it."""
    from headstart.studies.executors import find_executor

    resources = study.recipe.resources(study.plan.threads)
    return {
        **vars(study.plan),
        "resources": find_executor(study.recipe.executor).words(resources),
        "arms": study.recipe.arms,
        "trainings": len(study.runs),
        "warnings": study.data.warnings,
    }


def _print_report(written: Any, more: dict[str, Any], *, json: bool) -> None:
    """Print the verdict and where the report is; `more` belongs to the JSON document only."""
    if json:
        document = {"verdict": written.sentences, "advice": written.advice}
        print_json(document | {"report": str(written.path), **more})
    else:
        results().print(" ".join(written.sentences))
        for line in (*written.advice, f"report: {written.path}"):
            write("{line}", line=line)
    if written.missing:
        messages().print(written.missing)


def labels(
    study: Study,
    target: Annotated[
        float,
        option(help="The accuracy that is wanted, from 0 to 1. Default: 0.85.", panel="Study"),
    ] = 0.85,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Estimate how many labels each arm of a study needs for an accuracy.

    headstart labels studies/mine --target 0.85

    A power law is fitted to the study's label budgets, with an interval over seeds and test rows.
    Where the curve or the goal allows no estimate, the reason is printed.
    """
    from headstart.studies.label_goals import labels_words, study_labels
    from headstart.studies.words import series_name

    found, needed = study_labels(study, [target])
    if json:
        arms = [one.document() for one in needed]
        print_json({"target": target, "budgets": found.budgets, "arms": arms})
        return
    write("Labels for an accuracy of {target:g} %, with 95 % intervals:", target=100 * target)
    rows = [
        {"": series_name(one.series, found), " ": labels_words(one.needed, found.budgets[-1])}
        for one in needed
    ]
    results().print(record_table(rows, {"": "", " ": ""}))


def report(study: Study, json: Json = False, debug: Debug = False) -> None:
    """Write report.html, figures/ and tables/ of a study again.

    The page is one file that opens offline; every picture is also an SVG and a PNG, every table
    a CSV file.
    """
    from headstart.studies.report.build import write_report

    with messages().status("computing intervals …"):
        written = write_report(study)
    files = {"figures": written.figures, "tables": written.tables}
    more = {name: [str(path) for path in paths] for name, paths in files.items()}
    _print_report(written, more, json=json)


class StudyDisplay(Display):
    """Shows stages, the plan, how many trainings are done, and a line per finished training."""

    def __init__(self) -> None:
        super().__init__()
        self.study: Any = None
        self.done = 0

    def listener(self) -> Any:
        """Return the callbacks of a study."""
        from headstart.studies.run import StudyListener

        return StudyListener(
            stages=self.stage,
            on_plan=self.on_plan,
            pretraining=self.pretraining,
            on_epoch=self.on_epoch,
            on_done=self.on_done,
            on_start=self.on_start,
        )

    def on_plan(self, study: Any) -> None:
        self.end_stage()
        self.study = study
        self.done = len(study.runs) - len(study.left(study.recipe.arm_objects))
        for line in plan_lines(study):
            messages().print(line, soft_wrap=True)
        if dropped := study.data.overlap_dropped:
            note(
                f"dropped: {dropped:,} documents of the corpus that equal, contain or nearly equal "
                "a validation or test text"
            )
        for warning in study.data.warnings:
            note(warning)

    def pretraining(self, objective: str) -> TrainDisplay:
        self.end_stage()
        messages().print(f"pretraining, {objective}")
        return TrainDisplay()

    def on_start(self, run: Any, node: str) -> None:
        if node:
            messages().print(f"{_name(run)}: started on {node}")

    def on_epoch(self, run: Any, epoch: int, accuracy: float) -> None:
        more = f", {run.arm} {accuracy:.1%}"  # short: the bar is one line
        self.show_training("trainings", self.done, len(self.study.runs), more)

    def on_done(self, run: Any) -> None:
        from headstart.studies.outcomes import read_training

        self.done += 1
        outcome = read_training(self.study.folder, run)
        accuracy = outcome.measure("validation", self.study.data.task.metric)
        line = f"{_name(run)}: validation {accuracy:.1%}"
        if selected := outcome.facts.get("chosen", {}).get("epochs"):
            line += f", epoch {selected}"
        messages().print(line, soft_wrap=True)


def _name(run: Any) -> str:
    arm = " · ".join(filter(None, (run.arm, run.objective)))
    return f"{arm}, {run.labels:,} labels, seed {run.seed}"


def plan_lines(study: Any) -> list[str]:
    """Describe what will be done, how long it takes, and what was reduced."""
    from headstart.studies.executors import find_executor
    from headstart.studies.words import dataset_name

    recipe, plan, task = study.recipe, study.plan, study.data.task
    named = recipe.name or dataset_name(recipe.dataset)
    parts = ", ".join(f"{len(part):,} {name}" for name, part in study.data.splits.parts().items())
    kinds = f"{len(task.labels)} classes"
    if task.name not in ("classification", "pairs"):
        labels = f"{len(task.labels)} labels" if task.labels else "answers in the text"
        kinds = f"{task.name}, {labels}, compared by {metric_name(task.metric)}"
    lines = [
        f"dataset: {named}, {parts} {task.row_name}, {kinds}",
        f"plan: {', '.join(recipe.arms)} × {len(plan.seeds)} seeds × "
        f"{', '.join(f'{n:,}' for n in plan.budgets)} labels = {len(study.runs)} trainings",
    ]
    if recipe.has_networks:
        epochs = ", ".join(f"{plan.epochs[n]} at {n:,}" for n in plan.budgets)
        where = find_executor(recipe.executor).words(recipe.resources(plan.threads))
        lines.append(f"  epochs: {epochs} labels; {plan.jobs} at the same time")
        lines += [f"  on {where}"] if where else []
        if recipe.selection == "budget" and plan.tries > 1:
            lines.append(
                "  every network selects between the usual setting and a longer, faster one, with "
                "the rows of its label budget"
            )
    if plan.pretrain_steps:
        own = recipe.uses_own_texts
        corpus = "the training texts (no --corpus)" if own else ", ".join(recipe.corpus)
        times = "once for all seeds" if recipe.bases == 1 else f"{recipe.bases} times, by seed"
        tokens = plan.pretrain_steps * PretrainConfig.batch_tokens
        objectives = f"{', '.join(recipe.objectives)}, {tokens:,} tokens each, {times}"
        lines.append(f"  pretraining on {corpus}: {objectives}")
        if recipe.task_text and not own:
            lines.append("  the training texts join the corpus, without labels")
    lines.append(f"  about {duration(plan.seconds)}")
    lines += [f"  reduced: {cut}" for cut in plan.cuts]
    if study.is_resumed:
        done = len(study.runs) - len(study.left(recipe.arm_objects))
        lines.append(f"  resumed: {done} of {len(study.runs)} trainings are finished")
    return lines
