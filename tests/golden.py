"""Compare what Headstart computes with recorded facts, through its command line only.

    python -m tests.golden               compare with tests/golden.json, about two minutes
    python -m tests.golden --only tasks  compare the groups whose name begins so
    python -m tests.golden --write       record the facts anew, after a change that is meant
    python -m tests.golden --demo        also the study of `make demo`, about fifteen minutes
    python -m tests.golden --demo FOLDER the same from a study that has been run already

All data is generated here with fixed seeds; every training has one thread and fp32. Nothing of
`headstart` is imported, so the facts survive a rewrite of its internals; a renamed option or a
renamed field of a `--json` document is changed in the tables below.
"""

import argparse
import csv
import json
import math
import os
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pyarrow.parquet as parquet

RECORDED = Path(__file__).with_name("golden.json")

# What may be renamed: the command line's words ...
OPTIONS = {
    "full softmax": ["--softmax", "full"],
    "sampled softmax": ["--softmax", "sampled"],
    "random init": ["--embedding-init", "random"],
    "random head": ["--head-init", "random"],
    "select by loss": ["--selection-metric", "loss"],
    "truncate": ["--long", "truncate"],
    "average": ["--average", "0.7"],
    "frozen": ["--freeze"],
    "feed forward": "--feed-forward-width",
    "masked+next-sentence": "masked+next-sentence",
}
# ... arms (our word here: the study's word), and fields of the documents.
ARMS = {"cooccurrence": "cooc-lr"}  # names of golden.json, and names of today
FIELDS = {
    "held-out loss": "held_out.loss",
    "validation loss": "validation.validation_loss",
    "filled token": "token",
}

# How far a value may be from the recorded one: relative for losses, absolute for shares.
TOLERANCES = {
    "params": 0.0,
    "pretrain": 1e-5,
    "base": 1e-5,
    "tasks": 1e-4,
    "predict": 1e-5,
}
# A study may select other epochs and settings after a change that is meant: its means over
# seeds may move by this much, or by three standard errors where that is more. The small studies
# have 120 test rows, the demo about a thousand.
SPREADS = {"studies": 0.06, "demo": 0.02}

METRICS = {"multi-label": "micro_f1", "tagging": "f1", "spans": "f1"}  # else accuracy
MACHINE = ["--threads", "1", "--precision", "fp32"]
SIZES = ["--vocab-size", "400", "--width", "32", "--layers", "2", "--heads", "2"]
SIZES += [OPTIONS["feed forward"], "64"]
TEXTS = [
    "baco cedu duga bafe cedu",
    "gika hilo jimu gika kone",
    "baco gika duga hilo",
    "entirely unknown words, in English!",
    "lupa",
]

Facts = dict[str, Any]


# ---------------------------------------------------------------- the command line


def run(*words: object) -> Any:
    """Run one command with `--json` in a forked process and return its document."""
    arguments = [*map(str, words), "--json"]
    with tempfile.TemporaryDirectory() as folder:
        printed, errors = Path(folder, "out"), Path(folder, "err")
        child = os.fork()
        if child == 0:
            _become_command(arguments, printed, errors)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code:
            raise SystemExit(f"headstart {' '.join(arguments)}\n{errors.read_text()}")
        return json.loads(printed.read_text(encoding="utf-8"))


