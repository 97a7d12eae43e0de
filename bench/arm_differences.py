"""Print the difference in test accuracy between arms of a finished study.

    python bench/arm_differences.py studies/demo pretrained,cooc-init cooc-init,scratch

Differences are in points, with a 95 % interval over seeds and test rows, for each label budget.
"""

import argparse
from pathlib import Path

import numpy as np

from headstart.study.results import read_results
from headstart.study.statistics import paired_difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("pairs", nargs="+", help="first,second")
    given = parser.parse_args()
    by_run: dict[tuple[str, int], dict[int, np.ndarray]] = {}
    results = read_results(given.study)
    for arm, objective, labels in results.runs:
        scores = results.scores(arm, objective, labels)
        by_run[arm, labels] = dict(zip(results.about["seeds"], scores, strict=True))
    for pair in given.pairs:
        first, second = pair.split(",")
        for labels in sorted({labels for arm, labels in by_run if arm == first}):
            tables = [
                np.stack([by_seed for _, by_seed in sorted(by_run[arm, labels].items())])
                for arm in (first, second)
            ]
            found = paired_difference(*tables)
            print(
                f"{first} − {second}, {labels:,} labels: {100 * found.value:+.1f} "
                f"({100 * found.low:.1f} to {100 * found.high:.1f})"
            )


if __name__ == "__main__":
    main()
