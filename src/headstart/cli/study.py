"""`headstart compare`, `labels` and `report`, and how a study looks while it runs."""

import math
import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.arms import arm_label
from headstart.cli import console
from headstart.cli.options import Debug, DryRun, Json, from_config, option, with_task
from headstart.cli.training import TrainDisplay
from headstart.config import StudyConfig, pin_base
from headstart.errors import HeadstartError
from headstart.evaluation import metric_name
from headstart.study.progress import StudyCallback

COLUMNS = ("arm", "labels", "95 % CI")  # of the labels that a goal needs
Study = Annotated[Path, typer.Argument(help="The folder of a study: the --out of compare.")]


@from_config(StudyConfig)
def compare(
    given: dict[str, Any],
    out: Annotated[Path, option(help="The study's folder. Default: studies/compare.")] = Path(
        "studies/compare"
    ),
    plan: Annotated[
        Path | None,
        option(
            help="A plan that --dry-run --json printed; by default one is made.", metavar="FILE"
        ),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare ways to get a classifier, with confidence intervals, and write a report.

    headstart compare my-labels.csv --corpus my-text.txt --out studies/mine

    Without a dataset, the study uses rotten-tomatoes and pretrains on imdb. To resume an
    interrupted study, repeat the command.
    """
    if given.get("base") is not None:
        given["base"] = pin_base(given["base"])
    given["arms"] = [pin_base(arm) for arm in given.get("arms", [])]
    config = StudyConfig.create(**with_task(given))
    from headstart.study.progress import ProgressFile, StudyCallbacks
    from headstart.study.report.build import build_report
    from headstart.study.study import finish_study, plan_study
    from headstart.training.trainer import Interrupted

    progress = ProgressFile(out)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    with StudyDisplay() as display:
        callback = StudyCallbacks([display, progress])
        try:
            study = plan_study(config, out, callback=callback, plan=plan)
            if dry_run:
                display.on_plan(study)
                if json:
                    more = {"trainings": len(study.trainings), "warnings": study.data.notes}
                    console.print_json({**vars(study.plan), "arms": config.arms, **more})
                return
            finish_study(study, callback, command=shlex.join(["headstart", *sys.argv[1:]]))
        except (Interrupted, KeyboardInterrupt):
            console.message(
                "stopped; finished trainings are saved. Resume: {program} {arguments}",
                program=console.program(),
                arguments=shlex.join(sys.argv[1:]),
            )
            raise typer.Exit(130) from None
        finally:
            signal.signal(signal.SIGTERM, before)
        callback.stage("computing intervals and writing the report")
        written = build_report(out)
        progress.write("finished")
    _print_report(written, {"plan": vars(study.plan), "minutes": study.minutes}, json=json)


def _print_report(written: Any, more: dict[str, Any], *, json: bool) -> None:
    """Print the recommendation, the verdict and the report's path; `more` is for JSON only."""
    advice, verdict = written.recommendation, written.verdict
    if json:
        console.print_json(
            {
                "take": dict(zip(("arm", "objective"), advice.series, strict=True)),
                "recommendation": advice.sentences,
                "command": advice.command,
                "verdict": verdict.sentences,
                "details": verdict.details,
                "report": str(written.path),
                **more,
            }
        )
    else:
        console.write(
            "[bold]{advice}[/]\n{verdict}\nnext: {command}\nreport: {path}",
            advice="\n".join(advice.sentences),
            verdict="\n".join(verdict.sentences),
            command=advice.command.replace("headstart predict", f"{console.program()} predict", 1),
            path=written.path,
        )


def labels(
    study: Study,
    target: Annotated[
        float,
        option(
            help="The accuracy to reach, from 0 to 1. Default: 0.85.",
            panel="Study",
        ),
    ] = 0.85,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Estimate how many labels each arm of a study needs for an accuracy.

    headstart labels studies/mine --target 0.85

    A power law is fitted to the study's label budgets, with an interval over seeds and test rows.
    If the number cannot be estimated, the reason is printed.
    """
    if not 0.001 <= target <= 0.999:
        raise HeadstartError(
            f"--target is {target:g}; it must be from 0.001 to 0.999", fix="write 0.85 for 85 %"
        )
    from headstart.study.analysis import Analysis
    from headstart.study.report.build import labels_cell
    from headstart.study.results import read_results
    from headstart.study.verdict import series_name

    found = read_results(study)
    needed = Analysis(found).labels_needed(target)
    arms: list[dict[str, Any]] = []
    for (arm, objective), one in needed.items():
        reason = one if isinstance(one, str) else ""
        ends = [math.inf] * 3 if isinstance(one, str) else [one.value, one.low, one.high]
        labels, low, high = (round(end) if math.isfinite(end) else None for end in ends)
        arms.append(
            {
                "arm": arm,
                "objective": objective,
                "labels": labels,
                "low": low,
                "high": high,
                "reason": reason,
            }
        )
    budgets, metric = found.about["budgets"], metric_name(found.about["metric"])
    goal = f"{100 * target:g} % {metric}"
    if json:
        console.print_json({"target": target, "budgets": budgets, "arms": arms})
    elif all(one["reason"] for one in arms):
        reasons = dict.fromkeys(one["reason"] for one in arms)
        console.write("No estimate for {goal}: {reasons}.", goal=goal, reasons="; ".join(reasons))
    else:
        console.write("Labels for {goal}:", goal=goal)
        cells = [
            (series_name(series, found), *labels_cell(one, budgets[-1]))
            for series, one in needed.items()
        ]
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in cells]
        console.show(console.record_table(rows, dict.fromkeys(COLUMNS, "")))


def report(study: Study, json: Json = False, debug: Debug = False) -> None:
    """Write report.html, figures/ and tables/ of a study again.

    The page is one file that opens offline; every picture is also an SVG file, and scores and
    differences with their intervals are CSV files.
    """
    from headstart.study.report.build import build_report

    with console.messages().status("computing intervals …"):
        written = build_report(study)
    _print_report(written, {}, json=json)


class StudyDisplay(TrainDisplay, StudyCallback):
    """Shows the plan, bars for pretraining and trainings, and the mean score of finished arms."""

    training = "pretraining"

    def on_plan(self, study: Any) -> None:
        self.end_stage()
        self._study = study
        for line in plan_lines(study):
            console.message("{line}", line=line)
        for one in study.data.notes:
            console.note(one)

    def on_start(self, run: Any, step: int) -> None:
        """Print nothing, because the plan of the study is printed."""

    def on_evaluation(self, state: Any) -> None:
        """Print nothing, because the bar shows the loss, and the report has the curve."""

    def on_job(
        self, job: Any, event: str, epoch: int | None = None, value: float | None = None
    ) -> None:
        study, metric = self._study, self._study.data.task.metric
        done = [one for one in study.trainings if one in study.results]
        if self.name != "trainings":
            self._trainings = self.stage("trainings", len(done))
        objective = job.objective if len(study.config.objectives) > 1 else ""
        what = (
            " · ".join(filter(None, [arm_label(job.arm), objective])) + f", {job.labels:,} labels"
        )
        left = study.seconds_left()  # None before the first network is trained
        self._trainings(
            len(done),
            len(study.trainings),
            f", {len(done)} of {len(study.trainings)} trainings, {what}",
            study.plan.seconds if left is None else left,
        )
        same = [one for one in done if _cell(one) == _cell(job)]
        if event == "done" and job in same and len(same) == len(study.plan.places):
            scores = [study.results[one].value("validation", metric) for one in same]
            console.message(
                "{what}: validation {metric} {mean:.1%}, mean of {count:,} trainings",
                what=what,
                metric=metric_name(metric),
                mean=sum(scores) / len(scores),
                count=len(same),
            )


def _cell(job: Any) -> tuple[str, str, int]:
    return (job.arm, job.objective, job.labels)


def plan_lines(study: Any) -> list[str]:
    """Describe what will be done, how long it takes, and what was reduced."""
    from headstart.study.data import split_sizes
    from headstart.study.study import dataset_name

    config, plan, task = study.config, study.plan, study.data.task
    parts = ", ".join(f"{count:,} {name}" for name, count in split_sizes(study.data).items())
    folds = f" × {plan.folds} folds" if plan.folds > 1 else ""
    lines = [
        f"dataset: {config.name or dataset_name(config.dataset)}, {parts} {task.row_name}, "
        f"compared by {metric_name(task.metric)}",
        f"plan: {', '.join(config.arms)} × {len(plan.seeds)} seeds{folds} × "
        f"{', '.join(f'{n:,}' for n in plan.budgets)} labels = {len(study.trainings)} trainings, "
        f"{plan.jobs} at the same time; about {console.duration(plan.seconds)}",
    ]
    if plan.pretrain_tokens:
        corpus = ", ".join(config.corpus) or "the training texts (no --corpus)"
        bases = len(plan.text_places(config))
        tokens = f"{plan.pretrain_tokens:,} tokens" + (
            f" for each of {bases} bases" if bases > 1 else ""
        )
        lines.append(f"  pretraining on {corpus}: {', '.join(config.objectives)}, {tokens}")
    lines += [f"  reduced: {cut}" for cut in plan.cuts]
    if study.resumed:
        done = sum(job in study.results for job in study.trainings)
        lines.append(f"  resumed: {done} of {len(study.trainings)} trainings are finished")
    return lines
