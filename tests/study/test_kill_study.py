"""After a `kill -9` at any moment, the same command gives the same results, except times."""

import os
import random
import time

import pytest

from headstart.study.results import read_results
from tests.conftest import run_here
from tests.forked import start
from tests.study.small_study import small_config

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("HEADSTART_KILLS", "3"))


def command(folder, out, jobs):
    config = small_config(folder)
    options = {
        "--corpus": config.corpus[0],
        "--arms": "tfidf,scratch,pretrained,stack",
        "--labels": "20,all",
        "--seeds": 2,
        "--folds": 2,
        "--epochs": 1,
        "--tokens": config.tokens,
        "--vocab-size": config.vocab_size,
        "--width": config.width,
        "--layers": config.layers,
        "--heads": config.heads,
        "--feed-forward-width": config.feed_forward_width,
        "--threads": 1,  # the bits of a training depend on their number …
        "--precision": "fp32",  # … and on the precision
        "--jobs": jobs,
        "--out": out,
    }
    words = [str(word) for pair in options.items() for word in pair]
    return ["compare", config.dataset[0], *words]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def whole(data):
    """The folder of an undisturbed study, one job after another."""
    result = run_here(command(data, data / "whole", jobs=1))
    assert result.returncode == 0, result.stderr
    return data / "whole"


def measured(out):
    results = read_results(out)
    values = results.values.drop_columns(["seconds"]).to_pylist()
    return values, results.predictions.to_pylist(), results.about["best"]


def wait_for_jobs(folder, count, process):
    while process.poll() is None and len(list(folder.glob("*.safetensors"))) < count:
        time.sleep(0.01)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_study_killed_at_random_moments_ends_with_the_same_results(data, whole, tmp_path, jobs):
    killed = tmp_path / "killed"
    generator = random.Random(jobs)
    finished = len(list((whole / "jobs").iterdir()))
    # Each start brings new processes, which take seconds to load.
    kills = KILLS if jobs == 1 else 2
    hits = 0
    for attempt in range(kills):
        process = start(command(data, killed, jobs))
        # After some more jobs, then at a random moment within what comes next.
        wait_for_jobs(killed / "jobs", finished * attempt // kills, process)
        hits += process.kill(after=generator.uniform(0, 1))  # a quick one may have ended
    assert hits
    result = run_here(command(data, killed, jobs))
    assert result.returncode == 0, result.stderr
    assert measured(killed) == measured(whole)
    arrays = sorted(path.relative_to(whole) for path in (whole / "best").rglob("*.safetensors"))
    assert arrays
    for path in arrays:
        assert (killed / path).read_bytes() == (whole / path).read_bytes()
