"""`kill -9` at any moment, then the same command again: the same results, times aside."""

import csv
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.studies.small_study import small_recipe

KILLS = int(os.environ.get("HEADSTART_KILLS", "3"))


def command(folder, out, jobs):
    recipe = small_recipe(folder)
    options = {
        "--labels": "20,60" if jobs > 1 else "60",
        "--seeds": 2,
        "--epochs": 2,
        "--tokens": recipe.tokens,
        "--vocab-size": recipe.vocab_size,
        "--width": recipe.width,
        "--layers": recipe.layers,
        "--heads": recipe.heads,
        "--feed-forward": recipe.feed_forward_width,
        "--threads": jobs,
        "--jobs": jobs,
        "--out": out,
    }
    words = [str(word) for pair in options.items() for word in pair]
    start = [sys.executable, "-m", "headstart", "compare", recipe.dataset[0]]
    return [*start, "--corpus", recipe.corpus[0], *words]


def measured(out):
    with (out / "results.csv").open(encoding="utf-8") as file:
        return [[v for k, v in line.items() if k != "seconds"] for line in csv.DictReader(file)]


def wait_for_files(folder, count, process):
    while process.poll() is None and len(list(folder.glob("*.safetensors"))) < count:
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_study_killed_at_random_moments_ends_with_the_same_results(tmp_path, jobs):
    whole = tmp_path / "whole"
    subprocess.run(command(tmp_path, whole, jobs), check=True, capture_output=True)
    killed = tmp_path / "killed"
    generator = random.Random(jobs)
    trainings = len(list((whole / "trainings").iterdir()))
    for attempt in range(KILLS):
        process = subprocess.Popen(
            command(tmp_path, killed, jobs), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # After some more trainings, then at a random moment within what comes next.
        reached = trainings * attempt // KILLS
        wait_for_files(killed / "trainings", reached, process)
        time.sleep(generator.uniform(0, 2))
        process.send_signal(signal.SIGKILL)
        process.wait()
    result = subprocess.run(command(tmp_path, killed, jobs), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert measured(killed) == measured(whole)
    assert (killed / "predictions.parquet").stat().st_size
    arrays = sorted(path.relative_to(whole) for path in (whole / "best").rglob("*.safetensors"))
    assert arrays
    for path in arrays:
        assert (killed / path).read_bytes() == (whole / path).read_bytes()
