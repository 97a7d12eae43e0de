"""`kill -9` at any moment, then `--resume`: the same bits as the uninterrupted run."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.corpora import write_corpus
from tests.runs import options

KILLS = int(os.environ.get("HEADSTART_KILLS", "4"))
OPTIONS = options(steps=120, precision="fp32", save_seconds=0.1)


def command(folder, out, kind, *more):
    objective, output = kind
    start = [sys.executable, "-m", "headstart", "pretrain", str(folder / "corpus.txt")]
    settings = ["--objective", objective, *OPTIONS, "--output", output, "--drawn", "40"]
    return [*start, *settings, "--frequent", "40", "--out", str(out), *more]


def final_bytes(run):
    last = max((run / "checkpoints").iterdir())
    assert last.name == "step-00000120"
    return [
        (run / "model.safetensors").read_bytes(),
        (last / "model.safetensors").read_bytes(),
        (last / "optimizer.safetensors").read_bytes(),
    ]


def wait_for_lines(path, lines, process):
    while process.poll() is None:
        if path.is_file() and path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("objective", [("causal", "candidates"), ("masked", "full")])
def test_a_run_killed_at_random_moments_ends_with_the_same_bits(tmp_path, objective):
    write_corpus(tmp_path / "corpus.txt")
    whole = tmp_path / "whole"
    subprocess.run(command(tmp_path, whole, objective), check=True, capture_output=True)
    killed = tmp_path / "killed"
    generator = random.Random(str(objective))
    for _ in range(KILLS):
        process = subprocess.Popen(
            command(tmp_path, killed, objective, "--resume"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # At a random step, or before the first one; then at a random moment within it.
        wait_for_lines(killed / "metrics.jsonl", generator.randint(0, 100), process)
        time.sleep(generator.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    result = subprocess.run(command(tmp_path, killed, objective, "--resume"), capture_output=True)
    assert result.returncode == 0, result.stderr.decode()
    assert final_bytes(killed) == final_bytes(whole)
