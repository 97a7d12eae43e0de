"""Generate a study with simulated results.

Every run predicts every test row. The margin of the correct class grows with the labels and with
the skill of the arm. It varies with the difficulty of the row, the seed (an effect that all arms
share, and one of each run) and at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from headstart.arms import find_arm
from headstart.model.counts import count_parameters
from headstart.model.presets import preset
from headstart.study.results import Results, make_results, run_predictions, write_results

EPOCHS = 15
SUBJECTS = ("the film", "this story", "the cast", "her last picture", "the second half")
PRAISE = ("moves with grace", "is a quiet delight", "earns every laugh", "stays with you")
BLAME = ("never wakes up", "is tired and loud", "runs out of ideas", "forgets its people")
ENDINGS = ("from start to end.", "and knows it.", "which is rare.", "to nobody's surprise.")
PACE = {"scratch": 4.0, "cooc-init": 3.0, "pretrained": 1.6, "frozen": 2.2}
SKILL = {
    "scratch": (0.15, 0.25),
    "cooc-init": (0.38, 0.20),
    "pretrained": (0.62, 0.16),
    "frozen": (0.55, 0.10),
    "cooc-lr": (0.45, 0.17),
    "tfidf": (0.22, 0.30),
    "stack": (0.66, 0.18),
}


FACTS = {"seconds": 20.0, "test_seconds": 1.0, "workers": 1, "threads": 1, "tries": 0}
ABOUT: dict[str, Any] = {  # where a study says nothing else
    **{"dataset": "x", "corpus": "", "task": "classification", "metric": "accuracy"},
    **{"label_names": ["a", "b"], "splits": {}, "command": "", "seeds": [0, 1, 2], "folds": 1},
    **{"all_labels": 1_000_000, "selection": "budget", "shared_test": False, "cuts": []},
    **{"warnings": [], "task_texts": 0, "overlap_checked": "", "parameters": {}},
    **{"pretraining": [], "saved": {}, "versions": {"headstart": "0.1.0"}, "machine": {}},
    "minutes": 1.0,
}


def facts_of(budgets: Sequence[int], *series: tuple[str, str]) -> dict[str, Any]:
    """The part of `about` that says which run is the best, and what each of them costs."""
    arms = [{"arm": arm, "objective": objective} for arm, objective in series]
    facts = [{**arm, "labels": labels, "seed": 0, **FACTS} for arm in arms for labels in budgets]
    return {"budgets": list(budgets), "arms": [arm for arm, _ in series], "best": arms[0],
            "facts": facts}  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """The settings of a generated study; a skill is the margin at 100 labels and its growth."""

    seed: int = 0
    seeds: int = 3
    budgets: tuple[int, ...] = (100, 400, 1600)
    test_rows: int = 800
    label_names: tuple[str, ...] = ("negative", "positive")
    objectives: tuple[str, ...] = ("causal",)
    skill: dict[str, tuple[float, float]] = field(default_factory=lambda: dict(SKILL))
    seed_noise: float = 0.05  # each run's own
    row_noise: float = 0.6  # of a run's prediction, beyond the row's own difficulty
    text: str | None = None  # put into every test row, to see what becomes of it
    about: dict[str, Any] = field(default_factory=dict)  # replaces parts of study.json
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)  # by arm


def fake_study(folder: Path, recipe: Recipe | None = None) -> Path:
    """Write a study into `folder` and return it."""
    write_results(folder, fake_results(recipe or Recipe()))
    return folder


def fake_results(recipe: Recipe) -> Results:
    """Make the results of a study."""
    random = np.random.default_rng(recipe.seed)
    gold = random.integers(len(recipe.label_names), size=recipe.test_rows)
    difficulty = random.normal(0, 1.0, recipe.test_rows)
    numbers = np.arange(recipe.test_rows) + 2  # as in a file with a header
    shared = random.normal(0, 0.05, (recipe.seeds, len(recipe.budgets)))
    values: list[dict[str, Any]] = []
    predictions, facts = [], []
    for run in _runs(recipe):
        start, growth = recipe.skill[run["arm"]]
        skill = start + growth * np.log2(run["labels"] / 100) / 2
        skill += shared[run["seed"], recipe.budgets.index(run["labels"])]
        skill += random.normal(0, recipe.seed_noise) + 0.05 * (run["objective"] == "masked")
        probabilities = _predict(skill, gold, difficulty, recipe, random)
        predictions.append(run_predictions(run, numbers, probabilities, gold))
        values += _values(run, float((probabilities.argmax(1) == gold).mean()), random)
        facts.append({**run, **FACTS, **recipe.facts.get(run["arm"], {})})
    about = {**_about(recipe), "facts": facts, **recipe.about}
    return make_results(about, values, predictions, _rows(numbers, gold, recipe, random))


def _runs(recipe: Recipe) -> list[dict[str, Any]]:
    return [
        {"arm": arm, "objective": objective, "labels": labels, "seed": seed}
        for arm in recipe.skill
        for objective in (recipe.objectives if find_arm(arm).uses_objective else [""])
        for labels in recipe.budgets
        for seed in range(recipe.seeds)
    ]


def _predict(
    skill: float,
    gold: np.ndarray,
    difficulty: np.ndarray,
    recipe: Recipe,
    random: np.random.Generator,
) -> np.ndarray:
    count, classes = len(gold), len(recipe.label_names)
    logits = random.normal(0, recipe.row_noise, (count, classes))
    logits[np.arange(count), gold] += skill + difficulty
    odds = np.exp(1.7 * logits)
    return (odds / odds.sum(1, keepdims=True)).astype(np.float32)


def _values(
    run: dict[str, Any], accuracy: float, random: np.random.Generator
) -> list[dict[str, Any]]:
    found = []
    if find_arm(run["arm"]).is_network:
        pace = PACE.get(run["arm"], 2.0)
        for epoch in range(1, EPOCHS + 1):
            reached = 0.5 + (accuracy - 0.5) * (1 - np.exp(-epoch / pace))
            value = float(np.clip(reached + random.normal(0, 0.006), 0, 1))
            loss = float(0.7 * np.exp(-epoch / pace / 2) + 0.05)
            at = {**run, "epoch": epoch, "seconds": 1.3 * epoch * run["labels"] / 400}
            found.append({**at, "split": "validation", "metric": "accuracy", "value": value})
            found.append({**at, "split": "train", "metric": "loss", "value": loss})
    last = {**run, "epoch": None, "seconds": 20.0, "split": "test"}
    for metric, value in (("accuracy", accuracy), ("macro_f1", accuracy - 0.004)):
        found.append({**last, "metric": metric, "value": value})
    return found


def _rows(
    numbers: np.ndarray, gold: np.ndarray, recipe: Recipe, random: np.random.Generator
) -> list[dict[str, Any]]:
    rows = []
    for row, label in zip(numbers.tolist(), gold, strict=True):
        opinion = random.choice(PRAISE if label else BLAME)
        text = f"{random.choice(SUBJECTS)} {opinion} {random.choice(ENDINGS)}"
        rows.append({"row": row, "text": recipe.text or text, "gold": recipe.label_names[label]})
    return rows


def _about(recipe: Recipe) -> dict[str, Any]:
    counts = count_parameters(preset("small"), len(recipe.label_names)).document()
    last = next(reversed(recipe.skill))
    best = {"arm": last, "objective": recipe.objectives[0] * find_arm(last).uses_objective}
    return {
        **ABOUT,
        **{"best": best, "saved": best, "all_labels": recipe.budgets[-1]},
        "dataset": "rotten-tomatoes",
        "corpus": "imdb",
        "label_names": list(recipe.label_names),
        "splits": {"train": recipe.budgets[-1], "validation": 500, "test": recipe.test_rows},
        "command": "headstart compare rotten-tomatoes --corpus imdb --seeds 3 --out studies/demo",
        "seeds": list(range(recipe.seeds)),
        "budgets": list(recipe.budgets),
        "arms": list(recipe.skill),
        "versions": {"headstart": "0.1.0", "python": "3.11.2", "torch": "2.13.0"},
        "machine": {"processor": "a laptop", "cores": 2, "memory": "8.0 GB"},
        "minutes": 8.4,
        "warnings": [
            "14 texts are in train and in test; they were dropped from train",
            "3 texts are empty after cleaning",
        ],
        "task_texts": 6826,
        "overlap_checked": "27 documents of the corpus contain a test text and were dropped",
        "parameters": dict.fromkeys(recipe.objectives, counts),
        "pretraining": [_pretraining(name) for name in recipe.objectives],
    }


def _pretraining(objective: str) -> dict[str, Any]:
    points: list[dict[str, float | None]] = []
    for step in range(50, 1201, 50):
        loss = 4.1 + 4.9 * float(np.exp(-step / 260))
        held_out = loss + 0.06 + 0.02 * float(np.sin(step))
        measured = step % 100 == 0
        points.append(
            {
                "step": step,
                "tokens": step * 4096,
                "seconds": step * 0.25,
                "train_loss": loss,
                "held_out_loss": held_out if measured else None,
                "perplexity": float(np.exp(held_out)) if measured else None,
                "bits_per_byte": held_out / 3.9 if measured else None,
            }
        )
    return {"objective": objective, "points": points}
