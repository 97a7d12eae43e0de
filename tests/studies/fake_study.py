"""A made-up study that looks like a real one: for the tests, and to look at the report.

`python -m tests.studies.fake_study DIR` writes one. Every run says something of every test row:
the right class gets a margin that grows with the labels and with the arm's skill, and varies with
the row's difficulty, with the seed (shared by the arms, and each run's own) and by chance.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headstart.data.overlap import overlap_sentence
from headstart.model.counts import count_parameters
from headstart.model.presets import preset
from headstart.studies.outcomes import FINAL, Measure, RunKey
from headstart.studies.results import (
    Predictions,
    PretrainingCurve,
    Study,
    TestRow,
    write_measures,
    write_predictions,
    write_study,
    write_test_rows,
)

EPOCHS = 15
WITHOUT_BASE = ("tfidf", "cooccurrence")
SUBJECTS = ("the film", "this story", "the cast", "her last picture", "the second half")
PRAISE = ("moves with grace", "is a quiet delight", "earns every laugh", "stays with you")
BLAME = ("never wakes up", "is tired and loud", "runs out of ideas", "forgets its people")
ENDINGS = ("from start to end.", "and knows it.", "which is rare.", "to nobody's surprise.")


@dataclass(frozen=True)
class Recipe:
    """What the made-up study is made of; skills are margins at 100 labels and their growth."""

    seed: int = 0
    seeds: int = 3
    budgets: tuple[int, ...] = (100, 400, 1600)
    test_rows: int = 800
    label_names: tuple[str, ...] = ("negative", "positive")
    objectives: tuple[str, ...] = ("causal",)
    skill: dict[str, tuple[float, float]] = field(
        default_factory=lambda: {
            "scratch": (0.15, 0.25),
            "counted": (0.38, 0.20),
            "pretrained": (0.62, 0.16),
            "frozen": (0.55, 0.10),
            "cooccurrence": (0.45, 0.17),
            "tfidf": (0.22, 0.30),
            "stack": (0.66, 0.18),
        }
    )
    seed_noise: float = 0.05  # each run's own
    shared_seed_noise: float = 0.05  # of the rows drawn, the same for every arm
    row_noise: float = 0.6  # what a run says of a row, beyond the row's own difficulty
    preset: str = "small"
    text: str | None = None  # put into every test row, to see what becomes of it


def fake_study(folder: Path, recipe: Recipe | None = None) -> Path:
    """Write the four files of a study into `folder` and return it."""
    recipe = recipe or Recipe()
    random = np.random.default_rng(recipe.seed)
    classes = len(recipe.label_names)
    gold = random.integers(classes, size=recipe.test_rows)
    difficulty = random.normal(0, 1.0, recipe.test_rows)
    measures: list[Measure] = []
    said: list[Predictions] = []
    shared = random.normal(0, recipe.shared_seed_noise, (recipe.seeds, len(recipe.budgets)))
    for key in _runs(recipe):
        start, growth = recipe.skill[key.arm]
        skill = start + growth * np.log2(key.labels / 100) / 2
        skill += shared[key.seed, recipe.budgets.index(key.labels)]
        skill += random.normal(0, recipe.seed_noise) + 0.05 * (key.objective == "masked")
        run = _predict(key, skill, gold, difficulty, recipe, random)
        said.append(run)
        measures += _measure(key, float((run.predicted == gold).mean()), random)
    write_measures(folder, measures)
    write_predictions(folder, said)
    write_test_rows(folder, _rows(gold, recipe, random))
    write_study(folder, _study(recipe))
    return folder


def _runs(recipe: Recipe) -> list[RunKey]:
    return [
        RunKey(arm, objective, labels, seed)
        for arm in recipe.skill
        for objective in ([""] if arm in WITHOUT_BASE else recipe.objectives)
        for labels in recipe.budgets
        for seed in range(recipe.seeds)
    ]


def _predict(
    key: RunKey,
    skill: float,
    gold: np.ndarray,
    difficulty: np.ndarray,
    recipe: Recipe,
    random: np.random.Generator,
) -> Predictions:
    count, classes = len(gold), len(recipe.label_names)
    logits = random.normal(0, recipe.row_noise, (count, classes))
    logits[np.arange(count), gold] += skill + difficulty
    odds = np.exp(1.7 * logits)
    probabilities = (odds / odds.sum(1, keepdims=True)).astype(np.float32)
    rows = np.arange(count, dtype=np.int64)
    return Predictions(key, rows, gold, probabilities.argmax(1), probabilities)


def _measure(key: RunKey, accuracy: float, random: np.random.Generator) -> list[Measure]:
    found = []
    pace = {"scratch": 4.0, "counted": 3.0, "pretrained": 1.6, "frozen": 2.2}.get(key.arm, 2.0)
    if key.arm not in WITHOUT_BASE:
        for epoch in range(1, EPOCHS + 1):
            reached = 0.5 + (accuracy - 0.5) * (1 - np.exp(-epoch / pace))
            value = float(np.clip(reached + random.normal(0, 0.006), 0, 1))
            loss = float(0.7 * np.exp(-epoch / pace / 2) + 0.05)
            seconds = 1.3 * epoch * key.labels / 400
            found.append(Measure(key, epoch, "validation", "accuracy", value, seconds))
            found.append(Measure(key, epoch, "train", "loss", loss, seconds))
    for metric, value in (("accuracy", accuracy), ("macro_f1", accuracy - 0.004)):
        found.append(Measure(key, FINAL, "test", metric, value, 20.0))
    return found


def _rows(gold: np.ndarray, recipe: Recipe, random: np.random.Generator) -> list[TestRow]:
    rows = []
    for row, label in enumerate(gold):
        opinion = random.choice(PRAISE if label else BLAME)
        text = f"{random.choice(SUBJECTS)} {opinion} {random.choice(ENDINGS)}"
        rows.append(TestRow(row, recipe.text or text, recipe.label_names[label]))
    return rows


def _study(recipe: Recipe) -> Study:
    chosen = preset(recipe.preset)
    counts = count_parameters(chosen, len(recipe.label_names)).document()
    return Study(
        dataset="rotten-tomatoes",
        corpus="imdb",
        label_names=list(recipe.label_names),
        splits={"train": recipe.budgets[-1], "validation": 500, "test": recipe.test_rows},
        command="headstart compare rotten-tomatoes --corpus imdb --seeds 3 --out studies/demo",
        seeds=list(range(recipe.seeds)),
        budgets=list(recipe.budgets),
        arms=list(recipe.skill),
        versions={"headstart": "0.1.0", "python": "3.11.2", "torch": "2.13.0"},
        machine={"processor": "a laptop", "cores": 2, "memory_gb": 8.0, "precision": "fp32"},
        minutes=8.4,
        warnings=[
            "14 texts stand in train and in test; they were taken out of train",
            "3 texts are empty after cleaning",
        ],
        task_texts=6826,
        overlap_dropped=27,
        overlap_checked=overlap_sentence({"equal": 20, "contains": 7}),
        parameters=dict.fromkeys(recipe.objectives, counts),
        pretraining=[_pretraining(objective) for objective in recipe.objectives],
    )


def _pretraining(objective: str) -> PretrainingCurve:
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
    samples = [
        {"prompt": "the film was", "text": "the film was a little too long but the acting is"},
        {"prompt": "i would not", "text": "i would not recommend this to anyone who has seen"},
    ]
    if objective == "masked":
        samples = [{"prompt": "a very [MASK] film", "text": "good · bad · funny · strange"}]
    return PretrainingCurve(objective, points, samples)


if __name__ == "__main__":
    fake_study(Path(sys.argv[1]), Recipe(objectives=tuple(sys.argv[2:]) or ("causal",)))
