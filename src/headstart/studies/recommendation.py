"""Which arm to take: its expected accuracy, its cost, the command, and what is as good for less.

The arm is the one that the study kept in `best/`, chosen without the test part, so its test
accuracy is what can be expected of new texts; where one part is both validation and test
(`--selection none`), that is said. A smaller or faster arm that is as good, or that the
study cannot tell apart from it, is said beside: that is a result, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headstart.evaluation.metrics import Interval
from headstart.studies.analysis import Analysis, Score, pooled_variance
from headstart.studies.comparison import Series
from headstart.studies.costs import Cost, TrainingFacts, find_cost, minutes_words, size_words
from headstart.studies.metric_words import metric_name
from headstart.studies.outcomes import FINAL, Measure
from headstart.studies.results import Predictions, Study
from headstart.studies.words import capital, exact, series_name, signed, within
from headstart.study.statistics import SeedVariance, is_equivalent, paired_difference

CHEAPER = 2.0  # times smaller or faster, to be worth a sentence


@dataclass(frozen=True)
class Recommendation:
    """The arm to take, and the sentences that say why and at which cost."""

    series: Series
    sentences: list[str]
    command: str


def recommend(
    folder: Path,
    study: Study,
    analysis: Analysis,
    measures: Sequence[Measure],
    predictions: Sequence[Predictions],
    facts: TrainingFacts,
) -> Recommendation | None:
    """Recommend an arm; none where no training is finished.

    Parameters
    ----------
    folder : Path
        Of the study, for the command.
    study, analysis, measures, predictions, facts
        What the report is made from.
    """
    labels = max((score.labels for score in analysis.scores), default=0)
    scores = {score.series: score for score in analysis.scores if score.labels == labels}
    if not scores:
        return None
    best = kept_series(study, measures, scores)
    cost = find_cost(study, facts, best, labels)
    expected = f"{exact(scores[best].accuracy)} of new texts to be right"
    if study.metric != "accuracy":
        expected = f"{exact(scores[best].accuracy)} {metric_name(study.metric)} on new texts"
    words = [f"Take {series_name(best, study)}: expect {expected}{_cost_words(cost)}."]
    if study.shared_test:
        words.append(
            "The rows that say so chose it among the arms, too: on new texts expect a little less "
            "(--test FILE)."
        )
    variance = pooled_variance({said.run: said.right for said in predictions})
    for series in scores:
        gap = _difference(predictions, series, best, labels, variance)
        if series == best or gap is None or not gap.bounded or gap.high < 0:
            continue
        ratios = _ratios(find_cost(study, facts, series, labels), cost)
        if ratios:
            judged = "as good" if is_equivalent(gap) else "not told apart from it"
            judged = "better" if gap.low > 0 else judged
            words.append(
                f"{capital(series_name(series, study))} is {judged} ({signed(gap.value)} points, "
                f"{within(gap)}) and {' and '.join(ratios)}."
            )
    use = f"headstart predict {folder / 'best'} --input texts.csv"
    if study.best and folder.is_dir() and not (folder / "best").is_dir():
        use = f"# {series_name(best, study)} cannot be kept: there is no {folder / 'best'}"
    return Recommendation(best, words, use)


def kept_series(study: Study, measures: Sequence[Measure], scores: dict[Series, Score]) -> Series:
    """The arm in `best/`; where that is not recorded, the best of validation, then of test."""
    kept = (study.best.get("arm", ""), study.best.get("objective", ""))
    if kept in scores:
        return kept
    labels = next(iter(scores.values())).labels
    found: dict[Series, list[float]] = {}
    for m in measures:
        wanted = (FINAL, "validation", study.metric, labels)
        if (m.epoch, m.split, m.metric, m.run.labels) == wanted:
            found.setdefault((m.run.arm, m.run.objective), []).append(m.value)
    if found.keys() >= scores.keys():
        return max(scores, key=lambda series: float(np.mean(found[series])))
    return max(scores, key=lambda series: scores[series].accuracy.value)


def _difference(
    predictions: Sequence[Predictions],
    first: Series,
    second: Series,
    labels: int,
    variance: SeedVariance,
) -> Interval | None:
    right = {
        p.run: p.right
        for p in predictions
        if p.run.labels == labels and (p.run.arm, p.run.objective) in (first, second)
    }
    tables = [
        {run.seed: row for run, row in right.items() if (run.arm, run.objective) == series}
        for series in (first, second)
    ]
    seeds = sorted(tables[0].keys() & tables[1].keys())
    if not seeds:
        return None
    one, other = (np.array([table[seed] for seed in seeds]) for table in tables)
    return paired_difference(one, other, variance)


def _cost_words(cost: Cost) -> str:
    said = []
    if cost.minutes is not None:
        said.append(f"{minutes_words(cost.minutes)} to train")
    if cost.bytes is not None:
        said.append(size_words(cost.bytes))
    if cost.milliseconds is not None:
        said.append(f"{cost.milliseconds:.2g} ms per text on this machine")
    return f"; {', '.join(said)}" if said else ""


def _ratios(cost: Cost, best: Cost) -> list[str]:
    """How many times smaller and faster than the best it is, where it is clearly so."""
    found = []
    for own, other, word in (
        (cost.bytes, best.bytes, "smaller"),
        (cost.milliseconds, best.milliseconds, "faster"),
    ):
        if own and other and other / own >= CHEAPER:
            found.append(f"{float(f'{other / own:.2g}'):,g} times {word}")
    return found
