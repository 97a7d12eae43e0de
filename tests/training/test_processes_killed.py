"""A process that dies or hangs ends the run with a message, and --resume goes on.

With as many processes as before it ends with the same bits, with others with the same weights but
for rounding.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from headstart.errors import HeadstartError
from headstart.training.pretrain import pretrain
from headstart.training.processes import store_ranks
from tests.ranks import (
    CANDIDATES,
    ROUNDING,
    STEPS,
    TINY,
    SignalAt,
    final_bytes,
    largest_difference,
    pretrain_words,
    start_ranks,
    workers,
)
from tests.runs import small_recipe

STUCK_SECONDS = 5
KILLS = int(os.environ.get("HEADSTART_KILLS", "1"))


def recipe_of(folder, processes):
    return small_recipe(folder, steps=STEPS, processes=processes, **{**TINY, **CANDIDATES})


def finish(ranks):
    """Wait for all processes of a run that comes to its end."""
    assert [rank.wait() for rank in ranks] == [0] * len(ranks), [rank.messages for rank in ranks]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Runs that nothing has interrupted, by the number of their processes."""
    folder = tmp_path_factory.mktemp("whole")
    recipe_of(folder, 1)  # writes the corpus
    for count in (2, 3):
        finish(start_ranks(pretrain_words(folder, folder / str(count)), count))
    return {count: folder / str(count) for count in (2, 3)}


@pytest.mark.slow
def test_lost_processes_are_named_and_resuming_ends_with_the_same_bits(
    tmp_path, whole, monkeypatch
):
    monkeypatch.setattr(store_ranks, "GRACE_SECONDS", 1.0)
    run, recipe, generator = tmp_path / "run", recipe_of(tmp_path, 2), random.Random(1)

    # A process that is stopped answers as little as one that hangs.
    hangs = SignalAt(generator.randint(5, 10), signal.SIGSTOP, generator)
    with pytest.raises(HeadstartError) as error:
        pretrain(recipe, run, listener=hangs, save_seconds=0, stuck_seconds=3)
    said = r"at step \d+, process 1 of 2 .* has not answered for 3 seconds"
    assert re.search(said, error.value.what)
    assert "--resume" in error.value.fix
    assert not workers()  # nobody is left behind

    dies = SignalAt(generator.randint(11, STEPS - 1), signal.SIGKILL, generator)
    with pytest.raises(HeadstartError) as error:
        pretrain(recipe, run, resume=True, listener=dies, save_seconds=0.1)
    assert re.search(r"at step \d+, process 1 of 2 .* ended by signal 9", error.value.what)

    pretrain(recipe, run, resume=True)
    assert final_bytes(run) == final_bytes(whole[2])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(KILLS))
def test_each_of_3_processes_is_killed_at_random_moments_and_1_2_or_3_go_on(tmp_path, whole, seed):
    count, generator, run = 3, random.Random(seed), tmp_path / "run"
    recipe_of(tmp_path, 1)  # writes the corpus
    for victim in generator.sample(range(count), count):  # each of them once
        more = ["--stuck-seconds", STUCK_SECONDS, *(["--resume"] if run.is_dir() else [])]
        ranks = start_ranks(pretrain_words(tmp_path, run, *more), count)
        lines = lines_in(run / "metrics.jsonl") + generator.randint(1, 5)
        ranks[0].wait_for_lines(run / "metrics.jsonl", lines)
        assert ranks[victim].kill(after=generator.uniform(0, 0.01))
        left = [process for rank, process in enumerate(ranks) if rank != victim]
        codes = [process.wait() for process in left]
        said = left[0].messages  # of the first that is left
        assert all(codes), (victim, codes, said)
        # Waiting for its part of an evaluation, nobody can tell the dead from the slow.
        how = f"(has ended|has not answered for {STUCK_SECONDS} seconds)"
        # On a busy machine, one that lives may not say so in time.
        named = rf"process ([0-2] and )*{victim}( and [0-2])* of {count}"
        assert re.search(rf"at step \d+, {named} .* {how}", said)
        assert "--resume" in said

    for other in (1, 2, 3):
        copy = tmp_path / str(other)
        shutil.copytree(run, copy)
        finish(start_ranks(pretrain_words(tmp_path, copy, "--resume"), other))
        if other == count:
            assert final_bytes(copy) == final_bytes(whole[count])
        else:
            assert largest_difference(copy, whole[count]) < ROUNDING


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def wait_for_lines(path, lines, process):
    while process.poll() is None:
        if lines_in(path) >= lines:
            return
        time.sleep(0.01)


@pytest.mark.slow
def test_processes_whose_first_one_is_killed_say_so(tmp_path):
    recipe_of(tmp_path, 1)  # writes the corpus
    run = tmp_path / "run"
    words = pretrain_words(tmp_path, run, "--processes", 3)
    process = subprocess.Popen(
        [sys.executable, "-m", "headstart", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_lines(run / "metrics.jsonl", random.Random(3).randint(5, 20), process)
    process.kill()
    _, said = process.communicate(timeout=300)  # returns when the other processes have ended, too
    assert process.returncode == -signal.SIGKILL
    assert re.search(r"at step \d+, process 0 of 3 .* has ended", said)
    assert "--resume" in said


@pytest.mark.slow
def test_torchrun_starts_a_run_again_whose_processes_were_killed(tmp_path, whole):
    recipe_of(tmp_path, 1)  # writes the corpus
    run, generator = tmp_path / "run", random.Random(4)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    limit = ["--stuck-seconds", STUCK_SECONDS]
    words = ["--max-restarts=2", "-m", "headstart", *pretrain_words(tmp_path, run, *limit)]
    process = subprocess.Popen(
        [sys.executable, *launcher, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for rank in ("0", "1"):
            metrics = run / "metrics.jsonl"
            wait_for_lines(metrics, lines_in(metrics) + generator.randint(1, 10), process)
            children = psutil.Process(process.pid).children(recursive=True)
            next(child for child in children if child.environ().get("RANK") == rank).kill()
        printed, said = process.communicate(timeout=300)
    finally:
        process.terminate()
    assert process.returncode == 0, said
    assert printed.count("held-out perplexity") == 1  # only rank 0 prints
    assert final_bytes(run) == final_bytes(whole[2])
