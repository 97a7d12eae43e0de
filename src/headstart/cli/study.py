"""`headstart compare`, `labels` and `report`, and how a study looks while it runs."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headstart.base_source import pin_base
from headstart.cli.console import (
    Display,
    duration,
    messages,
    metric_name,
    note,
    plain_table,
    print_json,
    results,
    styled,
)
from headstart.cli.options import Debug, DryRun, Json, from_config, option
from headstart.cli.training import TrainDisplay
from headstart.config import StudyConfig
from headstart.training.callbacks import Callback

if TYPE_CHECKING:
    from headstart.studies.outcomes import RunKey
    from headstart.studies.run import StudyListener, StudyRun

REPORT_STAGE = "computing intervals and writing the report"
SHOWN = 12  # of the latest lines
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

    recipe = make_study_recipe(**given)
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
        display.on_stage(REPORT_STAGE)
        progress.stage(REPORT_STAGE)
        best = write_results(study, command=command)
        written = write_report(out)
        progress.write("finished")
    if json:
        document = {
            "verdict": written.sentences,
            "advice": written.advice,
            "report": str(written.path),
            "best": {"arm": best.run.arm, "own_accuracy": best.accuracy},
            "kept": str(out / "best") if best.kept else None,
            "plan": vars(study.plan),
            "minutes": study.minutes,
        }
        print_json(document)
    else:
        _print_verdict(written)
    if written.missing:
        messages().print(written.missing)


def plan_document(study: "StudyRun") -> dict[str, Any]:
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


def _print_verdict(written: Any) -> None:
    console = results()
    console.print(" ".join(written.sentences))
    for line in (*written.advice, f"report: {written.path}"):
        console.print(line, soft_wrap=True)


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
    console = results()
    console.print(f"Labels for an accuracy of {100 * target:g} %, with 95 % intervals:")
    names = [series_name(one.series, found) for one in needed]
    width = max(map(len, names), default=0)
    for name, one in zip(names, needed, strict=True):
        words = labels_words(one.needed, found.budgets[-1])
        console.print(f"  {name:<{width}}  {words}", soft_wrap=True)


def report(study: Study, json: Json = False, debug: Debug = False) -> None:
    """Write report.html, figures/ and tables/ of a study again.

    The page is one file that opens offline; every picture is also an SVG and a PNG, every table
    a CSV file.
    """
    from headstart.studies.report.build import write_report

    with messages().status("computing intervals …"):
        written = write_report(study)
    if json:
        document = {
            "report": str(written.path),
            "figures": [str(path) for path in written.figures],
            "tables": [str(path) for path in written.tables],
            "verdict": written.sentences,
            "advice": written.advice,
        }
        print_json(document)
    else:
        _print_verdict(written)
    if written.missing:
        messages().print(written.missing)


class StudyDisplay(Display):
    """Shows stages, the plan, and every training's latest epoch: a live table on a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[RunKey, tuple[str, ...]] = {}
        self.nodes: dict[RunKey, str] = {}  # where trainings run, if not on this machine
        self._study: StudyRun | None = None
        self._done = 0

    def listener(self) -> "StudyListener":
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

    def on_stage(self, name: str) -> None:
        self.end_stage()
        self.console.print(f"{name} …")

    def on_plan(self, study: "StudyRun") -> None:
        self.end_stage()
        self._study = study
        for line in plan_lines(study):
            self.console.print(line, soft_wrap=True)

    @contextmanager
    def pretraining(self, objective: str) -> Iterator[Callback]:
        self.end_stage()
        self.console.print(styled("[bold]pretraining[/], {objective}", objective=objective))
        with TrainDisplay() as display:
            yield display

    def on_start(self, run: "RunKey", node: str) -> None:
        if node:
            self.nodes[run] = node
            self._show(run, "", "", "started")

    def on_epoch(self, run: "RunKey", epoch: int, accuracy: float) -> None:
        self._show(run, str(epoch), f"{accuracy:.1%}", "")

    def on_done(self, run: "RunKey") -> None:
        from headstart.studies.outcomes import read_training

        assert self._study is not None
        self._done += 1
        outcome = read_training(self._study.folder, run)
        selected = outcome.facts.get("chosen", {}).get("epochs")
        accuracy = outcome.measure("validation", self._study.data.task.metric)
        self._show(run, f"took {selected}" if selected else "", f"{accuracy:.1%}", "done")

    def _show(self, run: "RunKey", epoch: str, accuracy: str, state: str) -> None:
        arm = " · ".join(filter(None, (run.arm, run.objective)))
        line = (arm, f"{run.labels:,}", str(run.seed), epoch, accuracy, self.nodes.get(run, ""))
        first = not self.lines
        self.lines.pop(run, None)
        self.lines[run] = line  # at the end: the latest
        if self.console.is_terminal:
            live = self._live or self.begin_live()
            live.update(self._table())
            return
        if first:
            self.console.print(f"{'arm':<22}{'labels':>8}{'seed':>6}{'epoch':>9}  validation")
        row = f"{arm:<22}{line[1]:>8}{line[2]:>6}{epoch:>9}  {accuracy:>6} {state}"
        row += f" on {line[-1]}" if line[-1] else ""
        self.console.print(row.rstrip(), soft_wrap=True)

    def _table(self) -> Table:
        assert self._study is not None
        title = f"{self._done} of {len(self._study.runs)} trainings"
        table = plain_table(title=title, title_justify="left", pad_edge=True)
        for name in ("arm", "labels", "seed", "epoch", "validation"):
            table.add_column(name, justify="left" if name == "arm" else "right")
        if self.nodes:
            table.add_column("on")
        for line in list(self.lines.values())[-SHOWN:]:
            table.add_row(*line[: len(table.columns)])
        return table


