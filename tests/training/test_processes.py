"""Several processes of one pretraining give the same results as one, also after failures."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.corpora import write_corpus
from tests.runs import options

pytestmark = pytest.mark.slow

STEPS = 50
TINY = options(steps=STEPS)
LONG = options(steps=800, save_seconds=0.1)
HEADSTART = [sys.executable, "-m", "headstart"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
IMPATIENT = """
import headstart.training.processes
from headstart.cli.app import main
headstart.training.processes.STUCK_SECONDS = 15.0
main()
"""


@pytest.fixture
def corpus(tmp_path):
    return str(write_corpus(tmp_path / "corpus.txt"))


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def losses(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line.get("held_out", line)["loss"] for line in lines]


def started(command, folder):
    """Start it, wait until it has a checkpoint, and return it with its processes by rank."""
    process = subprocess.Popen(
        [*command, "--out", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while not list(folder.glob("checkpoints/*.safetensors")):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    children = psutil.Process(process.pid).children()
    return process, {child.environ().get("RANK"): child for child in children}


@pytest.mark.parametrize(
    ("objective", "softmax", "preset"),
    [
        ("causal", "sampled", "lab"),
        ("masked", "full", "small"),
        ("masked+next-sentence", "sampled", "small"),
        ("contrastive", "full", "small"),
        ("causal+contrastive", "sampled", "lab"),
    ],
)
def test_two_processes_have_the_losses_of_one(tmp_path, corpus, objective, softmax, preset):
    kind = ["--objective", objective, "--softmax", softmax, "--preset", preset]
    kind += ["--learning-rate", "1e-3"]  # at a high one, differences in the last bit grow
    command = [*HEADSTART, "pretrain", corpus, *TINY, *kind]
    for count in (1, 2):
        made = run([*command, "--processes", str(count), "--out", str(tmp_path / str(count))])
        assert made.returncode == 0, made.stderr
    one, two = losses(tmp_path / "1"), losses(tmp_path / "2")
    assert len(one) == STEPS + 2
    # Views of this corpus repeat words, and rounding decides which of two equal states is the
    # maximum: from then on, the gradients of bidirectional contrastive learning differ.
    strict = 10 if objective == "contrastive" else len(one)
    assert two[:strict] == pytest.approx(one[:strict], rel=1e-5)
    assert two == pytest.approx(one, rel=1e-2)


def test_a_killed_process_ends_the_run_which_resumes_with_the_same_bits_or_another_number(
    tmp_path, corpus
):
    command = [*HEADSTART, "pretrain", corpus, *LONG, "--processes", "2"]
    whole, killed, other = (tmp_path / name for name in ("whole", "killed", "other"))
    for rank, folder in (("0", killed), ("1", other)):
        process, processes = started(command, folder)
        processes[rank].kill()
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 2
        assert output.count("error:") == 1
        assert f"process {rank} of 2 (counted from 0) was ended by signal 9" in output
        assert not any(child.is_running() for child in processes.values())
    for folder, more in ((whole, []), (killed, ["--resume"])):
        made = run([*command, "--out", str(folder), *more])
        assert made.returncode == 0, made.stderr
    name = "model.safetensors"
    assert (killed / name).read_bytes() == (whole / name).read_bytes()
    resumed = run([*HEADSTART, "pretrain", "--resume", "--out", str(other)])  # one process
    assert resumed.returncode == 0, resumed.stderr
    assert losses(other)[:50] == pytest.approx(losses(whole)[:50], rel=1e-5)


@pytest.mark.parametrize("target", ["launcher", "1"])
def test_a_stop_saves_and_every_process_ends(tmp_path, corpus, target):
    command = [*HEADSTART, "pretrain", corpus, *LONG, "--processes", "2"]
    process, processes = started(command, tmp_path / "run")
    stopped = processes.get(target, process)
    stopped.send_signal(signal.SIGINT if target == "launcher" else signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "stopped and saved at step" in output
    assert output.count("resume with") == 1
    assert not any(child.is_running() for child in processes.values())


def test_under_torchrun_a_process_that_is_stuck_is_reported(tmp_path, corpus):
    script = tmp_path / "impatient.py"
    script.write_text(IMPATIENT)
    process, processes = started(
        [*TORCHRUN, str(script), "pretrain", corpus, *LONG], tmp_path / "run"
    )
    os.kill(processes["1"].pid, signal.SIGSTOP)
    output, _ = process.communicate(timeout=120)
    assert process.returncode
    assert output.count("error: another process of this training has not answered for 15 s") == 1
    assert not any(child.is_running() for child in processes.values())


@pytest.mark.parametrize(
    ("options_given", "message"),
    [
        (["--batch-tokens", "32"], "a step has 1 rows, too few for 2 processes"),
        (["--tokenizer", "missing"], "missing"),
    ],
)
def test_a_bad_option_is_reported_once(tmp_path, corpus, options_given, message):
    out = tmp_path / "run"
    found = run(
        [*HEADSTART, "pretrain", corpus, *TINY, *options_given, "--processes", "2", "--out", out]
    )
    assert found.returncode == 2
    assert found.stderr.count("error:") == 1
    assert message in found.stderr
    assert not out.exists()
