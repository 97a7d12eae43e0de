"""Measure the error rates of a study's statistics on simulated studies with known differences.

Nothing is trained. The score of every run on every test row is simulated as the sum of the arm's
skill (to which co-occurrence initialisation, pretraining and the learning rate contribute), the
difficulty of the row, an interaction of arm and row, and two effects of the seed: that of the
labelled rows, which all arms share, and that of the run. A study has three arms and three budgets.

    none         nothing helps: any claim is wrong
    cooc         co-occurrence initialisation helps: a claim about pretraining is wrong
    pretraining  pretraining helps: a claim about co-occurrence initialisation is wrong
    both         both help
    tuning       the best learning rates differ; each arm selects its own by cross-validation
    fixed        the same, but all arms use one learning rate
    no seeds     nothing helps, and there is no variance between seeds
    wide seeds   nothing helps; the standard deviation between runs is three times as large
    shared seeds nothing helps; that between samples of labelled rows is three times as large
    fourfold     nothing helps; the variances between seeds differ fourfold between arms
    fourfold cooc  the same, and co-occurrence initialisation helps

A row of the output has the percentage of studies with a wrong claim, the percentage of studies that
claim every true effect, the coverage of the 95 % intervals of differences and of means at single
budgets, and their mean half widths in points.

    python bench/simulated_studies.py [--studies 1000] [--seeds 2 3 5] [--rows 500] [--first 0]
"""

import argparse
from dataclasses import dataclass

import numpy as np
from scipy import stats

from headstart.evaluation.metrics import Interval
from headstart.study.statistics import (
    claimed_steps,
    mean_interval,
    paired_difference,
    seed_variance,
)

ARMS = ("scratch", "cooc-init", "pretrained")
EFFECTS = ("cooc", "pretraining")
BUDGETS = (100, 400, 1600)
RATES = np.arange(3)  # a grid; each step away from an arm's best rate costs `MISTUNED`
MISTUNED = 0.35
GAIN = 0.5  # of a method that helps, in standard deviations of the difficulty of rows
ARM_BY_ROW, RESIDUAL = 0.3, 0.6  # standard deviations


@dataclass(frozen=True)
class Truth:
    """The true effects, the best learning rate of each arm, and the variance between seeds."""

    cooc: float = 0.0
    pretraining: float = 0.0
    best_rate: tuple[int, int, int] = (1, 1, 1)
    selects_rate: bool = True
    run_std: tuple[float, float, float] = (0.05, 0.05, 0.05)  # between runs, by arm
    rows_std: float = 0.05  # between samples of labelled rows

    @property
    def claims(self) -> tuple[bool, bool]:
        """Whether each effect exists."""
        return self.cooc > 0, self.pretraining > 0


TRUTHS = {
    "none": Truth(),
    "cooc": Truth(cooc=GAIN),
    "pretraining": Truth(pretraining=GAIN),
    "both": Truth(cooc=GAIN, pretraining=GAIN),
    "tuning": Truth(best_rate=(0, 0, 2)),  # symmetric: the selection is equally hard for each arm
    "fixed": Truth(best_rate=(0, 0, 2), selects_rate=False),
    "no seeds": Truth(run_std=(0, 0, 0), rows_std=0),
    "wide seeds": Truth(run_std=(0.15, 0.15, 0.15)),
    "shared seeds": Truth(rows_std=0.15),
    "fourfold": Truth(run_std=(0.1, 0.14, 0.2)),
    "fourfold cooc": Truth(cooc=GAIN, run_std=(0.1, 0.1, 0.2)),
}


