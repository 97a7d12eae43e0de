"""What each arm costs: minutes to train, size on disk, milliseconds per text; and what it chose.

Every finished training keeps its facts (`outcomes.py`). An arm that joins others costs what they
cost, too, and one that needs a base includes the base's pretraining.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headstart.checksums import load_arrays
from headstart.errors import HeadstartError
from headstart.studies.arms import arms
from headstart.studies.comparison import Series
from headstart.studies.outcomes import FINAL, RunKey, training_file
from headstart.studies.results import Study

SHORT = {"learning_rate": "rate {value}", "epochs": "{value} epochs", "strength": "C {value}"}
TrainingFacts = Mapping[RunKey, Mapping[str, Any]]


@dataclass(frozen=True)
class Cost:
    """Of one arm at one budget, mean over seeds; None where it was not measured."""

    minutes: float | None  # to train one, pretraining included
    bytes: float | None  # on disk
    milliseconds: float | None  # per text, on the machine of the study


def read_facts(folder: Path, runs: Collection[RunKey]) -> dict[RunKey, dict[str, Any]]:
    """The facts of the trainings that are still there, with the `seconds` that each took.

    A report needs nothing else of these files, so one that is damaged, or that an older version
    wrote, is no reason not to have one.
    """
    found = {}
    for run in runs:
        try:
            about = json.loads(load_arrays(training_file(folder, run), fix="train again")[1])
            seconds = [line[-1] for line in about["measures"] if line[:2] == [FINAL, "test"]]
            found[run] = {**about["facts"], "seconds": seconds[0] if seconds else None}
        except (OSError, HeadstartError, KeyError, TypeError, ValueError, IndexError):
            continue
    return found


def find_cost(study: Study, facts: TrainingFacts, series: Series, labels: int) -> Cost:
    """What an arm costs at a budget.

    Parameters
    ----------
    study : Study
        Knows the pretraining's seconds and the number of test rows.
    facts : mapping
        Of every training, as `read_facts` returns them.
    series, labels
        Which arm, and how many labelled rows.
    """
    runs = [run for run in facts if (run.arm, run.objective, run.labels) == (*series, labels)]
    seconds = _mean([_total(facts, run, "seconds") for run in runs])
    answering = _mean([_total(facts, run, "test_seconds") for run in runs])
    rows = study.splits.get("test", 0)
    pretraining = max((_pretraining(study, run, facts) for run in runs), default=0.0)
    return Cost(
        minutes=None if seconds is None else (seconds + pretraining) / 60,
        bytes=_mean([_total(facts, run, "bytes") for run in runs]),
        milliseconds=1000 * answering / rows if answering is not None and rows else None,
    )


def _members(facts: TrainingFacts, run: RunKey) -> list[RunKey]:
    """The trainings that a stack joins."""
    weights = facts[run].get("weights") or {}
    joined = [arm for arm, weight in weights.items() if weight]  # the others are not kept
    keys = [
        RunKey(arm, objective, run.labels, run.seed)
        for arm in joined
        for objective in ("", run.objective)
    ]
    return [key for key in dict.fromkeys(keys) if key in facts]


def _total(facts: TrainingFacts, run: RunKey, name: str) -> float | None:
    """A training's own value, or its members' with what it adds; None if one is not known."""
    members = _members(facts, run)
    own = facts[run].get(name, 0.0 if members else None)  # a stack's weights take no room
    values = [own, *(facts[one].get(name) for one in members)]
    known = [float(value) for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _pretraining(study: Study, run: RunKey, facts: TrainingFacts) -> float:
    """Seconds of the base behind a training; an arm that takes its start alone has none."""
    names = {one.arm for one in (run, *_members(facts, run))}
    needs = [arm.needs for name, arm in arms().items() if name in names]
    if not any("base" in need and "start" not in need for need in needs):
        return 0.0
    curves = [part for part in study.pretraining if part.objective == run.objective]
    return float((curves[0].points[-1].get("seconds") or 0.0) if curves and curves[0].points else 0)


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of what is known: not every seed's files are kept."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def choice_words(facts: TrainingFacts, series: Series, labels: int) -> str:
    """What an arm chose for itself at a budget: each setting, lowest to highest over seeds."""
    runs = [run for run in facts if (run.arm, run.objective, run.labels) == (*series, labels)]
    chosen = [facts[run].get("chosen") or _strength(facts[run]) for run in runs]
    said = []
    for name in dict.fromkeys(name for one in chosen for name in one):
        values = [one[name] for one in chosen if name in one]
        numbers = all(isinstance(value, int | float) for value in values)
        ordered = sorted(set(values)) if numbers else sorted(map(str, set(values)))
        shown = [f"{v:g}" if isinstance(v, int | float) else v for v in ordered]
        reach = shown[0] if len(shown) == 1 else f"{shown[0]}–{shown[-1]}"
        said.append(SHORT.get(name, "{name} {value}").format(name=name, value=reach))
    tries = max((int(facts[run].get("tries") or 0) for run in runs), default=0)
    return ", ".join(said) + (f", {tries} tries" if said and tries else "")


def _strength(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"strength": facts["strength"]} if "strength" in facts else {}


def size_words(count: float) -> str:
    """A size on disk: kB below a megabyte."""
    return f"{count / 1e6:,.1f}\u00a0MB" if count >= 1e5 else f"{count / 1e3:,.0f}\u00a0kB"


def minutes_words(minutes: float) -> str:
    """A time to train: seconds below a minute."""
    return f"{minutes:,.1f}\u00a0min" if minutes >= 1 else f"{60 * minutes:,.1f}\u00a0s"
