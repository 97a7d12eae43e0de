"""What this machine can do, looked up and measured: device, threads, bf16 or fp32.

Some virtual machines announce AMX and then stop a process that uses it. So where it is announced,
one product is first tried in a separate process; if that dies, the library behind PyTorch's
bf16 products is set to do without it.
"""

import os
import platform
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import psutil
import torch

from headstart.config import MachineSettings, Precision
from headstart.errors import HeadstartError
from headstart.files import cache_folder, write_text


def look_up() -> dict[str, Any]:
    """Look at the machine as this process may use it; takes milliseconds once PyTorch is loaded."""
    memory, limit = psutil.virtual_memory(), _container_limit("memory.max")
    cards = range(torch.cuda.device_count())
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cpu": torch.cpu.get_capabilities().get("cpu_name") or platform.processor() or "unknown",
        "cores": psutil.cpu_count(logical=False) or os.cpu_count() or 1,  # physical ones
        "usable_cores": usable_cores(),
        "memory_bytes": min([memory.total, *limit]),
        "free_memory_bytes": min([memory.available, *limit]),
        "accelerators": [f"cuda:{card} {torch.cuda.get_device_name(card)}" for card in cards]
        + ["mps"] * torch.backends.mps.is_available(),
    }


def usable_cores() -> int:
    """Cores this process may use: a container often has fewer than the machine."""
    allowed = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    quota = _container_limit("cpu.max")
    return min(allowed, max(1, quota[0] // quota[1])) if len(quota) == 2 else allowed


def _container_limit(name: str) -> list[int]:
    """Return the numbers of a limit of this container; without one, the word "max" is there."""
    path = Path("/sys/fs/cgroup", name)
    words = path.read_text().split() if path.is_file() else []
    return [int(word) for word in words if word.isdigit()]


def choose_threads(wanted: int | None = None) -> int:
    """Choose the number of threads: one per physical core, as a second one would only wait."""
    return wanted or max(1, min(usable_cores(), psutil.cpu_count(logical=False) or 1))


def pick_device(wanted: str | None = None) -> torch.device:
    """Choose the device: `wanted`, which must exist; else `cuda` or `mps` if any, else `cpu`."""
    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    here = [name for name, is_here in found.items() if is_here] + ["cpu"]
    try:
        device = torch.device(wanted or here[0])
        if device.type in here:
            torch.empty(0, device=device)  # fails for a card too many
            return device
    except RuntimeError:  # no such name, or no such card
        pass
    raise HeadstartError(
        f"this machine has no device called {wanted!r}", fix=f"use --device {' or '.join(here)}"
    )


# Converting to bf16 and back takes time, too: the products must be faster by this factor.
WORTHWHILE = 1.3
ISA, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
_TRIAL = "import torch; a = torch.ones(512, 512, dtype=torch.bfloat16); a @ a"


def choose_precision(device: torch.device) -> dict[str, Any]:
    """Choose bf16 if matrix products are sufficiently faster with it; also return the reason."""
    if device.type == "cpu":
        make_bf16_safe()
    # A block's product: 512 tokens, width 256, feed-forward twice as wide.
    left, right = torch.ones(512, 256, device=device), torch.ones(256, 512, device=device)
    operands = {"fp32": (left, right), "bf16": (left.bfloat16(), right.bfloat16())}
    seconds: dict[str, list[float]] = {"fp32": [], "bf16": []}
    for _ in range(8):
        for name, (one, other) in operands.items():  # taking turns, so that other load affects both
            start = time.perf_counter()
            (one @ other)[0, 0].item()  # waits for the device
            seconds[name].append(time.perf_counter() - start)
    # The first product also sets things up.
    ratio = statistics.median(seconds["fp32"][1:]) / statistics.median(seconds["bf16"][1:])
    return {
        "precision": "bf16" if ratio >= WORTHWHILE else "fp32",
        "why": f"bf16 products run at {ratio:.2g} times the speed of fp32 here",
    }


@cache
def make_bf16_safe() -> None:
    """Turn off AMX where it is announced but fails; call it before the first bf16 product."""
    if ISA in os.environ or not torch.cpu.get_capabilities().get("amx_bf16"):
        return
    if not _amx_works():
        os.environ[ISA] = WITHOUT_AMX


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """The context in which a network is trained or read in this precision."""
    if precision == "bf16" and device.type == "cpu":
        make_bf16_safe()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


def _amx_works() -> bool:
    """Whether a bf16 product survives; tried once per machine and version, then looked up."""
    cpu = str(torch.cpu.get_capabilities().get("cpu_name", "")).replace(" ", "-")
    name = f"{platform.node()}-{cpu}-{platform.release()}-torch-{torch.__version__}"
    known = cache_folder() / "machine" / f"amx-{name}.txt"
    with suppress(OSError):
        return known.read_text(encoding="utf-8") == "works"
    try:
        tried = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return False
    works = tried.returncode == 0
    if tried.returncode <= 0:  # else it did not get as far as the product: that says nothing
        with suppress(OSError, HeadstartError):  # it is tried again next time
            write_text(known, "works" if works else "does not work")
    return works


C = TypeVar("C", bound=MachineSettings)


def resolve_machine(config: C) -> C:
    """Return the config with a device, a number of threads and a precision, and use the threads."""
    threads = choose_threads(config.threads)
    torch.set_num_threads(threads)
    device = pick_device(config.device)
    return config.replace(
        device=str(device),
        threads=threads,
        precision=config.precision or choose_precision(device)["precision"],
    )
