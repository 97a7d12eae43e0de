"""Compare the speed of pretraining with the lab's plain loop and Hugging Face's `Trainer`.

Every measurement runs in a separate process, so that peak memory is measured separately. The
candidates take turns, a few times each; the table has medians and ranges. Padding is not counted.

    python bench/pretrain.py            # everything, about 15 minutes
    python bench/pretrain.py --quick    # shorter and fewer repetitions
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from peers.measure import (
    SIZES,
    Task,
    best_of,
    describe_machine,
    in_turn,
    measure,
    pace,
    pace_of,
    ratio,
    show,
    start,
    trainer_choices,
    trainer_title,
)

LENGTH, ROWS = 128, 8  # steps of 1,024 tokens, the default
TOKENS_OF_A_MEGABYTE = 250_000  # four bytes of text per token


def speed(task: Task) -> float:
    """Measure the tokens per second of one task."""
    from peers.documents import make_documents

    sizes = task["sizes"]
    documents = make_documents(sizes["vocab_size"])
    length, rows = task.get("length", LENGTH), task.get("rows", ROWS)
    if task["who"] == "lab loop":
        from peers.lab_loop import pretrain_steps as lab_steps

        own = {key: sizes[key] for key in ("vocab_size", "width", "layers", "heads")}
        return pace(lab_steps(documents, **own, batch=8), task["seconds"])
    if task["who"] == "Trainer":
        from peers.trainer import pretrain

        ends = pretrain(
            documents,
            kind=task["kind"],
            sizes=sizes,
            length=length,
            rows=rows,
            steps=task["steps"],
            bf16=task["bf16"],
            attention=task["attention"],
            folder=tempfile.mkdtemp(),
        )
        return pace_of(ends)
    if task["who"] == "products":
        import torch

        from peers.products import seconds

        dtype = torch.bfloat16 if task["precision"] == "bf16" else torch.float32
        share = 1.0 if task["kind"] == "causal" else 0.3
        took = seconds(task["name"], task["kind"], sizes, rows * length, share, dtype)
        return rows * length / took
    from peers.ours import pretrain_steps as our_steps

    if "megabytes" in task:  # the same documents, repeated
        wanted = task["megabytes"] * TOKENS_OF_A_MEGABYTE
        average = sum(len(document) for document in documents) / len(documents)
        documents = documents * (1 + int(wanted / average) // len(documents))
        documents = documents[: int(wanted / average)]
    steps = our_steps(
        documents,
        name=task["name"],
        kind=task["kind"],
        sizes=sizes,
        length=length,
        rows=rows,
        precision=task["precision"],
        softmax=task.get("softmax", "auto"),
    )
    return pace(steps, task["seconds"])


def main(quick: bool) -> None:
    seconds, repetitions, steps = (8, 2, 20) if quick else (15, 3, 40)
    common = {**describe_machine(), "seconds": seconds, "steps": steps}

    lab = {**common, "name": "lab", "kind": "causal", "sizes": SIZES["lab"]}
    found = in_turn(
        {
            "the lab's plain loop": {**lab, "who": "lab loop"},
            "Headstart": {**lab, "who": "ours"},
            "Headstart, full output layer": {**lab, "who": "ours", "softmax": "full"},
            "matrix products of the full layer": {**lab, "who": "products"},
        },
        repetitions,
    )
    memory = found["the lab's plain loop"]["memory"] / found["Headstart"]["memory"]
    show(
        "the lab's model (vocabulary 50,001), causal",
        found,
        [
            f"{ratio(found, 'Headstart', next(iter(found))):.1f} × the lab's loop (goal: 20)",
            f"1/{memory:.1f} of its memory (goal: 1/5)",
            f"{ratio(found, 'Headstart', 'Headstart, full output layer'):.1f} × the full layer",
        ],
    )
    for kind, peer, goal in (("causal", "Llama", 1.5), ("masked", "BERT", 2)):
        small = {**common, "name": "small", "kind": kind, "sizes": SIZES["small"]}
        trainer = best_of(trainer_choices(small), steps=8)
        title = trainer_title(trainer, peer)
        found = in_turn(
            {
                title: trainer,
                "Headstart": {**small, "who": "ours"},
                "Headstart, full output layer": {**small, "who": "ours", "softmax": "full"},
                "matrix products of the full layer": {**small, "who": "products"},
            },
            repetitions,
        )
        show(
            f"small (vocabulary 8,192), {kind}",
            found,
            [
                f"{ratio(found, 'Headstart', title):.1f} × Trainer (goal: {goal})",
                f"{ratio(found, 'Headstart', 'Headstart, full output layer'):.1f} × the full layer",
            ],
        )
    growth({**common, "name": "small", "kind": "causal", "who": "ours", "sizes": SIZES["small"]})


def growth(common: Task) -> None:
    """Measure once how the cost grows with vocabulary, length, threads and corpus."""
    print("\nhow the cost grows (small, causal, Headstart)")
    rows: list[tuple[str, int, Task]] = []
    for vocab_size in (8_192, 16_384, 32_768, 50_001):
        larger = {**SIZES["small"], "vocab_size": vocab_size}
        rows.append(("vocabulary", vocab_size, {"sizes": larger}))
    for length in (128, 256, 512, 1_024):
        fitting = {"length": length, "rows": max(1, ROWS * LENGTH // length)}
        rows.append(("length", length, fitting))
    rows += [("threads", count, {"threads": count}) for count in sorted({1, common["threads"]})]
    rows += [("corpus, MB", megabytes, {"megabytes": megabytes}) for megabytes in (1, 10, 100)]
    for what, amount, changes in rows:
        one = measure({**common, **changes})
        print(f"  {what:10} {amount:>7,}: {one['speed']:>7,.0f} tokens/s, {one['memory']:.2f} GB")


if __name__ == "__main__":
    start(__doc__, main, speed)