def plan_lines(study: "StudyRun") -> list[str | Text]:
    """Describe what will be done, how long it takes, what was reduced, and what the data has."""
    from headstart.studies.executors import find_executor
    from headstart.studies.words import dataset_name

    recipe, plan, task = study.recipe, study.plan, study.data.task
    parts = ", ".join(f"{len(part):,} {name}" for name, part in study.data.splits.parts().items())
    kinds = f"{len(task.labels)} classes"
    if task.name not in ("classification", "pairs"):
        labels = f"{len(task.labels)} labels" if task.labels else "answers in the text"
        kinds = f"{task.name}, {labels}, compared by {metric_name(task.metric)}"
    named = recipe.name or dataset_name(recipe.dataset)
    trainings = (
        f"{', '.join(recipe.arms)} × {len(plan.seeds)} seeds × "
        f"{', '.join(f'{n:,}' for n in plan.budgets)} labels = {len(study.runs)} trainings"
    )
    lines: list[str | Text] = [
        styled("[bold]dataset[/]: {what}", what=f"{named}, {parts} {task.row_name}, {kinds}"),
        styled("[bold]plan[/]: {what}", what=trainings),
    ]
    if recipe.has_networks:
        epochs = ", ".join(f"{plan.epochs[n]} at {n:,}" for n in plan.budgets)
        lines.append(f"  epochs: {epochs} labels; {plan.jobs} at the same time")
        where = find_executor(recipe.executor).words(recipe.resources(plan.threads))
        lines += [f"  on {where}"] if where else []
        if recipe.selection == "budget" and plan.tries > 1:
            lines.append(
                "  every network selects between the usual setting and a longer, faster one, with "
                "the rows of its label budget"
            )
    if plan.pretrain_steps:
        lines.append(_pretraining_line(recipe, plan))
    lines.append(styled("  about [bold]{time}[/]", time=duration(plan.seconds)))
    lines += [styled("  [yellow]reduced[/]: {cut}", cut=cut) for cut in plan.cuts]
    if study.is_resumed:
        done = len(study.runs) - len(study.left(recipe.arm_objects))
        lines.append(f"  resumed: {done} of {len(study.runs)} trainings are finished")
    notes = list(study.data.warnings)
    if study.data.overlap_dropped:
        dropped = f"{study.data.overlap_dropped:,} documents of the corpus equal, contain or "
        notes.insert(0, dropped + "nearly equal a validation or test text and are dropped")
    return [*lines, *map(note, notes)]


def _pretraining_line(recipe: Any, plan: Any) -> str:
    from headstart.config import PretrainConfig

    tokens = plan.pretrain_steps * PretrainConfig.batch_tokens
    times = "once for all seeds" if recipe.bases == 1 else f"{recipe.bases} times, by seed"
    own = recipe.uses_own_texts
    corpus = "the training texts (no --corpus)" if own else ", ".join(recipe.corpus)
    joins = recipe.task_text and not own
    join = "; the training texts join, without labels" if joins else ""
    return (
        f"  pretraining on {corpus}: {', '.join(recipe.objectives)}, {tokens:,} tokens each, "
        f"{times}{join}"
    )
