"""Generate commands from the config classes, and declare the options that are not settings.

Options arrive as text and are converted here, so that every bad value is in one message, before
anything heavy is imported.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.console import note
from headstart.config import Config, Setting, read_toml, value_problems
from headstart.errors import HeadstartError

PANELS = ("Data", "Model", "Study", "Training", "Machine", "Output", "Advanced")
METAVARS = {int: "INTEGER", float: "NUMBER", str: "TEXT"}
UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}


def option(*names: str, panel: str = "Output", **more: Any) -> Any:
    """Declare an option that is not a setting; `more` are parameters of `typer.Option`."""
    return typer.Option(*names, rich_help_panel=panel, show_default=False, **more)


Json = Annotated[bool, option("--json", help="Print one JSON document and nothing else.")]
Debug = Annotated[bool, option("--debug", help="Show the traceback of an error.", panel="Advanced")]
Resume = Annotated[bool, option("--resume", help="Continue the interrupted run in --out.")]
DryRun = Annotated[bool, option("--dry-run", help="Show the plan and stop.")]
Baselines = Annotated[
    bool,
    option(
        "--baselines/--no-baselines",
        help="Compare with the most frequent label and a linear model (TF-IDF), on the same rows. "
        "Default: --baselines.",
    ),
]
CONFIG_FILE = option(
    "--config",
    help="A TOML file with settings; options on the command line have priority.",
    metavar="FILE",
)


def from_config(
    config_class: type[Config], *, only: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command whose settings are those of a config class.

    The function's first parameter is `given`: the settings that were given, by name, checked one
    by one. Its other parameters are options that are not settings. If the class belongs to a
    command, and not `only` some settings are taken, `--config FILE` is added.
    """
    settings = config_class.settings()
    if only:
        settings = [replace(one, advanced=False) for one in settings if one.name in only]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function)
        _, *others = signature.parameters.values()

        def command(*, config: Path | None = None, **values: Any) -> None:
            given = {} if config is None else read_toml(config)
            for one in settings:
                written = values.pop(one.name)
                if written not in (None, []):
                    given[one.name] = _value(one, written)
            # `Config.create` rejects unknown names of the file.
            if problems := value_problems(settings, given, options=True):
                raise HeadstartError(
                    "; ".join(problems),
                    fix=f"headstart {function.__name__} --help lists the settings and values",
                    code="config",
                )
            function(given, **values)

        kinds = {one.name: _declare(one) for one in settings}
        if config_class.command and not only:
            kinds["config"] = Annotated[Path | None, CONFIG_FILE]
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [  # None means that the option was not given
            inspect.Parameter(name, keyword, default=None, annotation=kind)
            for name, kind in kinds.items()
        ]
        parameters += [one.replace(kind=keyword) for one in others]
        command.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=sorted(parameters, key=_panel_number)
        )
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = {}  # those of the signature count
        return command

    return decorate


def _panel_number(parameter: inspect.Parameter) -> int:
    panel = parameter.annotation.__metadata__[0].rich_help_panel
    return 0 if panel is None else PANELS.index(panel)


def _declare(one: Setting) -> Any:
    """Return the annotation of a setting: its type on the command line, and its option."""
    panel = "Advanced" if one.advanced else one.panel
    if one.argument:
        return Annotated[list[str] | None, typer.Argument(help=help_text(one), show_default=False)]
    if one.kind is bool:
        flags = f"{one.option}/--no-{one.option[2:]}"
        return Annotated[bool | None, option(flags, help=help_text(one), panel=panel)]
    declared = option(one.option, help=help_text(one), panel=panel, metavar=METAVARS[one.kind])
    return Annotated[list[str] | None, declared] if one.is_list else Annotated[str | None, declared]


def help_text(one: Setting) -> str:
    """Describe a setting with its choices, bounds and default.

    >>> help_text(Setting("warmup", float, 0.1, "Share of the steps.", minimum=0, maximum=1))
    'Share of the steps. From 0 to 1. Default: 0.1.'
    """
    parts = [one.help]
    if not set(one.choices) <= set(re.findall(r"[\w+-]+", one.help)):
        parts.append(f"Choices: {', '.join(one.choices)}.")
    if 1 in (one.maximum, one.below):
        parts.append("From 0 to 1.")
    if one.default not in (None, []) and "by default" not in one.help:
        shown = {True: "yes", False: "no"}[one.default] if one.kind is bool else one.default
        parts.append(f"Default: {shown}.")
    return " ".join(parts)


def _value(one: Setting, text: Any) -> Any:
    """Convert one option; what cannot be converted stays text, which `Setting.problem` rejects."""
    if one.kind is bool:
        return text
    if one.is_list:
        return [_number(one, item) for part in text for item in _items(part, one)]
    return _number(one, text)


def _items(text: str, one: Setting) -> list[str]:
    """Split at commas, except the name of a file."""
    if one.argument or Path(text).exists():
        return [text]
    return [item.strip() for item in text.split(",") if item.strip()]


def _number(one: Setting, text: str) -> Any:
    """Convert a number: `1_000`, `2e-3`, and for amounts `0.5M`."""
    unit = UNITS.get(text[-1:].lower()) if one.amount else None
    try:
        if unit is not None:
            return round(float(text[:-1]) * unit)
        return round(float(text)) if one.amount else one.kind(text)
    except (ValueError, OverflowError):
        return text


def with_task(given: dict[str, Any]) -> dict[str, Any]:
    """Add the task that the dataset implies, if none was given, and say so."""
    if "task" in given or not given.get("dataset"):
        return given
    from headstart.data.columns import ReadOptions
    from headstart.data.splits import guess_task

    names = ("text_column", "second_column", "label_column", "encoding")
    options = ReadOptions(**{name: given[name] for name in names if given.get(name)})
    task, why = guess_task(given["dataset"], options)
    if why is None:
        return given
    note(f"{why} (--task overrides this)")
    return {**given, "task": task}
