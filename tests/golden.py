"""Compare what Headstart computes with recorded facts, through its command line only.

    python -m tests.golden               compare with tests/golden.json, about two minutes
    python -m tests.golden --only tasks  compare the groups whose name begins so
    python -m tests.golden --write       record the facts anew, after a change that is meant

All data is generated here with fixed seeds; every training has one thread and fp32. Only the
command line is used, so the facts survive a rewrite of what is behind it.
"""

import argparse
import csv
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conftest import run_here

RECORDED = Path(__file__).with_name("golden.json")
# How far a value may be from the recorded one: relative where it is above 1.
TOLERANCES = {"params": 0.0, "pretrain": 1e-5, "base": 1e-5, "tasks": 1e-4}
MACHINE = ["--threads", "1", "--precision", "fp32"]
SIZES = ["--vocab-size", "400", "--width", "32", "--layers", "2", "--heads", "2"]
SIZES += ["--feed-forward-width", "64"]
FULL, SAMPLED = ["--softmax", "full"], ["--softmax", "sampled"]

Facts = dict[str, Any]
Cases = Iterator[tuple[str, Facts]]


def run(*words: object) -> Any:
    """Run one command with `--json` and return its document."""
    result = run_here([*map(str, words), "--json"])
    if result.returncode:
        raise SystemExit(f"{' '.join(result.args)}\n{result.stderr}")
    return json.loads(result.stdout)


# ---------------------------------------------------------------- data


TOPICS = 4
SYLLABLES = ["ba", "ce", "du", "fe", "gi", "hi", "ji", "ko", "lu", "mo", "ne", "pa", "ri", "so"]
ENDS = ["co", "du", "ga", "fe", "ka", "lo", "mu", "ne", "pa", "ra"]
WORDS = [start + end for start in SYLLABLES for end in ENDS]
NAMES = ["Ada", "Boris", "Clara", "Dmitri", "Emmy", "Farid", "Greta", "Hugo"]
CITIES = ["Oslo", "Paris", "Quito", "Rome"]


