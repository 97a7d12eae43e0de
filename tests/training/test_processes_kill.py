"""A process that dies, hangs or cannot be reached ends the run with a message; --resume goes on."""

import os
import random
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest
from safetensors.torch import load_file

from headstart.errors import HeadstartError
from headstart.training.listener import Listener
from headstart.training.pretrain import pretrain
from headstart.training.processes import group
from tests.runs import options, small_recipe

KILLS = int(os.environ.get("HEADSTART_KILLS", "1"))
STEPS = 60
SETTINGS = {"output": "candidates", "frequent": 40, "drawn": 40, "evaluations": 10}

pytestmark = pytest.mark.slow


def recipe(folder, processes):
    return small_recipe(folder, steps=STEPS, processes=processes, **SETTINGS)


def command(folder, out, *more):
    settings = {**SETTINGS, "steps": STEPS, "precision": "fp32", "save_seconds": 0.1}
    del settings["evaluations"]
    start = ["-m", "headstart", "pretrain", str(folder / "corpus.txt"), *options(**settings)]
    return [*start, "--out", str(out), *map(str, more)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of two processes that nothing has interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    pretrain(recipe(folder, 2), folder / "run", save_seconds=0.1)
    return folder / "run"


def final_bytes(run):
    last = run / "checkpoints" / f"step-{STEPS:08d}"
    files = [run, last, last]
    names = ["model.safetensors", "model.safetensors", "optimizer.safetensors"]
    return [(folder / name).read_bytes() for folder, name in zip(files, names, strict=True)]


def assert_close(run, whole):
    """The same weights but for rounding."""
    one, two = (load_file(folder / "model.safetensors") for folder in (run, whole))
    assert max(float((one[name] - two[name]).abs().max()) for name in two) < 1e-3


def workers(process):
    """The pids of the processes that were started beside rank 0."""
    return [
        child.pid
        for child in process.children(recursive=True)
        if "spawn_main" in " ".join(child.cmdline())
    ]


class SignalAt(Listener):
    """Sends a signal to a process beside this one, at a random moment after a step."""

    def __init__(self, step, number, generator):
        self.step, self.number, self.generator = step, number, generator

    def on_step(self, progress):
        if progress.step == self.step:
            time.sleep(self.generator.uniform(0, 0.02))
            os.kill(workers(psutil.Process())[0], self.number)


def wait_for_lines(path, lines, process):
    while process.poll() is None:
        if path.is_file() and path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.01)


def test_a_killed_process_is_named_and_resuming_ends_with_the_same_bits(tmp_path, whole):
    run, generator = tmp_path / "run", random.Random(1)
    for number in range(KILLS):
        listener = SignalAt(generator.randint(1, STEPS - 10), signal.SIGKILL, generator)
        before = (run / "recipe.toml").exists()
        with pytest.raises(HeadstartError, match=r"process 1 of 2 .* ended by signal 9") as error:
            pretrain(recipe(tmp_path, 2), run, resume=before, listener=listener, save_seconds=0.1)
        assert re.search(r"at step \d+", error.value.what), number
        assert "--resume" in error.value.fix
    pretrain(recipe(tmp_path, 2), run, resume=True)
    assert final_bytes(run) == final_bytes(whole)


def test_a_process_that_does_not_answer_ends_the_run_and_one_process_can_go_on(
    tmp_path, whole, monkeypatch
):
    monkeypatch.setattr(group, "GRACE_SECONDS", 1.0)
    run, listener = tmp_path / "run", SignalAt(20, signal.SIGSTOP, random.Random(2))
    with pytest.raises(HeadstartError) as error:
        pretrain(recipe(tmp_path, 2), run, listener=listener, save_seconds=0, stuck_seconds=2)
    assert re.search(
        r"at step 2\d, process 1 of 2 .* has not answered for 2 seconds", error.value.what
    )
    assert not workers(psutil.Process())  # nobody is left behind
    pretrain(recipe(tmp_path, 1), run, resume=True)
    assert_close(run, whole)


def test_processes_whose_first_one_is_killed_say_so_and_end(tmp_path, whole):
    small_recipe(tmp_path)  # writes the corpus
    run = tmp_path / "run"
    arguments = command(tmp_path, run, "--processes", 3)
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_for_lines(run / "metrics.jsonl", 20, process)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=60)  # returns when the other processes have ended, too
    assert process.returncode == -signal.SIGKILL
    assert re.search(r"at step \d+, process 0 of 3 .* has ended", said)
    assert "--resume" in said
    pretrain(recipe(tmp_path, 1), run, resume=True)
    assert_close(run, whole)


def test_torchrun_starts_a_run_again_whose_process_was_killed(tmp_path, whole):
    small_recipe(tmp_path)  # writes the corpus
    run = tmp_path / "run"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    arguments = [*launcher, "--max-restarts=1", *command(tmp_path, run)]
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_lines(run / "metrics.jsonl", 20, process)
    ranks = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if child.environ().get("RANK") == "1"
    ]
    ranks[0].kill()
    try:
        printed, said = process.communicate(timeout=120)
    finally:
        process.terminate()
    assert process.returncode == 0, said
    assert printed.count("held-out perplexity") == 1  # only rank 0 prints
    assert final_bytes(run) == final_bytes(whole)
