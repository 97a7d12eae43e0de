"""One process with two threads, or two processes with one each: which one pretrains faster.

    python bench/processes.py            # about 8 minutes on two cores
    python bench/processes.py --quick

Tokens per second of real training steps (gradients, exchange, update; no evaluation), each in a
process of its own, in turn, median and range; and the bytes that a step exchanges.
"""

import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from headstart.training.listener import Listener
from headstart.training.pretrain import PlannedPretraining, plan_pretraining, sharing, train_base
from peers.measure import SIZES, Task, describe_machine, in_turn, pace_of, ratio, show, start

GOALS = {"small": 1.2, "lab": 1.0}
BATCHES = {"small": (1_024, 8_192), "lab": (1_024,)}


class Ends(Listener):
    """When each step ended, and how many tokens it had."""

    def __init__(self, tokens: int) -> None:
        self.tokens, self.ends = tokens, list[tuple[int, float]]()

    def on_step(self, progress: Any) -> None:
        self.ends.append((self.tokens, time.perf_counter()))


def train(task: Task) -> tuple[list[tuple[int, float]], int, PlannedPretraining]:
    """Take the steps of a task.

    Returns
    -------
    The tokens of each step and when it ended, the bytes that one exchanges, and what was trained.
    """
    from headstart.training.pretrain_prepare import prepare_pretraining
    from headstart.training.recipe import make_pretrain_recipe
    from peers.documents import make_documents, make_texts, make_tokenizer

    folder = Path(tempfile.mkdtemp())
    corpus = folder / "corpus.txt"
    sizes = task["sizes"]
    corpus.write_text("\n".join(make_texts(make_documents(sizes["vocab_size"]))) + "\n")
    recipe = make_pretrain_recipe(
        corpus=[str(corpus)],
        preset=task["name"],
        tokenizer=str(make_tokenizer(sizes["vocab_size"], folder)),
        steps=task["steps"],
        batch_tokens=task["batch_tokens"],
        precision=task["precision"],
        threads=task["threads"],
        processes=task["processes"],
        output="candidates",
        embedding_start="random",
        evaluations=1,
        **sizes,
    )
    times = Ends(task["batch_tokens"])
    with redirect_stdout(sys.stderr), sharing(recipe) as ranks:
        setup = prepare_pretraining(recipe, folder / "run", ranks=ranks)
        planned = plan_pretraining(setup)
        train_base(planned, listener=times)
        sent = getattr(ranks, "exchanged_bytes", 0)
    return times.ends, sent, planned


def speed(task: Task) -> float:
    """Tokens per second of one task."""
    ends, sent, planned = train(task)
    if sent:
        every = 4 * sum(parameter.numel() for parameter in planned.model.parameters())
        told = f"a step exchanges {sent / 1e6:.1f} MB of {every / 1e6:.1f} MB of gradients"
        Path(task["note"]).write_text(told)
    return pace_of(ends)


def main(quick: bool) -> None:
    repetitions, steps = (2, 20) if quick else (3, 40)
    note = Path(tempfile.mkdtemp()) / "note.txt"
    machine = describe_machine()
    cores = machine["threads"]
    for name, batches in BATCHES.items():
        for batch_tokens in batches:
            common: Task = {
                **machine,
                "name": name,
                "sizes": SIZES[name],
                "steps": max(10, steps * 1_024 // batch_tokens),
                "batch_tokens": batch_tokens,
                "note": str(note),
            }
            one, many = f"1 process × {cores} threads", f"{cores} processes × 1 thread"
            tasks = {
                one: {**common, "processes": 1, "threads": cores},
                many: {**common, "processes": cores, "threads": 1},
            }
            found = in_turn(tasks, repetitions)
            goal = f"{ratio(found, many, one):.2f} × (goal: {GOALS[name]})"
            show(f"{name}, {batch_tokens:,} tokens per step", found, [goal, note.read_text()])


if __name__ == "__main__":
    start(__doc__ or "", main, speed)
