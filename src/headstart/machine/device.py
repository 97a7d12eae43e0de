"""Which device to compute on: the one asked for, else the fastest that is here."""

import torch

from headstart.errors import HeadstartError


def pick_device(wanted: str | None = None) -> torch.device:
    """`cuda` or `mps` where there is one, else `cpu`; `wanted` overrides, if it is here."""
    here = available_devices()
    if wanted is None:
        return torch.device(here[0])
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise HeadstartError(
            f"there is no device called {wanted!r}", fix=f"use --device {' or '.join(here)}"
        ) from None
    missing_card = device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
    if device.type not in here or missing_card:
        raise HeadstartError(
            f"this machine has no {wanted}", fix=f"use --device {' or '.join(here)}"
        )
    return device


def available_devices() -> list[str]:
    """The kinds of device on this machine, the fastest first."""
    devices = ["cpu"]
    if torch.backends.mps.is_available():
        devices.insert(0, "mps")
    if torch.cuda.is_available():
        devices.insert(0, "cuda")
    return devices
