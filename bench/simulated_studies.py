"""Does a verdict name the right cause? Studies whose truth is known, without any training.

What every run says of every test row is drawn: an arm's skill (which counting, pretraining and the
setting it was trained with may add to), the row's difficulty, what an arm likes in a row whatever
its seed, the luck of the rows drawn (shared by all arms of a seed) and of the run. The study's own
statistics and verdict then judge it.

    none        nothing helps: any claim is wrong
    counting    counting helps, pretraining adds nothing: a claim of pretraining is wrong
    pretraining pretraining helps, counting does not: a claim of counting is wrong
    both        both help
    tuning      each arm has its best learning rate elsewhere and none is better at its own; every
                arm chooses by its accuracy on rows of its own budget: any claim is wrong
    fixed       the same arms, all at one learning rate: what a study without that choice would say

    python bench/simulated_studies.py [--studies 100] [--seeds 3] [--rows 500]
"""

import argparse
from collections import Counter
from dataclasses import dataclass

import numpy as np

from headstart.studies.analysis import analyse
from headstart.studies.outcomes import RunKey
from headstart.studies.results import Predictions, Study
from headstart.studies.verdict import Verdict, verdict

ARMS = ("scratch", "counted", "pretrained")
BUDGETS = (100, 400, 1600)
RATES = 3  # of the grid; an arm is as much worse at the next one as `MISTUNED`
MISTUNED = 0.35
GAIN = 0.5  # of a thing that helps, in units of a row's difficulty


@dataclass(frozen=True)
class Truth:
    """What helps, where each arm's best rate is, and what may be claimed."""

    counting: float = 0.0
    pretraining: float = 0.0
    best_rate: tuple[int, int, int] = (1, 1, 1)
    chooses: bool = True

    @property
    def right_claims(self) -> set[str]:
        helps = {"counting": self.counting, "pretraining": self.pretraining}
        return {name for name, gain in helps.items() if gain}


TRUTHS = {
    "none": Truth(),
    "counting": Truth(counting=GAIN),
    "pretraining": Truth(pretraining=GAIN),
    "both": Truth(counting=GAIN, pretraining=GAIN),
    "tuning": Truth(best_rate=(0, 0, 2)),  # mirrored, so that choosing is as hard for each
    "fixed": Truth(best_rate=(0, 0, 2), chooses=False),
}


def simulate(
    truth: Truth, random: np.random.Generator, *, seeds: int, rows: int
) -> tuple[Study, list[Predictions]]:
    """One study's predictions; the noise is that of the embedded data's study, about."""
    difficulty = random.normal(0, 1, rows)
    taste = {arm: random.normal(0, 0.3, rows) for arm in ARMS}
    gold = np.ones(rows, dtype=np.int64)
    said = []
    for labels in BUDGETS:
        learned = 0.2 + 0.15 * np.log2(labels / BUDGETS[0])
        for seed in range(seeds):
            drawn = random.normal(0, 0.05)  # which labelled rows: the same for every arm
            for place, arm in enumerate(ARMS):
                skill = learned + drawn + truth.counting * (place >= 1)
                skill += truth.pretraining * (place == 2)
                settings = skill - MISTUNED * abs(np.arange(RATES) - truth.best_rate[place])
                settings += random.normal(0, 0.05, RATES)  # each run's luck
                rate = RATES - 1
                if truth.chooses:  # by cross-validation inside the budget
                    own = random.normal(0, 1, (labels, 1)) + random.normal(0, 0.6, (labels, RATES))
                    rate = int((own + settings > 0).mean(0).argmax())
                noise = random.normal(0, 0.6, rows)
                right = settings[rate] + difficulty + taste[arm] + noise > 0
                run = RunKey(arm, "causal", labels, seed)
                said.append(
                    Predictions(run, np.arange(rows), gold, right.astype(np.int64), np.eye(2))
                )
    study = Study(
        dataset="simulated",
        corpus="simulated",
        label_names=["wrong", "right"],
        splits={"train": BUDGETS[-1], "validation": 0, "test": rows},
        command="",
        seeds=list(range(seeds)),
        budgets=list(BUDGETS),
        arms=list(ARMS),
        versions={},
        machine={},
        minutes=0.0,
    )
    return study, said


def judge(name: str, number: int, *, seeds: int = 3, rows: int = 500) -> Verdict:
    """The verdict on one simulated study; the same number gives the same study."""
    random = np.random.default_rng([number, list(TRUTHS).index(name)])
    study, said = simulate(TRUTHS[name], random, seeds=seeds, rows=rows)
    return verdict(study, analyse(study, [], said))


def wrong_claims(name: str, found: Verdict) -> set[str]:
    """What a verdict claims that is not so."""
    return set(found.claims) - TRUTHS[name].right_claims


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    print(f"{options.studies} studies each, {options.seeds} seeds, {options.rows} test rows")
    for name, truth in TRUTHS.items():
        claims: Counter[str] = Counter()
        wrong = 0
        for number in range(options.studies):
            found = judge(name, number, seeds=options.seeds, rows=options.rows)
            claims.update(found.claims or ["nothing"])
            wrong += bool(wrong_claims(name, found))
        said = ", ".join(f"{what} {count}" for what, count in claims.most_common())
        helps = " and ".join(sorted(truth.right_claims)) or "nothing"
        print(f"{name:<12} true: {helps:<24} wrong: {wrong:>3}   claimed: {said}", flush=True)


if __name__ == "__main__":
    main()