def simulate(
    truth: Truth, random: np.random.Generator, *, seeds: int, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate a study: scores (arms, budgets, seeds, rows) and the expected score of each run.

    The variances are about those of the study on the embedded data.
    """
    shape = (len(ARMS), len(BUDGETS), seeds)
    rate = np.full(shape, RATES[-1])
    gain = np.cumsum([0, truth.cooc, truth.pretraining])
    skill = gain[:, None] + 0.2 + 0.15 * np.log2(np.array(BUDGETS) / BUDGETS[0])
    settings = skill[:, :, None, None] - MISTUNED * abs(
        RATES - np.reshape(truth.best_rate, (3, 1, 1, 1))
    )
    settings = settings + random.normal(0, truth.rows_std, (len(BUDGETS), seeds, 1))
    run_std = np.reshape(truth.run_std, (3, 1, 1, 1))
    settings = settings + run_std * random.normal(size=(*shape, len(RATES)))
    if truth.selects_rate:
        for place in np.ndindex(shape):  # by cross-validation inside the budget
            labels = BUDGETS[place[1]]
            latent = random.normal(0, 1, (labels, 1))
            latent = latent + random.normal(0, RESIDUAL, (labels, len(RATES)))
            rate[place] = (latent + settings[place] > 0).mean(0).argmax()
    chosen = np.take_along_axis(settings, rate[..., None], -1)
    by_row = random.normal(0, 1, rows) + random.normal(0, ARM_BY_ROW, (len(ARMS), 1, 1, rows))
    scores = chosen + by_row + random.normal(0, RESIDUAL, (*shape, rows)) > 0
    expected = stats.norm.cdf(chosen[..., 0] / np.sqrt(1 + ARM_BY_ROW**2 + RESIDUAL**2))
    return scores.astype(float), expected


def judge(name: str, number: int, *, seeds: int = 3, rows: int = 500) -> tuple[bool, ...]:
    """Return whether a simulated study claims each effect; `number` is its random seed."""
    scores, _ = simulate(TRUTHS[name], _random(name, number), seeds=seeds, rows=rows)
    return tuple(claimed_steps(scores, _variance(scores)))


def _random(name: str, number: int) -> np.random.Generator:
    return np.random.default_rng([number, list(TRUTHS).index(name)])


def _variance(scores: np.ndarray):
    places = list(np.ndindex(scores.shape[:2]))
    pairs = [(one, other) for one in places for other in places if one < other]
    same_budget = [(one, other) for one, other in pairs if one[1] == other[1]]
    return seed_variance({place: scores[place] for place in places}, same_budget)


def run(name: str, *, studies: int, seeds: int, rows: int, first: int = 0) -> str:
    """Simulate many studies and describe the result in one line."""
    truth = TRUTHS[name]
    wrong = complete = 0
    means: list[list[Interval]] = []
    gaps: list[list[Interval]] = []
    expected = np.zeros((len(ARMS), len(BUDGETS)))
    for number in range(first, first + studies):
        scores, true = simulate(truth, _random(name, number), seeds=seeds, rows=rows)
        expected += true.mean(2) / studies
        variance = _variance(scores)
        claims = claimed_steps(scores, variance)
        pairs = list(zip(claims, truth.claims, strict=True))
        wrong += any(claim and not fact for claim, fact in pairs)
        complete += all(claim for claim, fact in pairs if fact)
        means.append([mean_interval(t, variance) for arm in scores for t in arm])
        gaps.append(
            [
                paired_difference(scores[k + 1, b], scores[k, b], variance)
                for k in range(len(EFFECTS))
                for b in range(len(BUDGETS))
            ]
        )
    power = f"{100 * complete / studies:5.1f}" if any(truth.claims) else "     "
    coverage = " ".join(
        _coverage(found, facts.ravel())
        for found, facts in ((gaps, np.diff(expected, axis=0)), (means, expected))
    )
    return f"{name:<14} {seeds:>5} {100 * wrong / studies:6.1f} {power} {coverage}"


def _coverage(found: list[list[Interval]], expected: np.ndarray) -> str:
    low = np.array([[one.low for one in study] for study in found])
    high = np.array([[one.high for one in study] for study in found])
    covered = 100 * ((low <= expected) & (expected <= high)).mean()
    return f"{covered:9.1f} ±{50 * (high - low).mean():4.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="number of the first study")
    parser.add_argument("--truths", nargs="+", default=list(TRUTHS), choices=list(TRUTHS))
    options = parser.parse_args()
    print(f"{options.studies} studies each, {options.rows} test rows")
    print("truth          seeds  wrong power  differences       means")
    for name in options.truths:
        for seeds in options.seeds:
            sizes = {"studies": options.studies, "rows": options.rows, "first": options.first}
            print(run(name, seeds=seeds, **sizes), flush=True)


if __name__ == "__main__":
    main()
