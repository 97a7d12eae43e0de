"""What the commands that train share: the machine's choices, and a stop that says how to go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from headstart.cli.output import messages


def machine_settings(given: dict[str, Any]) -> dict[str, str]:
    """Device and precision: the given ones, else the best of this machine."""
    import torch

    from headstart.machine.device import pick_device
    from headstart.machine.facts import choose_threads
    from headstart.machine.precision import choose_precision, make_bf16_safe

    torch.set_num_threads(choose_threads(given.get("threads")))  # for the look at bf16
    device = pick_device(given.get("device"))
    if device.type == "cpu":
        make_bf16_safe()
    precision = given.get("precision") or choose_precision(device).precision
    return {"device": str(device), "precision": precision}


@contextmanager
def saved_when_stopped(command: str) -> Iterator[None]:
    """A training that is stopped has saved itself; `command` goes on with it."""
    from headstart.training.loop import Interrupted

    try:
        yield
    except Interrupted as stopped:
        messages().print(f"stopped and saved at step {stopped.step:,}; go on with: {command}")
        raise typer.Exit(130) from None
