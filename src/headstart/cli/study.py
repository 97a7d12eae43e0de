"""`headstart compare`, `labels` and `report`, and how a study looks while it runs."""

import math
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.table import Table

from headstart.arms import arm_label
from headstart.cli.console import (
    duration,
    messages,
    note,
    print_json,
    record_table,
    results,
    write,
)
from headstart.cli.options import Debug, DryRun, Json, from_config, option, with_task
from headstart.cli.training import TrainDisplay
from headstart.config import PretrainConfig, StudyConfig, pin_base
from headstart.errors import HeadstartError
from headstart.evaluation import metric_name
from headstart.study.progress import StudyCallback

TRIES = (
    "  every network selects between the usual learning rate and a higher one (with more epochs, "
    "unless --epochs is given), with the rows of its label budget"
)
REPORT_STAGE = "computing intervals and writing the report"
Study = Annotated[Path, typer.Argument(help="The folder of a study: the --out of compare.")]


@from_config(StudyConfig)
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
    config = StudyConfig.create(**with_task(given))
    from headstart.study.progress import ProgressFile, StudyCallbacks
    from headstart.study.report.build import build_report
    from headstart.study.study import finish_study, plan_study
    from headstart.training.trainer import Interrupted

    command = shlex.join(["headstart", *sys.argv[1:]])
    progress = ProgressFile(out)
    with StudyDisplay() as display:
        callback = StudyCallbacks([display, progress])
        try:
            study = plan_study(config, out, callback=callback, plan=plan)
            if dry_run:
                display.on_plan(study)
                if json:
                    trainings, warnings = len(study.trainings), study.data.notes
                    more = {"arms": config.arms, "trainings": trainings, "warnings": warnings}
                    print_json({**vars(study.plan), **more})
                return
            finish_study(study, callback, command=command)
        except (Interrupted, KeyboardInterrupt):
            line = f"stopped; finished trainings are saved. Resume with: {command}"
            messages().print(line, soft_wrap=True)
            raise typer.Exit(130) from None
        callback.stage(REPORT_STAGE)
        written = build_report(out)
        progress.write("finished")
    more = {"plan": vars(study.plan), "minutes": study.minutes}
    _print_report(written, more, json=json)


def _print_report(written: Any, more: dict[str, Any], *, json: bool) -> None:
    """Print the recommendation, the verdict and the report's path; `more` is for JSON only."""
    advice, verdict = written.recommendation, written.verdict
    if json:
        document = {
            "take": dict(zip(("arm", "objective"), advice.series, strict=True)),
            "recommendation": advice.sentences,
            "command": advice.command,
            "verdict": verdict.sentences,
            "details": verdict.details,
            "report": str(written.path),
        }
        print_json(document | more)
    else:
        write("[bold]{line}[/]", line=" ".join(advice.sentences))
        write("{line}", line=" ".join(verdict.sentences))
        write("{line}", line=advice.command)
        write("report: {path}", path=written.path)


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
    from headstart.study.analysis import Analysis
    from headstart.study.report.build import labels_cell
    from headstart.study.results import read_results
    from headstart.study.verdict import series_name

    if not 0 < target < 1:
        raise HeadstartError(
            f"a score of {target:g} cannot be a goal", fix="write 85 % as --target 0.85"
        )
    found = read_results(study)
    needed = Analysis(found).labels_needed(target)
    if json:
        arms = [_labels_document(*one) for one in needed.items()]
        print_json({"target": target, "budgets": found.about["budgets"], "arms": arms})
        return
    metric, most = metric_name(found.about["metric"]), found.about["budgets"][-1]
    goal = f"{100 * target:g} % {metric}"
    if all(isinstance(one, str) for one in needed.values()):
        means = {one: found.scores(*one, most).mean() for one in needed}
        best = max(means, key=lambda one: means[one])
        write(
            "No estimate for {goal}: {reason}; the highest test score is {score:.1%} ({name}, "
            "{most:,} labels).",
            goal=goal,
            reason=needed[best],
            score=means[best],
            name=series_name(best, found),
            most=most,
        )
        return
    write("Labels for {goal}, with 95 % intervals:", goal=goal)
    rows = []
    for series, one in needed.items():
        labels, more = labels_cell(one, most)
        words = f"about {labels} ({more})" if labels else more
        rows.append({"": series_name(series, found), " ": words})
    results().print(record_table(rows, {"": "", " ": ""}))