def _become_command(arguments: list[str], printed: Path, errors: Path) -> None:
    import runpy

    for number, path in ((1, printed), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["headstart", *arguments]
    code: Any = 1
    try:
        runpy.run_module("headstart", run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def field(document: Any, path: str) -> Any:
    for name in path.split("."):
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


def numbers(document: Any, *drop: str) -> Facts:
    """The numbers of a document by their path, without those that no tolerance fits."""
    dropped = ("seconds", "minutes", "low", "high", *drop)
    found: Facts = {}
    if isinstance(document, dict):
        for name, value in document.items():
            if name == "value":
                found[""] = value
            elif name not in dropped:
                inner = numbers(value, *drop)
                found |= {f"{name}.{rest}" if rest else name: v for rest, v in inner.items()}
    elif isinstance(document, (int, float)) and not isinstance(document, bool):
        found[""] = document
    return found


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


SUFFIX = defaultdict(lambda: "csv", {"tagging": "conll", "spans": "json"})


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

    def dataset(self, task: str, train: int = 240) -> list[object]:
        """The arguments of a dataset whose parts are files, so that no split is drawn."""
        folder = self.folder / f"{task}-{train}"
        parts = {"train": train, "validation": 80, "test": 120}
        if not folder.is_dir():
            folder.mkdir()
            for seed, (part, count) in enumerate(parts.items()):
                write_rows(task, folder / f"{part}.{SUFFIX[task]}", count, 100 + seed)
        words: list[object] = [folder, "--task", task]
        if task == "pairs":
            words += ["--text-column", "text", "--second-column", "second"]
        return words

    def base(self, objective: str) -> Path:
        """A base after 60 steps; one that was made is not made again."""
        folder = self.folder / f"p-{objective}"
        if not folder.is_dir():
            words = ["--objective", objective, *OPTIONS["full softmax"]]
            _pretraining(self, objective, *words)
        return folder


# ---------------------------------------------------------------- the facts, group by group


def params(data: Data) -> Iterator[tuple[str, Facts]]:
    exercise = run("params", "--preset", "lab", "--vocab-size", 100)
    yield "lab, 100 tokens", numbers(exercise["total"])
    for preset in ("lab", "small", "bert", "gpt2"):
        counted = run("params", "--preset", preset)
        yield preset, numbers({"base": counted["base"], "total": counted["total"]})
    counted = run("params", "--preset", "small", "--objective", "masked", *SIZES, "--classes", 5)
    yield "small, masked, five classes", numbers(counted["total"])


def pretrain(data: Data) -> Iterator[tuple[str, Facts]]:
    full, sampled = OPTIONS["full softmax"], OPTIONS["sampled softmax"]
    objectives = ["causal", "masked", OPTIONS["masked+next-sentence"]]
    for name, objective in zip(("causal", "masked", "next-sentence"), objectives, strict=True):
        given = ["--objective", objective]
        yield name, _pretraining(data, name, *given, *full)
        random_init = [*given, *full, *OPTIONS["random init"]]
        yield f"{name}, random init", _pretraining(data, f"{name}-random", *random_init)
        yield f"{name}, sampled", _pretraining(data, f"{name}-s", *given, *sampled, wide=True)
    for preset in ("lab", "bert", "gpt2"):
        objective = "masked" if preset == "bert" else "causal"
        given = ["--preset", preset, "--objective", objective]
        yield preset, _pretraining(data, preset, *given, *full)
        yield f"{preset}, sampled", _pretraining(data, f"{preset}-s", *given, *sampled, wide=True)
    given = ["--preset", "lab", "--objective", "masked"]
    yield "lab, masked", _pretraining(data, "lab-masked", *given, *full)
    given = ["--base", data.base("causal"), "--seed", 1]
    yield "continued", _pretraining(data, "continued", *given, *full, sizes=[])


def _pretraining(
    data: Data, name: str, *options: Any, sizes: list[str] = SIZES, wide: bool = False
) -> Facts:
    words = ["pretrain", data.wide_corpus if wide else data.corpus, "--steps", 60]
    words += ["--out", data.folder / f"p-{name}", "--length", 32, "--batch-tokens", 512]
    words += ["--held-out", 0.1, "--learning-rate", 5e-3, *MACHINE, *sizes]
    words += ["--vocab-size", 3000] if wide else []
    result = run(*words, *options)
    facts = {"held-out loss": field(result, FIELDS["held-out loss"])}
    return facts | {name: result[name] for name in ("steps", "tokens", "parameters")}


def base(data: Data) -> Iterator[tuple[str, Facts]]:
    """What bases do by themselves."""
    prompt = "baco cedu duga"
    greedy = run("generate", data.base("causal"), prompt, "--tokens", 12, "--temperature", 0)
    yield "generate", {"text": greedy["text"]}
    drawn = run("generate", data.base("causal"), prompt, "--tokens", 12, "--seed", 3)
    yield "generate, sampled", {"text": drawn["text"]}
    measured = run("perplexity", data.base("causal"), data.folder / "unseen.txt", "--length", 32)
    yield "perplexity", {name: measured[name] for name in ("loss", "perplexity", "tokens")}
    filled = run("fill", data.base("masked"), "baco [MASK] duga bafe")
    token, gap = FIELDS["filled token"], filled["gaps"][0]
    yield "fill", {entry[token]: entry["probability"] for entry in gap}


def _finetuning(data: Data, name: str, task: str, *options: Any) -> tuple[Path, Facts]:
    """A short fine-tuning and its validation and test metrics."""
    out = data.folder / f"t-{name}"
    words = ["finetune", *data.dataset(task), "--out", out, "--epochs", 3]
    result = run(*words, "--seed", 0, "--batch-size", 16, "--no-baselines", *MACHINE, *options)
    facts = {"validation loss": field(result, FIELDS["validation loss"])}
    facts |= {"steps": result["steps"], "parameters": result["parameters"]}
    validation = numbers(result["validation"], "train_loss", "validation_loss", "loss")
    facts |= {f"validation {name}": value for name, value in validation.items()}
    found = run("evaluate", out, "--no-baselines")
    dropped = ("confusion", "classes", "mistakes", "calibration", "rows", "seen_rows", "labels")
    dropped += ("intervals",)
    tested = numbers(found, *dropped)
    return out, facts | {f"test {name}": value for name, value in tested.items()}


def tasks(data: Data) -> Iterator[tuple[str, Facts]]:
    fast = ["--learning-rate", 3e-3]
    scratch = [*SIZES, *fast]
    pretrained = ["--base", data.base("causal"), *fast]
    masked = ["--base", data.base("masked"), *fast]
    cases = {
        "classification, scratch": ("classification", scratch),
        "classification, pretrained": ("classification", pretrained),
        "classification, masked": ("classification", masked),
        "classification, random head": ("classification", pretrained + OPTIONS["random head"]),
        "classification, frozen": ("classification", pretrained + OPTIONS["frozen"]),
        "classification, truncated": ("classification", pretrained + OPTIONS["truncate"]),
        "classification, by loss": ("classification", pretrained + OPTIONS["select by loss"]),
        "classification, averaged": ("classification", pretrained + OPTIONS["average"]),
        "classification, mean pooling": ("classification", [*pretrained, "--pooling", "mean"]),
        "classification, every token": ("classification", [*pretrained, "--token-dropout", 0]),
        "classification, lab": (
            "classification",
            [*scratch, "--preset", "lab", *OPTIONS["average"]],
        ),
        "multi-label": ("multi-label", pretrained),
        "pairs": ("pairs", pretrained),
        "pairs, masked": ("pairs", masked),
        "tagging": ("tagging", pretrained),
        "spans": ("spans", masked),
    }
    for name, (task, options) in cases.items():
        yield name, _finetuning(data, name, task, *options)[1]


def predict(data: Data) -> Iterator[tuple[str, Facts]]:
    fast = ["--learning-rate", 3e-3]
    out, _ = _finetuning(data, "predict", "classification", "--base", data.base("causal"), *fast)
    for entry in run("predict", out, *TEXTS)["predictions"]:
        yield f"network: {entry['text']}", entry["probabilities"]


def studies(data: Data) -> Iterator[tuple[str, Facts]]:
    networks = ["scratch", "cooc-init", "pretrained"]
    arms = {
        "classification": ["tfidf", "cooccurrence", *networks, "stack"],
        "multi-label": ["linear", "scratch", "pretrained"],
        "pairs": ["tfidf", "scratch", "pretrained"],
        "tagging": ["linear", "scratch", "pretrained"],
        "spans": ["trivial", "scratch", "pretrained"],
    }
    for task, chosen in arms.items():
        out = data.folder / f"study-{task}"
        words = ["compare", *data.dataset(task), "--corpus", data.corpus, "--out", out]
        words += ["--arms", ",".join(ARMS.get(arm, arm) for arm in chosen)]
        words += [
            "--labels",
            "60,all",
            "--seeds",
            2,
            "--folds",
            1,
            "--tokens",
            "60K",
            "--length",
            32,
        ]
        words += ["--epochs", 6 if task in ("tagging", "spans") else 4]
        words += ["--objective", "masked" if task == "spans" else "causal"]
        run(*words, "--jobs", 1, *MACHINE, *SIZES)
        yield task, study_scores(out, METRICS.get(task, "accuracy"))


def demo(data: Data, folder: str) -> Iterator[tuple[str, Facts]]:
    """The study of `make demo`, with as many threads as the machine has."""
    out = Path(folder) if folder else data.folder / "demo"
    if not folder:
        run("compare", "--out", out)
    yield "accuracy", study_scores(out, "accuracy")


def study_scores(folder: Path, metric: str) -> Facts:
    """Per arm and labels the mean of the test metric over seeds and its standard error."""
    ours = {theirs: mine for mine, theirs in ARMS.items()}
    found: dict[str, list[float]] = defaultdict(list)
    for value in parquet.read_table(folder / "values.parquet").to_pylist():
        # The value without an epoch is the one of the saved weights.
        if (value["epoch"], value["split"], value["metric"]) == (None, "test", metric):
            arm = ours.get(value["arm"], value["arm"])
            found[f"{arm}, {value['labels']} labels"].append(value["value"])
    return {
        name: [mean(values), stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0]
        for name, values in found.items()
    }


GROUPS: dict[str, Callable[[Data], Iterator[tuple[str, Facts]]]] = {
    "params": params,
    "pretrain": pretrain,
    "base": base,
    "tasks": tasks,
    "predict": predict,
    "studies": studies,
}


# ---------------------------------------------------------------- comparing


def allowed(group: str, expected: Any) -> float:
    """How far a value of this group may be from what was recorded."""
    if isinstance(expected, list):  # a mean over seeds and its standard error
        return max(SPREADS[group], 3 * expected[1])
    share = group == "tasks" or abs(expected) < 1
    return TOLERANCES[group] * (1.0 if share else abs(expected))


def compare(group: str, expected: Facts, found: Facts) -> list[str]:
    """One line per fact that differs."""
    wrong = [f"{name}: not found any more" for name in expected.keys() - found.keys()]
    wrong += [f"{name}: not recorded" for name in found.keys() - expected.keys()]
    for name in expected.keys() & found.keys():
        was, now = expected[name], found[name]
        if isinstance(was, str):
            if was != now:
                wrong.append(f"{name}: {now!r} instead of {was!r}")
            continue
        values = (was[0], now[0]) if isinstance(was, list) else (was, now)
        off = abs(values[0] - values[1])
        if not off <= allowed(group, was):
            limit = allowed(group, was)
            wrong.append(f"{name}: {values[1]} instead of {values[0]} ({off:.2g} > {limit:.2g})")
    return sorted(wrong)


def preload() -> None:
    """Import what every command imports, once, before the forks."""
    import numpy as np
    import pyarrow.parquet
    import scipy.sparse
    import sklearn.linear_model
    import tokenizers
    import torch

    import headstart

    del np, pyarrow, scipy, sklearn, tokenizers, torch
    for name in ("HeadstartClassifier", "HeadstartEmbedder", "load"):
        getattr(headstart, name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="record instead of comparing")
    parser.add_argument("--only", default="", help="only groups whose name begins so")
    parser.add_argument("--demo", nargs="?", const="", help="also the demo, or a folder of it")
    arguments = parser.parse_args()
    preload()
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        os.environ["HEADSTART_CACHE"] = f"{scratch}/cache"
        os.environ["OMP_NUM_THREADS"] = "1"
        data = Data(Path(scratch))
        groups = {name: group for name, group in GROUPS.items() if name.startswith(arguments.only)}
        if arguments.demo is not None:
            groups["demo"] = lambda data: demo(data, arguments.demo)
        for group, cases in groups.items():
            facts: Facts = {}
            for name, found in cases(data):
                facts[name] = found
                if arguments.write:
                    continue
                lines = compare(group, recorded.get(group, {}).get(name, {}), found)
                wrong += len(lines)
                for line in lines or ["ok"]:
                    print(f"{group}: {name}: {line}", flush=True)
            if not arguments.write:
                for name in recorded.get(group, {}).keys() - facts.keys():
                    wrong += 1
                    print(f"{group}: {name}: not found any more")
            recorded[group] = facts
    if arguments.write:
        RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
    print(f"{wrong} facts differ" if wrong else "all facts hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
