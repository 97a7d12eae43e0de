"""After a `kill -9` at any moment, `--resume` gives the same bits as an uninterrupted run."""

import json
import os
import random

import pytest

from tests.conftest import run_here
from tests.corpora import write_corpus
from tests.forked import start
from tests.labelled import dataset, write_csv
from tests.runs import options

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("HEADSTART_KILLS", "4"))
STEPS = 120
PRETRAIN = options(steps=STEPS, save_seconds=0.1)
FINETUNE = {
    "--vocab-size": 300,
    "--width": 32,
    "--layers": 2,
    "--heads": 2,
    "--epochs": 12,
    "--batch-size": 8,
    "--learning-rate": 0.003,
    "--average": 0.5,
    "--threads": 1,
    "--precision": "fp32",
    "--save-seconds": 0.1,
}


def kill_and_resume(command, out, generator, lines):
    """Kill the command again and again, each time at a random step or before the first one."""
    for _ in range(KILLS):
        process = start([*command, "--out", str(out), "--resume"])
        process.wait_for_lines(out / "metrics.jsonl", generator.randint(0, lines))
        assert process.kill(after=generator.uniform(0, 0.1))  # at a random moment within a step
    result = run_here([*command, "--out", str(out), "--resume"])
    assert result.returncode == 0, result.stderr


def run_whole(command, out):
    result = run_here([*command, "--out", str(out)])
    assert result.returncode == 0, result.stderr


def losses(run):
    """The loss of every step and evaluation; a step that was repeated counts once."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    found = {
        (line["step"], "held_out" in line): line.get("held_out", line.get("loss")) for line in lines
    }
    assert max(found) == (STEPS, True)
    return found


@pytest.mark.parametrize(
    ("objective", "softmax"),
    [("causal", "sampled"), ("masked", "full"), ("causal+contrastive", "sampled")],
)
def test_a_run_killed_at_random_moments_ends_with_the_same_bits(tmp_path, objective, softmax):
    corpus = write_corpus(tmp_path / "corpus.txt")
    kind = ["--objective", objective, "--softmax", softmax]
    command = ["pretrain", str(corpus), *PRETRAIN, *kind]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_whole(command, whole)
    kill_and_resume(command, killed, random.Random(objective), STEPS - 20)
    name = "model.safetensors"
    assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert losses(killed) == losses(whole)


def test_a_fine_tuning_killed_at_random_moments_ends_with_the_same_bits(tmp_path):
    data = write_csv(tmp_path / "train.csv", dataset(160, wrong=0.3))
    settings = [str(word) for pair in FINETUNE.items() for word in pair]
    command = ["finetune", str(data), *settings]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_whole(command, whole)
    kill_and_resume(command, killed, random.Random(0), 80)
    for name in ("model.safetensors", "task.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
