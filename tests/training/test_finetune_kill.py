"""A fine-tuning killed at any moment resumes to the same bits, from the command line."""

import random
import signal
import subprocess
import sys
import time

import pytest

from tests.labelled import dataset, write_csv
from tests.training.test_kill import KILLS, wait_for_lines

ARGUMENTS = {
    "--base": "none",
    "--vocab-size": 300,
    "--width": 32,
    "--layers": 2,
    "--heads": 2,
    "--epochs": 12,
    "--batch-size": 8,
    "--learning-rate": 0.003,
    "--patience": 6,
    "--strategy": "gradual",
    "--layer-decay": 0.9,
    "--threads": 1,
    "--precision": "fp32",
    "--save-seconds": 0.1,
}


def command(folder, out, *more):
    start = [sys.executable, "-m", "headstart", "finetune", str(folder / "train.csv")]
    options = [word for option, value in ARGUMENTS.items() for word in (option, str(value))]
    return [*start, *options, "--out", str(out), *more]


@pytest.mark.slow
def test_a_fine_tuning_killed_at_random_moments_ends_with_the_same_bits(tmp_path):
    write_csv(tmp_path / "train.csv", dataset(160, wrong=0.3))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(tmp_path, whole), check=True, capture_output=True)
    generator = random.Random(0)
    for _ in range(KILLS):
        process = subprocess.Popen(
            command(tmp_path, killed, "--resume"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for_lines(killed / "metrics.jsonl", generator.randint(0, 80), process)
        time.sleep(generator.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
    result = subprocess.run(command(tmp_path, killed, "--resume"), capture_output=True)
    assert result.returncode == 0, result.stderr.decode()
    for name in ("model.safetensors", "validation.safetensors"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
