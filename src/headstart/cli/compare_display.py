"""How a study looks while it runs: a live table on a terminal, plain lines elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from headstart.cli.display import Display
from headstart.cli.output import styled
from headstart.cli.training_display import TrainingDisplay, duration
from headstart.training.listener import Listener

if TYPE_CHECKING:
    from headstart.studies.outcomes import RunKey
    from headstart.studies.run import StudyListener, StudyRun
    from headstart.tasks.task import Task

SHOWN = 12  # of the latest lines


class CompareDisplay(Display):
    """Shows stages, the plan, and every training's latest epoch. On standard error."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[RunKey, tuple[str, ...]] = {}
        self.nodes: dict[RunKey, str] = {}  # where trainings run, if not on this machine
        self._study: StudyRun | None = None
        self._done = 0

    def listener(self) -> "StudyListener":
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
        self._rest()
        self.console.print(f"{name} …", markup=False)

    def on_plan(self, study: "StudyRun") -> None:
        self._rest()
        self._study = study
        for line in plan_lines(study):
            self.console.print(line, soft_wrap=True)

    @contextmanager
    def pretraining(self, objective: str) -> Iterator[Listener]:
        self._rest()
        self.console.print(styled("[bold]pretraining[/], {objective}", objective=objective))
        with TrainingDisplay() as display:
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
        best = outcome.facts.get("chosen", {}).get("epochs")
        metric = self._study.data.task.metric
        accuracy = f"{outcome.measure('validation', metric):.1%}"
        self._show(run, f"took {best}" if best else "", accuracy, "done")

    def _show(self, run: "RunKey", epoch: str, accuracy: str, state: str) -> None:
        arm = " · ".join(filter(None, (run.arm, run.objective)))
        line = (arm, f"{run.labels:,}", str(run.seed), epoch, accuracy, self.nodes.get(run, ""))
        if not self.console.is_terminal:
            if not self.lines:
                self.console.print(f"{'arm':<22}{'labels':>8}{'seed':>6}{'epoch':>9}  validation")
            self.lines[run] = line
            row = f"{arm:<22}{line[1]:>8}{line[2]:>6}{epoch:>9}  {accuracy:>6} {state}"
            row += f" on {line[-1]}" if line[-1] else ""
            self.console.print(row.rstrip(), markup=False, soft_wrap=True)
            return
        self.lines.pop(run, None)
        self.lines[run] = line
        live = self._live or self._begin_live()
        live.update(self._table())

    def _table(self) -> Table:
        assert self._study is not None
        title = f"{self._done} of {len(self._study.runs)} trainings"
        table = Table(title=title, title_justify="left", box=None, header_style="dim")
        for name in ("arm", "labels", "seed", "epoch", "validation"):
            table.add_column(name, justify="left" if name == "arm" else "right")
        if self.nodes:
            table.add_column("on")
        for line in list(self.lines.values())[-SHOWN:]:
            table.add_row(*line[: len(table.columns)])
        return table


def plan_lines(study: "StudyRun") -> list[str | Text]:
    """What will be done, how long it takes, what was cut, and what the data check found."""
    from headstart.studies.executors import find_executor
    from headstart.studies.words import dataset_name

    recipe, plan = study.recipe, study.plan
    parts = ", ".join(f"{len(part):,} {name}" for name, part in study.data.splits.parts().items())
    task = study.data.task
    named = recipe.name or dataset_name(recipe.dataset)
    dataset = f"{named}, {parts} {task.row_name}, {_labels_of(task)}"
    trainings = (
        f"{', '.join(recipe.arms)} × {len(plan.seeds)} seeds × "
        f"{', '.join(f'{n:,}' for n in plan.budgets)} labels = {len(study.runs)} trainings"
    )
    lines: list[str | Text] = [
        styled("[bold]dataset[/]: {what}", what=dataset),
        styled("[bold]plan[/]: {what}", what=trainings),
    ]
    if recipe.has_networks:
        epochs = ", ".join(f"{plan.epochs[n]} at {n:,}" for n in plan.budgets)
        lines.append(f"  epochs: {epochs} labels; {plan.jobs} side by side")
        where = find_executor(recipe.executor).words(recipe.resources(plan.threads))
        lines += [styled("  on {where}", where=where)] if where else []
        if recipe.choose_by == "budget" and plan.tries > 1:
            lines.append(
                "  every network chooses between the usual setting and a longer, faster one, with "
                "the rows of its own budget"
            )
    if plan.pretrain_steps:
        from headstart.training.recipe import PretrainRecipe

        tokens = plan.pretrain_steps * PretrainRecipe.batch_tokens
        own = recipe.uses_own_texts
        corpus = "the training texts (no --corpus)" if own else ", ".join(recipe.corpus)
        join = "; the training texts join, without labels"
        lines.append(
            f"  pretraining on {corpus}: {', '.join(recipe.objectives)}, "
            f"{tokens:,} tokens each, {_times(recipe.bases)}"
            + (join if recipe.task_text == "on" and not own else "")
        )
    lines.append(styled("  about [bold]{time}[/]", time=duration(plan.seconds)))
    lines += [styled("  [yellow]cut[/]: {cut}", cut=cut) for cut in plan.cuts]
    if study.is_resumed:
        done = len(study.runs) - len(study.left(recipe.arm_objects))
        lines.append(f"  resumed: {done} of {len(study.runs)} trainings are finished")
    if study.data.overlap_dropped:
        lines.append(
            styled(
                "[yellow]note:[/] {count:,} documents of the corpus equal, contain or nearly "
                "equal a validation or test text and are left out",
                count=study.data.overlap_dropped,
            )
        )
    notes = [styled("[yellow]note:[/] {text}", text=text) for text in study.data.warnings]
    return [*lines, *notes]


def _times(bases: int) -> str:
    return "once for all seeds" if bases == 1 else f"{bases} times, from different seeds"


def _labels_of(task: "Task[Any]") -> str:
    if task.name in ("classification", "pairs"):
        return f"{len(task.labels)} classes"
    kinds = f"{len(task.labels)} labels" if task.labels else "answers in the text"
    return f"{task.name}, {kinds}, compared by {task.metric.replace('_', '-').replace('f1', 'F1')}"
