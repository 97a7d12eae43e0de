"""Which path of attention is faster, at which length and precision, on this machine?

Forward alone and with its backward pass, in turn, several repetitions, median and spread.
`headstart.model.attention.faster_path` is the rule drawn from such tables.

    python bench/attention.py
"""

import statistics
import time

import torch

from headstart.model.attention import attend

TOKENS, HEADS, HEAD_WIDTH, REPETITIONS = 4_096, 4, 64, 7


def seconds(path: str, parts: list[torch.Tensor], *, causal: bool, training: bool) -> float:
    start = time.perf_counter()
    with torch.set_grad_enabled(training):
        out = attend(*parts, causal=causal, path=path)
        if training:
            out.backward(torch.ones_like(out))
    return time.perf_counter() - start


def main() -> None:
    print(f"{TOKENS:,} tokens, {HEADS} heads of {HEAD_WIDTH}, {torch.get_num_threads()} threads")
    print(f"{'':31}{'fused, ms':>20}{'blocks, ms':>20}   fused / blocks")
    for dtype in (torch.float32, torch.bfloat16):
        for causal in (True, False):
            for length in (32, 64, 128, 192, 256, 512, 1_024):
                shape = (TOKENS // length, HEADS, length, HEAD_WIDTH)
                parts = [torch.randn(shape).to(dtype).requires_grad_() for _ in range(3)]
                kind = f"{str(dtype)[6:]:9}{'causal' if causal else 'full':8}{length:>6}"
                for training in (True, False):
                    show(f"{kind} {'train' if training else 'read':7}", parts, causal, training)


def show(title: str, parts: list[torch.Tensor], causal: bool, training: bool) -> None:
    times: dict[str, list[float]] = {"fused": [], "blocks": []}
    for repetition in range(REPETITIONS + 1):
        for path, list_of_times in times.items():
            took = seconds(path, parts, causal=causal, training=training)
            if repetition:  # the first one warms up
                list_of_times.append(took)
    row = title
    for list_of_times in times.values():
        middle = statistics.median(list_of_times) * 1e3
        spread = (max(list_of_times) - min(list_of_times)) * 1e3
        row += f"{middle:>12.1f} ±{spread / 2:>5.1f} "
    ratio = statistics.median(times["fused"]) / statistics.median(times["blocks"])
    print(f"{row}   {ratio:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
