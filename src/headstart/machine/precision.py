"""bf16 or fp32? Measured on a small product: without the instructions bf16 is far slower.

Some virtual machines announce AMX and then stop a process that uses it. So where it is announced,
one product is first tried in a process of its own; if that dies, the library behind PyTorch's
bf16 products is told to do without.
"""

import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch

from headstart.cache import cache_folder
from headstart.files import write_text

Precision = Literal["fp32", "bf16"]

# A block's product: 512 tokens, width 256, feed-forward twice as wide.
ROWS, INNER, COLUMNS = 512, 256, 512
REPETITIONS = 7
# Converting to bf16 and back costs time too; a small gain in the product is a loss in the end.
WORTHWHILE = 1.3
ISA, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
_TRIAL = "import torch; a = torch.ones(512, 512, dtype=torch.bfloat16); a @ a"


@dataclass(frozen=True)
class PrecisionChoice:
    """The precision to train in, the speed of both, and why."""

    precision: Precision
    fp32_gflops: float
    bf16_gflops: float
    why: str


def choose_precision(device: torch.device) -> PrecisionChoice:
    """Time the same product in both precisions, in turn, and take bf16 where it pays."""
    if device.type == "cpu":
        make_bf16_safe()
    speeds = _measure(device)
    ratio = speeds["bf16"] / speeds["fp32"]
    if ratio >= WORTHWHILE:
        precision: Precision = "bf16"
        why = f"its products run {ratio:.1f} times as fast as fp32 here"
    else:
        precision = "fp32"
        why = f"bf16 products run at {ratio:.2g} times the speed of fp32 here; " + (
            f"below {WORTHWHILE} it does not pay" if ratio >= 1 else "it would only be slower"
        )
    return PrecisionChoice(precision, speeds["fp32"], speeds["bf16"], why)


@cache
def make_bf16_safe() -> None:
    """Turn AMX off for this process and its children where it is announced but does not work.

    To be called before the first bf16 product: the library looks at its setting once.
    """
    if ISA in os.environ or not torch.cpu.get_capabilities().get("amx_bf16"):
        return
    if not _amx_works():
        os.environ[ISA] = WITHOUT_AMX


def _amx_works() -> bool:
    """Whether a bf16 product survives; tried once per machine and version, then looked up."""
    name = f"{platform.machine()}-{platform.release()}-torch-{torch.__version__}"
    known = cache_folder() / "machine" / f"amx-{name}.txt"
    try:
        return known.read_text(encoding="utf-8") == "works"
    except OSError:
        pass
    tried = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, check=False)
    works = tried.returncode == 0
    try:
        known.parent.mkdir(parents=True, exist_ok=True)
        write_text(known, "works" if works else "does not work")
    except OSError:
        pass  # it is tried again next time
    return works


def _measure(device: torch.device) -> dict[Precision, float]:
    """Billions of floating-point operations a second, the median of a few products each."""
    kinds: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
    operands = {
        name: (
            torch.ones(ROWS, INNER, dtype=kind, device=device),
            torch.ones(INNER, COLUMNS, dtype=kind, device=device),
        )
        for name, kind in kinds.items()
    }
    seconds: dict[Precision, list[float]] = {"fp32": [], "bf16": []}
    for repetition in range(REPETITIONS + 1):
        for name, (left, right) in operands.items():  # in turn: a noisy moment hits both
            _wait(device)
            start = time.perf_counter()
            left @ right
            _wait(device)
            if repetition:  # the first one also sets things up
                seconds[name].append(time.perf_counter() - start)
    operations = 2 * ROWS * INNER * COLUMNS
    return {name: operations / statistics.median(times) / 1e9 for name, times in seconds.items()}


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
