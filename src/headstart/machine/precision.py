"""bf16 or fp32? Measured on a small product: without the instructions bf16 is far slower."""

import statistics
import time
from dataclasses import dataclass
from typing import Literal

import torch

Precision = Literal["fp32", "bf16"]

# A block's product: 512 tokens, width 256, feed-forward twice as wide.
ROWS, INNER, COLUMNS = 512, 256, 512
REPETITIONS = 7
# Converting to bf16 and back costs time too; a small gain in the product is a loss in the end.
WORTHWHILE = 1.3


@dataclass(frozen=True)
class PrecisionChoice:
    """The precision to train in, the speed of both, and why."""

    precision: Precision
    fp32_gflops: float
    bf16_gflops: float
    why: str


def choose_precision(device: torch.device) -> PrecisionChoice:
    """Time the same product in both precisions, in turn, and take bf16 where it pays."""
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
