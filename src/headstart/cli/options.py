"""Options that several commands share, and the settings that were given with them."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from headstart.cli.output import messages
from headstart.errors import HeadstartError
from headstart.settings import check_number

Word = Annotated[str | None, typer.Option(show_default=False)]
Whole = Annotated[int | None, typer.Option(show_default=False)]
Number = Annotated[float | None, typer.Option(show_default=False)]
TextColumn = Annotated[
    str | None,
    typer.Option(
        help="The column that holds the text. Default: found by name.", show_default=False
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        help="The column that holds the label. Default: found by name.", show_default=False
    ),
]
Encoding = Annotated[str, typer.Option(help="The encoding of text files.")]
DocumentsOption = Annotated[
    str | None,
    typer.Option(
        help="What one document of a plain text corpus is: line, blank-line or file. "
        "Default: a line of a file, a whole file of a folder.",
        show_default=False,
    ),
]
HeldOut = Annotated[
    float | None,
    typer.Option(
        help="Share of the corpus's documents that pretraining is measured on.", show_default=False
    ),
]
Size = Annotated[int | None, typer.Option(help="Overrides the preset's.", show_default=False)]
RunFolder = Annotated[Path, typer.Option(help="The run's folder.")]
TokenizerKind = Annotated[str | None, typer.Option(help="bpe or unigram.")]
PrecisionOption = Annotated[
    str | None,
    typer.Option(help="fp32 or bf16. Default: the faster one here.", show_default=False),
]
DropOverlap = Annotated[
    bool | None,
    typer.Option("--drop-overlap", help="Remove texts that validation or test also hold."),
]
SaveSeconds = Annotated[float, typer.Option(help="Seconds between two checkpoints.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")]
Track = Annotated[
    list[str] | None,
    typer.Option(help="Also send the numbers to tensorboard or another installed tracker."),
]
Baselines = Annotated[
    str,
    typer.Option(
        help="on (default) or off: show the answer without reading and a linear model (TF-IDF) "
        "beside the numbers.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(help="Of the processor; by default one a physical core.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")]


# Zero is a value of these; everywhere else a recipe's zero means "not given", which on the command
# line is said by leaving the option out.
ZERO_IS_A_VALUE = {"seed", "split_seed", "patience", "warmup", "weight_decay", "label_smoothing"}
ZERO_IS_A_VALUE |= {"token_dropout", "average", "frequent", "drawn"}


def given_settings(values: dict[str, Any], *, but: Collection[str]) -> dict[str, Any]:
    """The parameters that the user gave, as settings of the command's recipe."""
    given = {
        name: value
        for name, value in values.items()
        if value is not None and value != [] and name not in but
    }
    for name, smallest in (("save_seconds", 0), ("stuck_seconds", 1)):
        if values.get(name) is not None:
            check_number(name, values[name], smallest)
    for name, value in given.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and value == 0 and name not in ZERO_IS_A_VALUE:
            option = name.replace("_", "-")
            raise HeadstartError(
                f"--{option} is 0; it must be above 0",
                fix=f"leave --{option} out, and its default is used",
            )
    if "feed_forward" in given:  # a recipe also has the kind of it
        given["feed_forward_width"] = given.pop("feed_forward")
    return given


def machine_settings(given: dict[str, Any]) -> dict[str, str]:
    """Device and precision: the given ones, else the best of this machine."""
    import torch

    from headstart.machine import choose_precision, choose_threads, make_bf16_safe, pick_device

    torch.set_num_threads(choose_threads(given.get("threads")))  # for the look at bf16
    device = pick_device(given.get("device"))
    if device.type == "cpu":
        make_bf16_safe()
    precision = given.get("precision") or choose_precision(device).precision
    return {"device": str(device), "precision": precision}


def use_threads(threads: int | None) -> None:
    """Compute with so many threads, where a number was given."""
    if threads is not None:
        import torch

        from headstart.machine import choose_threads

        torch.set_num_threads(choose_threads(threads))


def is_on(option: str, value: str) -> bool:
    """Whether an option with two words was given as on."""
    if value not in ("on", "off"):
        raise HeadstartError(f"--{option} is {value!r}; it can be on, off")
    return value == "on"


UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}


def read_amounts(written: str, fix: str = "write --tokens 2M, or 0.5M,1M,2M") -> list[int]:
    """Amounts of tokens, ascending: `500000`, `0.5M`, or several with commas.

    Example
    -------
    >>> read_amounts("1M,0.5M,2000k")
    [500000, 1000000, 2000000]
    """
    found = set()
    for word in written.split(","):
        number, unit = word.strip().lower(), 1.0
        if number and number[-1] in UNITS:
            number, unit = number[:-1], UNITS[number[-1]]
        try:
            amount = round(float(number.replace("_", "")) * unit)
        except (ValueError, OverflowError):
            amount = 0
        if amount < 1:
            raise HeadstartError(f"{word.strip()!r} is no number of tokens", fix=fix)
        found.add(amount)
    return sorted(found)


@contextmanager
def saved_when_stopped(command: str) -> Iterator[None]:
    """A training that is stopped has saved itself; `command` resumes it."""
    from headstart.training.loop import Interrupted

    try:
        yield
    except Interrupted as stopped:
        messages().print(f"stopped and saved at step {stopped.step:,}; resume with: {command}")
        raise typer.Exit(130) from None
