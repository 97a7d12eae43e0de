"""Measure how often predicted intervals contain the accuracy at larger label budgets.

A power law (`study/statistics.py`) is fitted to the smaller label budgets of a study, and the
accuracy at each larger budget is predicted with its 95 % interval. In simulated studies the true
accuracy is known: it follows a power law with or without a floor, or a logistic curve. In real
studies (folders that `headstart compare` wrote) the measured mean takes the place of the truth.

    python bench/extrapolation.py [--studies 60] [--first 0] [STUDY …]
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

from headstart.study.results import read_results
from headstart.study.statistics import (
    FARTHEST,
    FEWEST_BUDGETS,
    fit_power_laws,
    labels_needed,
    seed_variance,
)

SEEDS, ROWS = 3, 800
SHOWN, HIDDEN = (100, 200, 400, 800), (1600, 3200, 8000)
TRUTHS: dict[str, Callable[[float], float]] = {
    "no floor": lambda n: 2.0 * n**-0.35,
    "floor of 10 %": lambda n: 1.2 * n**-0.35 + 0.10,
    "floor of 20 %, flat": lambda n: 0.5 * n**-0.20 + 0.20,
    "floor of 10 %, steep": lambda n: 5.0 * n**-0.80 + 0.10,
    "logistic, no power law": lambda n: 0.12 + 0.33 / (1 + (n / 400) ** 0.8),
}


def simulated(error: Callable[[float], float], random: np.random.Generator) -> np.ndarray:
    """Simulate which rows three runs predict correctly: (budgets, seeds, rows).

    A row is correct if its difficulty plus noise exceeds a bound that gives the wanted error rate.
    The variance between seeds is larger with fewer labels.
    """
    difficulty = random.normal(0, 0.7**0.5, ROWS)
    lines = []
    for labels in SHOWN:
        luck = random.normal(0, 0.15 / np.sqrt(labels), SEEDS)
        chance = random.normal(0, 0.3**0.5, (SEEDS, ROWS))
        bound = stats.norm.ppf(np.clip(error(labels) + luck, 0.001, 0.999))
        lines.append(difficulty + chance > bound[:, None])
    return np.array(lines)


def simulate(name: str, studies: int, first: int = 0) -> None:
    inside: dict[int, int] = defaultdict(int)
    width: dict[int, list[float]] = defaultdict(list)
    estimated = covered = 0
    goal = 1 - TRUTHS[name](HIDDEN[0])
    for number in range(first, first + studies):
        table = simulated(TRUTHS[name], np.random.default_rng([number, len(name)]))
        variance = seed_variance(dict(enumerate(table)), pairs=[])
        laws = fit_power_laws(SHOWN, table, variance)
        for labels in HIDDEN:
            found = laws.score(labels)
            inside[labels] += found.low <= 1 - TRUTHS[name](labels) <= found.high
            width[labels].append(100 * (found.high - found.low))
        needed = labels_needed(SHOWN, table, goal, variance)
        if not isinstance(needed, str):
            estimated += 1
            covered += needed.low <= HIDDEN[0] <= needed.high
    text = ", ".join(
        f"{labels:,}: {100 * inside[labels] / studies:.0f} % ({np.mean(width[labels]):.1f} points)"
        for labels in HIDDEN
    )
    print(
        f"{name:<24} coverage at {text}; labels for {100 * goal:.0f} %: {covered} of {estimated} "
        f"intervals contain the true number, {studies - estimated} studies without an estimate",
        flush=True,
    )


def back_test(folder: Path) -> None:
    """Predict the last budgets of a study (one, two, …) from the others, at least three."""
    runs: dict[tuple[str, str], dict[tuple[int, int], np.ndarray]] = defaultdict(dict)
    results = read_results(folder)
    for arm, objective, labels in results.runs:
        for seed, scores in zip(
            results.about["seeds"], results.scores(arm, objective, labels), strict=True
        ):
            runs[arm, objective][labels, seed] = scores
    inside = total = 0
    for (arm, _), table in runs.items():
        budgets = sorted({labels for labels, _ in table})
        seeds = sorted({seed for _, seed in table})
        scores = np.array([[table[labels, seed] for seed in seeds] for labels in budgets])
        for shown in range(FEWEST_BUDGETS, len(budgets)):
            variance = seed_variance(dict(enumerate(scores[:shown])), pairs=[])
            laws = fit_power_laws(budgets[:shown], scores[:shown], variance)
            for labels, hidden in zip(budgets[shown:], scores[shown:], strict=True):
                if labels > FARTHEST * budgets[shown - 1]:
                    continue
                found, measured = laws.score(labels), float(hidden.mean())
                inside, total = inside + (found.low <= measured <= found.high), total + 1
                print(
                    f"{arm}, {budgets[0]:,} to {budgets[shown - 1]:,} labels fitted: at {labels:,} "
                    f"{100 * measured:.1f} % measured, predicted {100 * found.value:.1f} "
                    f"({100 * found.low:.1f} to {100 * found.high:.1f})"
                )
    print(f"{folder}: {inside} of {total} measured values are in their intervals")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first study")
    parser.add_argument("study", nargs="*", type=Path)
    options = parser.parse_args()
    for name in TRUTHS:
        simulate(name, options.studies, options.first)
    for folder in options.study:
        back_test(folder)


if __name__ == "__main__":
    main()
