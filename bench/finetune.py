"""Compare the speed of fine-tuning and prediction with the lab's loop and Hugging Face's tools.

Every measurement runs in a separate process, so that peak memory is measured separately. The
candidates take turns, a few times each; the table has medians and ranges. All of them read the same
texts of 30 to 500 tokens. The loss of accuracy with 8 bits is measured on rotten-tomatoes.

    python bench/finetune.py            # everything, about 15 minutes
    python bench/finetune.py --quick    # shorter and fewer repetitions
    python bench/finetune.py --only predict
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from peers.measure import (
    SIZES,
    WARM_STEPS,
    Task,
    best_of,
    describe_machine,
    in_turn,
    pace,
    pace_of,
    ratio,
    show,
    start,
    trainer_choices,
    trainer_title,
)

# For prediction, both sides use the same network: a BERT of the size of `small`.
BERT = {**SIZES["small"], "feed_forward_width": 1_024}
AT_ONCE = 128  # texts per call
TEXTS, BATCH = 2_000, 16
# `Trainer` sorts the texts of this many batches by length, the longest first, so a multiple of this
# number is timed. The warm-up batches of the first sort are replaced by those of the next one.
SORTED = TEXTS // (4 * BATCH)
UNIT = "texts/s"
OURS = {"who": "ours"}
# The default, which drops tokens of long texts (in the lab's protocol of all texts); all tokens, as
# the other tools; and all tokens with the head of stock transformers. Their accuracies are in
# research/recipes.md.
WAYS: dict[str, Task] = {
    "Headstart": {},
    "Headstart, --token-dropout 0": {"token_dropout": 0.0},
    "the same, --head stock": {"token_dropout": 0.0, "head": "stock"},
}
PARTS = ("lab", "causal", "masked", "predict", "int8")
EXPORTED = {"Headstart, ONNX": False, "Headstart, ONNX, int8": True}


def speed(task: Task) -> float:
    """Measure the texts per second of one task."""
    from peers.documents import make_documents, make_labels

    sizes, folder = task["sizes"], tempfile.mkdtemp()
    documents = make_documents(sizes["vocab_size"], TEXTS)
    if task["what"] == "predict":
        return pace(_predictions(task, documents, Path(folder)), task["seconds"])
    labels = make_labels(documents)
    # The lengths of batches differ much, so a few batches measure tokens per second, not texts.
    average = sum(len(document) for document in documents) / len(documents)
    if task["who"] == "lab loop":
        from peers.lab_loop import finetune_steps as lab_steps

        own = {key: sizes[key] for key in ("vocab_size", "width", "layers", "heads")}
        steps = lab_steps(documents, labels, **own, batch=task["batch"])
        return pace(steps, task["seconds"]) / average
    if task["who"] == "Trainer":
        from peers.trainer import finetune

        ends = finetune(
            documents,
            labels,
            kind=task["kind"],
            sizes=sizes,
            rows=task["batch"],
            steps=task["steps"],
            bf16=task["bf16"],
            attention=task["attention"],
            folder=folder,
        )
        return pace_of(ends)
    from peers.ours_finetune import finetune_steps as our_steps

    steps = our_steps(
        documents,
        labels,
        name=task["name"],
        kind=task["kind"],
        sizes=sizes,
        batch=task["batch"],
        precision=task["precision"],
        threads=task["threads"],
        folder=Path(folder),
        **task["how"],
    )
    return pace(steps, task["seconds"]) / average


def _predictions(task: Task, documents: list, folder: Path) -> Iterator[int]:
    """Predict texts repeatedly; yields the number of texts of each call."""
    from peers.documents import make_texts

    texts = make_texts(documents)
    predictor: Callable[[list[str]], None]
    if task["who"] == "pipeline":
        from peers.pipeline import Predictor as Pipeline

        predictor = Pipeline(task["sizes"], task["batch"], task["attention"], folder)
    elif task["who"] == "onnx":
        from peers.ours_finetune import ExportedPredictor

        network = (task["name"], task["kind"], task["sizes"])
        predictor = ExportedPredictor(*network, folder, int8=task["int8"])
    else:
        from peers.ours_finetune import Predictor as Ours

        predictor = Ours(task["name"], task["kind"], task["sizes"], folder)
    at_once = task["at_once"]
    while True:
        for first in range(0, len(texts), at_once):
            batch = texts[first : first + at_once]
            predictor(batch)
            yield len(batch)


def main(quick: bool, only: Sequence[str]) -> None:
    seconds, repetitions, sorts = (8, 2, 1) if quick else (20, 3, 3)
    steps = WARM_STEPS + sorts * SORTED
    common = {**describe_machine(), "seconds": seconds, "steps": steps}
    if "lab" in only:
        finetune_lab({**common, "what": "finetune"}, repetitions)
    for kind, peer in (("causal", "Llama"), ("masked", "BERT")):
        if kind in only:
            finetune_small({**common, "what": "finetune", "kind": kind}, peer, repetitions)
    if "predict" in only:
        predict({**common, "what": "predict"}, repetitions)
    if "int8" in only:
        show_accuracy_in_8_bits(common["threads"], labels="400" if quick else "all")


def finetune_lab(common: Task, repetitions: int) -> None:
    task = {**common, "name": "lab", "kind": "causal", "sizes": SIZES["lab"], "batch": 8}
    loop = "the lab's plain loop"
    ours = {name: {**task, **OURS, "how": how} for name, how in WAYS.items() if "head" not in how}
    found = in_turn({loop: {**task, "who": "lab loop"}} | ours, repetitions)
    goals = [f"{name}: {ratio(found, name, loop):.1f} × the lab's loop (goal: 6)" for name in ours]
    show("fine-tuning the lab's model, batches of 8", found, goals, UNIT)


def finetune_small(common: Task, peer: str, repetitions: int) -> None:
    task = {**common, "name": "small", "sizes": SIZES["small"], "batch": BATCH}
    trainer = best_of(trainer_choices(task), steps=WARM_STEPS + SORTED)
    title = trainer_title(trainer, peer)
    ours = {name: {**task, **OURS, "how": how} for name, how in WAYS.items()}
    found = in_turn({title: trainer} | ours, repetitions)
    goals = [f"{name}: {ratio(found, name, title):.1f} × Trainer (goal: 1.3)" for name in ours]
    show(f"fine-tuning small, {common['kind']}, batches of {BATCH}", found, goals, UNIT)


def predict(common: Task, repetitions: int) -> None:
    task = {**common, "name": "bert", "kind": "masked", "sizes": BERT}
    many = {**task, "at_once": AT_ONCE}
    pipelines = [
        {**many, "who": "pipeline", "batch": batch, "attention": "sdpa"} for batch in (1, 4, 16, 64)
    ]
    pipeline = best_of(pipelines, seconds=3)
    one = {"at_once": 1, "batch": 1}
    title = f"pipeline, batches of {pipeline['batch']}"
    tasks = {
        title: pipeline,
        "Headstart": many | OURS,
        "pipeline, one text at a time": pipeline | one,
        "Headstart, one text at a time": task | OURS | one,
    }
    first, ours, alone, _ = tasks
    for name, int8 in EXPORTED.items():
        exported = {"who": "onnx", "int8": int8}
        tasks[name] = many | exported
        tasks[f"{name}, one text at a time"] = task | exported | one
    found = in_turn(tasks, repetitions)
    best = max(first, alone, key=lambda name: found[name]["speed"])  # the short trial may be wrong
    goals = []
    for name in (ours, *EXPORTED):
        single = f"{name}, one text at a time"
        latency = [1e3 / found[key]["speed"] for key in (alone, single)]
        goals.append(
            f"{name}: {ratio(found, name, best):.1f} × pipeline at its best (goal: 3); one text: "
            f"{latency[1]:.1f} ms compared with {latency[0]:.1f} ms, "
            f"{ratio(found, single, alone):.1f} × pipeline"
        )
    show(f"prediction, BERT as large as small, {AT_ONCE} texts per call", found, goals, UNIT)


def show_accuracy_in_8_bits(threads: int, labels: str) -> None:
    """Print the test accuracy of run and exports on rotten-tomatoes, and their difference."""
    from headstart.config import FinetuneConfig
    from headstart.data.splits import read_dataset, take_budget
    from headstart.interop.export import export_run
    from headstart.training.finetune import finetune

    splits = read_dataset("rotten-tomatoes")
    part = replace(splits, train=take_budget(splits.train, labels, 0))
    config = FinetuneConfig.create(dataset=["rotten-tomatoes"], epochs=3, threads=threads)
    print(f"\nexports to ONNX of small, fine-tuned from scratch on {len(part.train):,} rows")
    with tempfile.TemporaryDirectory() as folder:
        finetune(config, Path(folder) / "run", splits=part)
        for name, int8 in EXPORTED.items():
            out = Path(folder) / f"int8-{int8}"
            found = export_run(Path(folder) / "run", "onnx", out, int8=int8)
            print(f"  {name}: {found['notes'][-1]}", flush=True)


if __name__ == "__main__":
    start(__doc__, main, speed, PARTS)
