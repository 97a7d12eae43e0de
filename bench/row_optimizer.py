"""Time the update of a few rows of a large embedding: RowAdamW, SparseAdam and dense fused AdamW.

    python bench/row_optimizer.py

Prints milliseconds per step for 2,500 of 50,001 rows of width 200 (median and range, taking turns).
"""

import statistics
import time
from collections.abc import Callable

import torch

from headstart.training.optimizer import RowAdamW

VOCAB_SIZE, WIDTH, TOUCHED, REPETITIONS = 50_001, 200, 2_500, 15


def sparse_gradient(rows: torch.Tensor) -> torch.Tensor:
    values = torch.randn(len(rows), WIDTH)
    return torch.sparse_coo_tensor(
        rows.unsqueeze(0), values, (VOCAB_SIZE, WIDTH), check_invariants=False
    )


def main() -> None:
    rows = torch.randperm(VOCAB_SIZE)[:TOUCHED]
    makers: dict[str, tuple[Callable[[torch.nn.Parameter], torch.optim.Optimizer], bool]] = {
        "RowAdamW": (lambda p: RowAdamW([p], lr=1e-3, weight_decay=0.0, fused=True), True),
        "torch.optim.SparseAdam": (lambda p: torch.optim.SparseAdam([p], lr=1e-3), True),
        "torch.optim.AdamW, dense": (lambda p: torch.optim.AdamW([p], lr=1e-3, fused=True), False),
    }
    tables = {name: torch.nn.Parameter(torch.randn(VOCAB_SIZE, WIDTH)) for name in makers}
    optimizers = {name: make(tables[name]) for name, (make, _) in makers.items()}
    times: dict[str, list[float]] = {name: [] for name in makers}
    for repetition in range(REPETITIONS + 1):
        for name, (_, sparse) in makers.items():
            gradient = sparse_gradient(rows) if sparse else torch.randn(VOCAB_SIZE, WIDTH)
            tables[name].grad = gradient
            start = time.perf_counter()
            optimizers[name].step()
            if repetition:  # the first one warms up
                times[name].append(1e3 * (time.perf_counter() - start))
    for name, found in times.items():
        print(
            f"{name:26} {statistics.median(found):6.1f} ms ({min(found):.1f} to {max(found):.1f})"
        )


if __name__ == "__main__":
    main()