def topic_words(topic: int) -> list[str]:
    return WORDS[topic * len(WORDS) // TOPICS : (topic + 1) * len(WORDS) // TOPICS]


def text(generator: random.Random, topics: list[int], words: int) -> str:
    """Words of the topics, half of them followed by the word that belongs to them."""
    chosen: list[str] = []
    while len(chosen) < words:
        pool = topic_words(generator.choice(topics)) if generator.random() < 0.5 else WORDS
        number = generator.randrange(len(pool))
        chosen.append(pool[number])
        if generator.random() < 0.5:
            chosen.append(pool[(number * 7 + 3) % len(pool)])
        if generator.random() < 0.1:
            chosen[-1] += "."
    return " ".join(chosen)


def labelled(task: str, generator: random.Random) -> Any:
    """One row of a task."""
    noisy = generator.random() < 0.1
    if task == "classification":
        topic = generator.randrange(TOPICS)
        shown = generator.randrange(TOPICS) if noisy else topic
        return {
            "text": text(generator, [topic], generator.randint(6, 40)),
            "label": ["low", "high"][shown % 2],
        }
    if task == "multi-label":
        topics = generator.sample(range(TOPICS), generator.choice([1, 1, 2]))
        named = "|".join(f"t{topic}" for topic in sorted(topics) if topic or not noisy)
        return {"text": text(generator, topics, 20), "labels": named}
    if task == "pairs":
        one, other = (int(generator.random() < 0.7) for _ in range(2))
        both = (one == other == 1) != noisy
        return {
            "text": text(generator, [one], 12),
            "second": text(generator, [other], 12),
            "label": "both" if both else "one",
        }
    words = text(generator, [generator.randrange(TOPICS)], 8).split()
    person, other = generator.sample(NAMES, 2)
    city = generator.choice(CITIES)
    if task == "tagging":
        tagged = [(word, "O") for word in words[:3]] + [(person, "B-PER")]
        if noisy:
            tagged.append(("Lund", "I-PER"))
        tagged += [(word, "O") for word in words[3:6]] + [(city, "B-LOC"), (words[6], "O")]
        return tagged
    before = f"{words[0]} {words[1]} {person} lives in "
    context = f"{before}{city}, {words[2]}. {other} works in {generator.choice(CITIES)}."
    answer = (person, context.index(person)) if not noisy else (other, context.index(other))
    question = f"who {'works' if noisy else 'lives'} {words[3]}?"
    return {"context": context, "question": question, "answer": answer}


def write_rows(task: str, path: Path, count: int, seed: int) -> Path:
    generator = random.Random(seed)
    rows = [labelled(task, generator) for _ in range(count)]
    if task == "tagging":
        sentences = ["".join(f"{word}\tX\t{tag}\n" for word, tag in row) for row in rows]
        path.write_text("\n".join(sentences))
    elif task == "spans":
        paragraphs = []
        for number, row in enumerate(rows):
            found, start = row["answer"]
            answers = [{"text": found, "answer_start": start}]
            asked = {"id": f"{seed}-{number}", "question": row["question"], "answers": answers}
            paragraphs.append({"context": row["context"], "qas": [asked]})
        path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    return path


class Data:
    """The generated files of one comparison, and the bases that several groups need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        generator = random.Random(7)
        lines = [text(generator, [generator.randrange(TOPICS)], 50) for _ in range(500)]
        self.corpus = folder / "corpus.txt"
        self.corpus.write_text("\n".join(lines) + "\n")
        (folder / "unseen.txt").write_text(text(generator, [1], 400) + "\n")
        # More words than the sampled softmax scores, the first ones the most frequent.
        many = [one + two + three for one in SYLLABLES for two in ENDS for three in SYLLABLES]
        generator.shuffle(many)
        drawn = [int(len(many) ** generator.random()) - 1 for _ in range(60_000)]
        words = [many[number] for number in drawn]
        lines = [" ".join(words[start : start + 60]) for start in range(0, len(words), 60)]
        self.wide_corpus = folder / "wide.txt"
        self.wide_corpus.write_text("\n".join(lines) + "\n")

    def dataset(self, task: str) -> list[object]:
        """The arguments of a dataset whose parts are files, so that no split is drawn."""
        folder = self.folder / task
        if not folder.is_dir():
            folder.mkdir()
            suffix = {"tagging": "conll", "spans": "json"}.get(task, "csv")
            parts = (("train", 240), ("validation", 80), ("test", 120))
            for seed, (part, rows) in enumerate(parts, start=100):
                write_rows(task, folder / f"{part}.{suffix}", rows, seed)
        pairs = ["--text-column", "text", "--second-column", "second"]
        return [folder, "--task", task, *(pairs if task == "pairs" else [])]

    def base(self, objective: str) -> Path:
        """A base after 60 steps; one that was made is not made again."""
        folder = self.folder / f"p-{objective}"
        if not folder.is_dir():
            pretraining(self, objective, "--objective", objective, *FULL)
        return folder


# ---------------------------------------------------------------- the facts, group by group


def params(data: Data) -> Cases:
    total = run("params", "--preset", "lab", "--vocab-size", 100)["total"]
    yield "lab, 100 tokens", total
    for preset in ("lab", "small", "bert", "gpt2"):
        counted = run("params", "--preset", preset)
        totals = {f"total.{head}": count for head, count in counted["total"].items()}
        yield preset, {"base": counted["base"], **totals}
    words = ["--preset", "small", "--objective", "masked", *SIZES, "--classes", 5]
    yield "small, masked, five classes", run("params", *words)["total"]


def pretrain(data: Data) -> Cases:
    for name in ("causal", "masked", "next-sentence"):
        given = ["--objective", "masked+next-sentence" if name == "next-sentence" else name]
        yield name, pretraining(data, name, *given, *FULL)
        random_init = [*given, *FULL, "--embedding-init", "random"]
        yield f"{name}, random init", pretraining(data, f"{name}-random", *random_init)
        yield f"{name}, sampled", pretraining(data, f"{name}-s", *given, *SAMPLED, wide=True)
    for preset, objective in (("lab", "causal"), ("bert", "masked"), ("gpt2", "causal")):
        given = ["--preset", preset, "--objective", objective]
        yield preset, pretraining(data, preset, *given, *FULL)
        yield f"{preset}, sampled", pretraining(data, f"{preset}-s", *given, *SAMPLED, wide=True)
    given = ["--preset", "lab", "--objective", "masked"]
    yield "lab, masked", pretraining(data, "lab-masked", *given, *FULL)
    given = ["--base", data.base("causal"), "--seed", 1]
    yield "continued", pretraining(data, "continued", *given, *FULL, sizes=[])


def pretraining(
    data: Data, name: str, *options: Any, sizes: list[str] = SIZES, wide: bool = False
) -> Facts:
    words = ["pretrain", data.wide_corpus if wide else data.corpus, "--steps", 60]
    words += ["--out", data.folder / f"p-{name}", "--length", 32, "--batch-tokens", 512]
    words += ["--held-out", 0.1, "--learning-rate", 5e-3, *MACHINE, *sizes]
    result = run(*words, *(["--vocab-size", 3000] if wide else []), *options)
    facts = {name: result[name] for name in ("steps", "tokens", "parameters")}
    return {"held-out loss": result["held_out"]["loss"], **facts}


def base(data: Data) -> Cases:
    """What bases do by themselves."""
    prompt = "baco cedu duga"
    greedy = run("generate", data.base("causal"), prompt, "--tokens", 12, "--temperature", 0)
    yield "generate", {"text": greedy["text"]}
    drawn = run("generate", data.base("causal"), prompt, "--tokens", 12, "--seed", 3)
    yield "generate, sampled", {"text": drawn["text"]}
    measured = run("perplexity", data.base("causal"), data.folder / "unseen.txt", "--length", 32)
    yield "perplexity", {name: measured[name] for name in ("loss", "perplexity", "tokens")}
    (gap,) = run("fill", data.base("masked"), "baco [MASK] duga bafe")["gaps"]
    yield "fill", {entry["token"]: entry["probability"] for entry in gap}


def finetuning(data: Data, name: str, *options: Any) -> Facts:
    """A short fine-tuning and its validation and test metrics."""
    out = data.folder / f"t-{name}"
    words = [
        "finetune",
        *data.dataset(name.split(",")[0]),
        "--out",
        out,
        "--epochs",
        3,
        "--seed",
        0,
    ]
    result = run(*words, "--batch-size", 16, "--no-baselines", *MACHINE, *options)
    validation = result["validation"]
    facts = {"validation loss": validation["validation_loss"]}
    facts |= {"steps": result["steps"], "parameters": result["parameters"]}
    tested = run("evaluate", out, "--no-baselines")
    for part, found in (("validation", validation), ("test", tested)):
        for metric, value in found.items():
            counted = metric in ("train_loss", "validation_loss", "seconds", "rows", "seen_rows")
            if isinstance(value, int | float) and not counted:
                facts[f"{part} {metric}"] = value
    return facts


def tasks(data: Data) -> Cases:
    fast = ["--learning-rate", 3e-3]
    scratch = [*SIZES, *fast]
    pretrained = ["--base", data.base("causal"), *fast]
    masked = ["--base", data.base("masked"), *fast]
    average = ["--average", "0.7"]
    cases = {
        "classification, scratch": scratch,
        "classification, pretrained": pretrained,
        "classification, masked": masked,
        "classification, random head": [*pretrained, "--head-init", "random"],
        "classification, frozen": [*pretrained, "--freeze"],
        "classification, truncated": [*pretrained, "--long", "truncate"],
        "classification, by loss": [*pretrained, "--selection-metric", "loss"],
        "classification, averaged": [*pretrained, *average],
        "classification, mean pooling": [*pretrained, "--pooling", "mean"],
        "classification, every token": [*pretrained, "--token-dropout", 0],
        "classification, lab": [*scratch, "--preset", "lab", *average],
        "multi-label": pretrained,
        "pairs": pretrained,
        "pairs, masked": masked,
        "tagging": pretrained,
        "spans": masked,
    }
    for name, options in cases.items():
        yield name, finetuning(data, name, *options)


# ---------------------------------------------------------------- comparing


def compare(group: str, expected: Facts, found: Facts) -> list[str]:
    """One line per fact that differs."""
    wrong = [f"{name}: not in both" for name in expected.keys() ^ found.keys()]
    for name in expected.keys() & found.keys():
        was, now = expected[name], found[name]
        limit = TOLERANCES[group]
        if isinstance(was, float | int) and group != "tasks":
            limit *= max(1.0, abs(was))
        same = was == now if isinstance(was, str) else abs(was - now) <= limit
        if not same:
            wrong.append(f"{name}: {now!r} instead of {was!r}")
    return sorted(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="record instead of comparing")
    parser.add_argument("--only", default="", help="only groups whose name begins so")
    given = parser.parse_args()
    recorded = json.loads(RECORDED.read_text())
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        os.environ["HEADSTART_CACHE"] = f"{scratch}/cache"
        data = Data(Path(scratch))
        for make_facts in (params, pretrain, base, tasks):
            group = make_facts.__name__
            if not group.startswith(given.only):
                continue
            facts = dict(make_facts(data))
            if given.write:
                recorded[group] = facts
            for name in recorded[group].keys() | facts.keys():
                lines = compare(group, recorded[group].get(name, {}), facts.get(name, {}))
                wrong += len(lines)
                for line in lines or ["ok"]:
                    print(f"{group}: {name}: {line}", flush=True)
    if given.write:
        RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
    print(f"{wrong} facts differ" if wrong else "all facts hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
