"""Small labelled datasets, for tests of fine-tuning and of what comes after."""

import csv
import random
from pathlib import Path

from headstart.text.dataset import Dataset, Splits
from headstart.training.finetune_recipe import FinetuneRecipe
from tests.corpora import SUBJECTS, sentence

ANIMALS = ("cat", "dog", "bird")
LABELS = ("animal", "person")
TINY = {"vocab_size": 300, "width": 16, "layers": 2, "heads": 2, "feed_forward_width": 32}


def dataset(rows: int, seed: int = 0, sentences: int = 2, wrong: float = 0.0) -> Dataset:
    """Texts about animals or people; `wrong` of the labels are turned around."""
    generator = random.Random(seed)
    texts, labels = [], []
    for number in range(rows):
        person = number % 2
        names = [name for name in SUBJECTS if (name not in ANIMALS) == bool(person)]
        text = " ".join(sentence(generator.choice(names), generator) for _ in range(sentences))
        texts.append(f"{number} {text}")
        labels.append(person if generator.random() >= wrong else 1 - person)
    return Dataset("generated", texts, labels, LABELS)


def splits(rows: int = 80, **options) -> Splits:
    validation, test = dataset(40, 1, **options), dataset(40, 2, **options)
    return Splits(dataset(rows, 0, **options), validation, test)


def recipe(**changes) -> FinetuneRecipe:
    sizes = {} if changes.get("base", "none") != "none" else TINY
    settings = {"dataset": ["generated"], "epochs": 3, "learning_rate": 1e-2, "threads": 1}
    return FinetuneRecipe(**{**settings, **sizes, **changes})


def write_csv(path: Path, data: Dataset) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for text, label in zip(data.texts, data.labels, strict=True):
            writer.writerow([text, data.label_names[label]])
    return path
