"""Compare the results of short trainings with recorded values, through the command line only.

    python -m tests.golden               compare with tests/golden.json, about two minutes
    python -m tests.golden --only tasks  compare the groups whose names begin with "tasks"
    python -m tests.golden --write       record new values, after an intended change

All data is generated here with fixed seeds; every training has one thread and fp32. Only the
command line is used, so the values remain valid when the code behind it is rewritten.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conftest import run_here
from tests.corpora import write_corpus
from tests.labelled import dataset, write_conll, write_csv, write_labels, write_pairs, write_squad

RECORDED = Path(__file__).with_name("golden.json")
# How far a value may be from the recorded one: relative where it is above 1.
TOLERANCES = {"pretrain": 1e-5, "base": 1e-5, "tasks": 1e-4}
MACHINE = ["--threads", "1", "--precision", "fp32"]
SIZES = ["--vocab-size", "400", "--width", "32", "--layers", "2", "--heads", "2"]
SIZES += ["--feed-forward-width", "64"]
PARTS = {"train": 240, "validation": 80, "test": 120}
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


def many_words(path: Path, lines: int = 1_000) -> Path:
    """Write more words than the sampled softmax scores, the first ones the most frequent."""
    generator = random.Random(7)
    words = [f"{one}{two}" for one in WORDS for two in WORDS]
    drawn = [int(len(words) ** generator.random()) - 1 for _ in range(60 * lines)]
    texts = [" ".join(words[n] for n in drawn[start::lines]) for start in range(lines)]
    path.write_text("\n".join(texts) + "\n")
    return path


WORDS = [f"{one}{two}" for one in "bcdfghjkl" for two in "aeiou"]
# How the rows of a task are written, and the suffix of their file.
WRITERS: dict[str, tuple[str, Callable[[Path, int, int], Path]]] = {
    "classification": (
        "csv",
        lambda path, rows, seed: write_csv(path, dataset(rows, seed, 5, wrong=0.1)),
    ),
    "multi-label": ("jsonl", write_labels),
    "pairs": ("csv", write_pairs),
    "tagging": ("conll", write_conll),
    "spans": ("json", lambda path, n, seed: write_squad(path, n, 0.1, seed)),
}


class Data:
    """The generated files of a comparison, and the bases that several groups use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.corpus = write_corpus(folder / "corpus.txt", 500)
        self.unseen = write_corpus(folder / "unseen.txt", 20, seed=1)
        self.wide_corpus = many_words(folder / "wide.txt")

    def dataset(self, task: str) -> list[object]:
        """The arguments of a dataset whose parts are files, so that no split is drawn."""
        folder = self.folder / task
        if not folder.is_dir():
            folder.mkdir()
            suffix, write = WRITERS[task]
            for seed, (part, rows) in enumerate(PARTS.items(), start=100):
                write(folder / f"{part}.{suffix}", rows, seed)
        return [folder, "--task", task]

    def base(self, objective: str) -> Path:
        """Return a base after 60 steps; it is trained only once."""
        folder = self.folder / f"p-{objective}"
        if not folder.is_dir():
            pretraining(self, objective, "--objective", objective, *FULL)
        return folder


# ---------------------------------------------------------------- the facts, group by group


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
    """Record what bases do without a task."""
    prompt = "the old cat"
    greedy = run("generate", data.base("causal"), prompt, "--tokens", 12, "--temperature", 0)
    yield "generate", {"text": greedy["text"]}
    drawn = run("generate", data.base("causal"), prompt, "--tokens", 12, "--seed", 3)
    yield "generate, sampled", {"text": drawn["text"]}
    measured = run("perplexity", data.base("causal"), data.unseen, "--length", 32)
    yield "perplexity", {name: measured[name] for name in ("loss", "perplexity", "tokens")}
    (gap,) = run("fill", data.base("masked"), "the old judge reads the [MASK] .")["gaps"]
    yield "fill", {entry["token"]: entry["probability"] for entry in gap}


def finetuning(data: Data, name: str, *options: Any) -> Facts:
    """A short fine-tuning and its validation and test metrics."""
    out = data.folder / f"t-{name}"
    words = ["finetune", *data.dataset(name.split(",")[0]), "--out", out, "--epochs", 3]
    words += ["--seed", 0, "--batch-size", 16, "--no-baselines", *MACHINE]
    result = run(*words, *options)
    validation = result["validation"]
    facts = {"validation loss": validation["validation_loss"]}
    facts |= {"steps": result["steps"], "parameters": result["parameters"]}
    tested = run("evaluate", out, "--no-baselines")
    for part, found in (("validation", validation), ("test", tested)):
        for metric, value in found.items():
            counted = metric in ("train_loss", "validation_loss", "seconds", "rows", "seen_rows")
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and not counted:
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
    """Return a line for each fact that differs."""
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
        for make_facts in (pretrain, base, tasks):
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
