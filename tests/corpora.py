"""Generate documents of simple sentences, each document about one subject."""

import random
from pathlib import Path

SUBJECTS = {
    "cat": ("chases", "mouse"),
    "dog": ("guards", "house"),
    "bird": ("builds", "nest"),
    "cook": ("stirs", "soup"),
    "judge": ("reads", "law"),
    "child": ("kicks", "ball"),
}


def sentence(subject: str, generator: random.Random) -> str:
    verb, thing = SUBJECTS[subject]
    colour = generator.choice(["old", "small", "quiet", "happy"])
    return f"the {colour} {subject} {verb} the {thing} ."


def document(generator: random.Random, sentences: int = 6) -> str:
    subject = generator.choice(list(SUBJECTS))
    return " ".join(sentence(subject, generator) for _ in range(sentences))


def write_corpus(path: Path, documents: int = 400, seed: int = 0) -> Path:
    generator = random.Random(seed)
    path.write_text("".join(document(generator) + "\n" for _ in range(documents)), encoding="utf-8")
    return path
