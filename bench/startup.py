"""Compare the time of `headstart --help` and `headstart params` with importing Typer and Rich.

    python bench/startup.py [--repeats 15]

The three commands take turns; each repetition is one ratio, and the median and the spread of the
ratios are printed.
"""

import argparse
import statistics
import subprocess
import sys
import time

LIBRARIES = "import typer, rich.console"
MAIN = "import sys; sys.argv = ['headstart', '{}']; from headstart.cli.app import main; main()"
CODE = {
    "libraries": LIBRARIES,
    "headstart --help": MAIN.format("--help"),
    "headstart params": MAIN.format("params"),
}


def seconds(code: str) -> float:
    """Time one run of a new interpreter."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = max(7, parser.parse_args().repeats)
    for code in CODE.values():
        seconds(code)  # compiled files and the disk's cache
    rounds = [{name: seconds(code) for name, code in CODE.items()} for _ in range(repeats)]
    base = statistics.median(one["libraries"] for one in rounds)
    print(f"{LIBRARIES}: {base:.3f} s, {repeats} repetitions")
    for name in list(CODE)[1:]:
        ratios = sorted(one[name] / one["libraries"] for one in rounds)
        print(
            f"{name}: {statistics.median(ratios):.2f} × ({ratios[0]:.2f} to {ratios[-1]:.2f}), "
            f"{statistics.median(one[name] for one in rounds):.3f} s"
        )


if __name__ == "__main__":
    main()
