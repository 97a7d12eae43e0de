"""The difference of any two arms of a finished study, by the study's own statistics.

    python bench/arm_differences.py studies/demo pretrained-counted counted-scratch

Test accuracy in points, with a 95 % interval over seeds and test rows, for each number of labels.
"""

import argparse
from pathlib import Path

import numpy as np

from headstart.studies.results import read_predictions
from headstart.study.statistics import paired_difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("pairs", nargs="+", help="first-second")
    given = parser.parse_args()
    right: dict[tuple[str, int], dict[int, np.ndarray]] = {}
    for one in read_predictions(given.study):
        by_seed = right.setdefault((one.run.arm, one.run.labels), {})
        by_seed[one.run.seed] = one.predicted == one.gold
    for pair in given.pairs:
        first, second = pair.split("-")
        for labels in sorted({labels for arm, labels in right if arm == first}):
            tables = [
                np.stack([by_seed for _, by_seed in sorted(right[arm, labels].items())])
                for arm in (first, second)
            ]
            found = paired_difference(*tables)
            print(
                f"{first} − {second}, {labels:,} labels: {100 * found.value:+.1f} "
                f"({100 * found.low:.1f} to {100 * found.high:.1f})"
            )


if __name__ == "__main__":
    main()