def _labels_document(series: tuple[str, str], needed: Any) -> dict[str, Any]:
    """Return an arm's labels as plain data; an unbounded end is None."""
    reason = needed if isinstance(needed, str) else ""
    ends = (None, None, None) if reason else (needed.value, needed.low, needed.high)
    shown = [None if end is None or math.isinf(end) else round(end) for end in ends]
    return {
        **dict(zip(("arm", "objective"), series, strict=True)),
        **dict(zip(("labels", "low", "high"), shown, strict=True)),
        "reason": reason,
    }


def report(study: Study, json: Json = False, debug: Debug = False) -> None:
    """Write report.html, figures/ and tables/ of a study again.

    The page is one file that opens offline; every picture is also an SVG file, every table a
    CSV file.
    """
    from headstart.study.report.build import build_report

    with messages().status("computing intervals …"):
        written = build_report(study)
    files = {"figures": written.figures, "tables": written.tables}
    more = {name: [str(path) for path in paths] for name, paths in files.items()}
    _print_report(written, more, json=json)


class StudyDisplay(TrainDisplay, StudyCallback):
    """Shows the plan, pretraining as a bar, and trainings as one table of arms × label budgets.

    A cell has the mean validation score of the finished seeds, and how many these are. Where
    standard error is not a terminal, a cell is printed as a line once all its seeds are finished.
    """

    def __init__(self) -> None:
        super().__init__()
        self.study: Any = None
        self.running: dict[tuple[str, str, int], str] = {}
        self._live: Live | None = None

    def on_plan(self, study: Any) -> None:
        self.end_stage()
        self.study = study
        for line in plan_lines(study):
            messages().print(line, soft_wrap=True)
        if study.data.dropped:
            from headstart.data.overlap import overlap_sentence

            note(overlap_sentence(study.data.dropped))
        for one in study.data.notes:
            note(one)

    def on_pretraining(self, objective: str, number: int) -> None:
        self.end_stage()
        messages().print(f"pretraining, {objective}" + (f", base {number + 1}" if number else ""))

    def on_start(self, run: Any, step: int) -> None:
        self.end_stage()

    def on_evaluation(self, state: Any) -> None:
        """Print nothing: the bar shows the loss, and the report the curve."""

    def on_job(
        self, job: Any, event: str, epoch: int | None = None, value: float | None = None
    ) -> None:
        key = _cell(job)
        self.running[key] = f"epoch {epoch}" if epoch else "…"
        if event == "done":
            self.running.pop(key)
            if not messages().is_terminal and self._is_full(key):
                where = f"{self._name(key)}, {job.labels:,} labels"
                messages().print(f"{where}: {self._metric()} {self._words(key)}")
        if self._live is None and messages().is_terminal:
            self.end_stage()
            self._live = Live(
                get_renderable=self.table,
                console=messages(),
                transient=True,
                refresh_per_second=4,
            )
            self._bar.enter_context(self._live)

    def end_stage(self) -> None:
        """End the bar or the table; a complete table stays on the screen."""
        shown, self._live = self._live, None
        super().end_stage()
        if shown is not None and all(map(self._is_full, map(_cell, self.study.trainings))):
            messages().print(self.table())

    def table(self) -> Table:
        """Make the table of all trainings so far."""
        budgets, trainings = self.study.plan.budgets, self.study.trainings
        done = sum(job in self.study.results for job in trainings)
        left = self.study.seconds_left()
        more = f", about {duration(left)} left" if left else ""
        finished = f"{done} of {len(trainings)} trainings{more}"
        title = f"mean {self._metric()}; {finished}"
        columns = {title: "", **{f"{labels:,} labels": "" for labels in budgets}}
        rows = []
        for arm, objective in dict.fromkeys((job.arm, job.objective) for job in trainings):
            cells = {f"{n:,} labels": self._words((arm, objective, n)) for n in budgets}
            rows.append({title: self._name((arm, objective, 0)), **cells})
        return record_table(rows, columns)

    def _metric(self) -> str:
        """Name the scores that are shown: a study in folds has no validation part."""
        metric = metric_name(self.study.data.task.metric)
        return metric if self.study.plan.folds > 1 else f"validation {metric}"

    def _is_full(self, key: tuple[str, str, int]) -> bool:
        return len(self._scores(key)) == len(self.study.plan.places)

    def _scores(self, key: tuple[str, str, int]) -> list[float]:
        """Return the validation scores of a cell's finished trainings."""
        finished, metric = self.study.results.items(), self.study.data.task.metric
        return [one.value("validation", metric) for job, one in finished if _cell(job) == key]

    def _words(self, key: tuple[str, str, int]) -> str:
        """Write a cell: the mean, the finished seeds, and what is running."""
        values = self._scores(key)
        mean = f"{sum(values) / len(values):.1%}" if values else "–"
        seeds = f" {len(values)}/{len(self.study.plan.places)}" if values else ""
        running = f" {self.running[key]}" if key in self.running else ""
        return f"{mean}{seeds}{running}"

    def _name(self, key: tuple[str, str, int]) -> str:
        several = len(self.study.config.objectives) > 1 and key[1]
        return f"{arm_label(key[0])} · {key[1]}" if several else arm_label(key[0])


