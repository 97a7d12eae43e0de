"""Small labelled datasets, for tests of fine-tuning and of what comes after."""

import csv
import json
import random
from pathlib import Path

from headstart.config import FinetuneConfig
from headstart.data.dataset import Dataset, Splits
from tests.corpora import SUBJECTS, sentence

ANIMALS = ("cat", "dog", "bird")
LABELS = ("animal", "person")
PEOPLE = ["Ada Lovelace", "Alan Turing", "Grace Hopper", "Emmy"]
PLACES = ["Paris", "New York", "Oslo"]
NAMES = ["Ada", "Alan", "Grace", "Emmy", "Kurt", "Rosa"]
SEVERAL = ["cat", "dog", "bird"]
THINGS = [*SEVERAL, "cook"]
MACHINE = {"device": "cpu", "threads": 1, "precision": "fp32"}
TINY = {"vocab_size": 300, "width": 16, "layers": 2, "heads": 2, "feed_forward_width": 32}


def dataset(rows: int, seed: int = 0, sentences: int = 2, wrong: float = 0.0) -> Dataset:
    """Texts about animals or people; a share `wrong` of the labels is flipped."""
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


def config(**changes) -> FinetuneConfig:
    sizes = {} if changes.get("base") else TINY
    settings = {"dataset": ["generated"], "epochs": 3, "learning_rate": 1e-2, **MACHINE}
    return FinetuneConfig.create(**{**settings, **sizes, **changes})


def write_csv(path: Path, data: Dataset) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for text, label in zip(data.texts, data.labels, strict=True):
            writer.writerow([text, data.label_names[label]])
    return path


def write_conll(path, sentences=200, seed=0):
    """Sentences about people (PER) and places (LOC)."""
    generator = random.Random(seed)
    lines = []
    for number in range(sentences):
        tagged = [(str(number), "O")]
        for name, kind in ((generator.choice(PEOPLE), "PER"), (generator.choice(PLACES), "LOC")):
            words = name.split()
            tagged += [(word, f"{'I' if n else 'B'}-{kind}") for n, word in enumerate(words)]
            tagged.append((generator.choice(["lives in", "saw"]).split()[0], "O"))
        lines += [f"{word}\tX\t{tag}" for word, tag in tagged] + [""]
    path.write_text("-DOCSTART- -X- O\n\n" + "\n".join(lines) + "\n")
    return path


def write_squad(path, texts=150, none=0.0, seed=0):
    """Who is in the house? The name before "lives" is the answer."""
    generator = random.Random(seed)
    paragraphs = []
    for number in range(texts):
        one, two = generator.sample(NAMES, 2)
        context = f"In year {number}, {one} lives here. {two} works there!"
        verb, answer = generator.choice([("lives", one), ("works", two)])
        answers = [{"text": answer, "answer_start": context.index(f"{answer} {verb}")}]
        asked = {"id": f"q{number}", "question": f"who {verb}?", "answers": answers}
        if generator.random() < none:
            asked |= {"question": "who sleeps?", "answers": [], "is_impossible": True}
        paragraphs.append({"context": context, "qas": [asked]})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return path


def write_labels(path, rows=240, seed=0):
    """Texts with none, some or all of three labels, as JSON Lines."""
    generator = random.Random(seed)
    lines = []
    for number in range(rows):
        labels = [name for name in SEVERAL if generator.random() < 0.4]
        text = f"{number} we saw " + " and ".join(labels or ["nothing"])
        lines.append(json.dumps({"text": text, "labels": labels}) + "\n")
    path.write_text("".join(lines))
    return path


def write_pairs(path, rows=300, seed=0):
    """Pairs of texts; the label says whether both name the same thing."""
    generator = random.Random(seed)
    lines = ["premise,hypothesis,label\n"]
    for number in range(rows):
        first, other = generator.sample(THINGS, 2)
        second, label = (first, "y") if number % 2 else (other, "n")
        lines.append(f"{number} a {first},the {second},{label}\n")
    path.write_text("".join(lines))
    return path
