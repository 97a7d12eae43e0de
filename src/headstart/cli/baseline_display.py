"""Baselines beside a run's numbers: a line each, or the reason why there are none."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstart.cli.output import messages, styled
from headstart.errors import HeadstartError

COLUMNS = 2  # more would not fit beside each other


def find_baselines(run: Path, task: Any, part: Any = None) -> tuple[list[dict[str, Any]], str]:
    """The baselines of a run as documents; where they cannot be made, none and the reason."""
    from headstart.baselines.task_baselines import baselines_of_run, documents

    try:
        with messages().status("computing baselines …"):
            return documents(baselines_of_run(run, task, part)), ""
    except (HeadstartError, OSError) as problem:  # the dataset may have moved since the training
        return [], str(getattr(problem, "what", problem))


def show_baselines(
    console: Console, found: Sequence[dict[str, Any]], problem: str, *, names: Sequence[str]
) -> None:
    """A table with a line per baseline: the first of the metrics `names`, with their intervals."""
    if problem:
        console.print(styled("no baselines: {problem}", problem=problem), soft_wrap=True)
    if not found:
        return
    known = [name for name in names if any(name in one["metrics"] for one in found)]
    columns = known[:COLUMNS]
    table = Table("beside it", *map(spoken, columns), "", box=None, header_style="dim")
    table.pad_edge = False
    for one in found:
        cells = [interval(one["metrics"].get(name)) for name in columns]
        table.add_row(one["name"], *cells, Text(one["about"], style="dim"))
    console.print(table, "")


def interval(metric: dict[str, float] | None) -> str:
    """A metric with its interval, in percent."""
    return "" if metric is None else "{value:.1%} ({low:.1%} to {high:.1%})".format(**metric)


def spoken(name: str) -> str:
    """A metric's name as people say it.

    Example
    -------
    >>> spoken("macro_f1"), spoken("exact_match")
    ('macro-F1', 'exact match')
    """
    return name.replace("_f1", "-F1").replace("f1", "F1").replace("_", " ")