def _cell(job: Any) -> tuple[str, str, int]:
    return (job.arm, job.objective, job.labels)


def plan_lines(study: Any) -> list[str]:
    """Describe what will be done, how long it takes, and what was reduced."""
    from headstart.study.data import split_sizes
    from headstart.study.plan import find_epochs
    from headstart.study.study import dataset_name

    config, plan, task = study.config, study.plan, study.data.task
    named = config.name or dataset_name(config.dataset)
    parts = ", ".join(f"{count:,} {name}" for name, count in split_sizes(study.data).items())
    labels = f", {len(task.labels)} labels" if task.labels else ""
    folds = f" × {plan.folds} folds" if plan.folds > 1 else ""
    lines = [
        f"dataset: {named}, {parts} {task.row_name}{labels}, compared by "
        f"{metric_name(task.metric)}",
        f"plan: {', '.join(config.arms)} × {len(plan.seeds)} seeds{folds} × "
        f"{', '.join(f'{n:,}' for n in plan.budgets)} labels = {len(study.trainings)} trainings, "
        f"{plan.jobs} at the same time",
    ]
    if config.has_networks:
        epochs = ", ".join(f"{find_epochs(config, n)} at {n:,}" for n in plan.budgets)
        lines.append(f"  epochs: {epochs} labels")
        if config.selection == "budget" and plan.tries > 1:
            lines.append(TRIES)
    if plan.pretrain_steps:
        corpus = ", ".join(config.corpus) or "the training texts (no --corpus)"
        times = len(plan.text_places(config))
        tokens = f"{times} × {plan.pretrain_steps * PretrainConfig.batch_tokens:,} tokens"
        lines.append(f"  pretraining on {corpus}: {', '.join(config.objectives)}, {tokens}")
    lines.append(f"  about {duration(plan.seconds)}")
    lines += [f"  reduced: {cut}" for cut in plan.cuts]
    if study.resumed:
        done = sum(job in study.results for job in study.trainings)
        lines.append(f"  resumed: {done} of {len(study.trainings)} trainings are finished")
    return lines
