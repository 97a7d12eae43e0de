"""One process at a time writes to a run or study; a second one gets the name of the first."""

import os
import socket
import subprocess
import sys

import pytest

from headstart.errors import HeadstartError
from headstart.files import PART, locked
from headstart.training.finetune import finetune
from headstart.training.pretrain import pretrain
from tests.labelled import config, splits
from tests.runs import small_config


def test_a_second_process_is_told_who_holds_the_folder(tmp_path):
    code = (
        "import sys, pathlib\n"
        "from headstart.files import locked\n"
        "with locked(pathlib.Path(sys.argv[1])): pass\n"
    )
    with locked(tmp_path / "run"):
        command = [sys.executable, "-c", code, str(tmp_path / "run")]
        result = subprocess.run(command, capture_output=True, text=True)
    assert f"running already, in process {os.getpid()} on {socket.gethostname()}" in result.stderr
    with locked(tmp_path / "run"):
        pass


def test_training_into_a_folder_in_use_is_rejected(tmp_path):
    with locked(tmp_path / "run"):
        (tmp_path / "run" / "something").write_text("")
        with pytest.raises(HeadstartError, match=f"in process {os.getpid()}") as rejected:
            pretrain(small_config(tmp_path, steps=1), tmp_path / "run")
        assert rejected.value.code == "locked"
        with pytest.raises(HeadstartError, match=f"in process {os.getpid()}"):
            finetune(config(), tmp_path / "run", splits=splits())


def test_a_run_inside_the_folder_that_it_reads_is_rejected(tmp_path):
    settings = small_config(tmp_path, steps=1)
    inside = settings.replace(corpus=[str(tmp_path)])
    with pytest.raises(HeadstartError, match="which is read"):
        pretrain(inside, tmp_path / "runs" / "k")
    with pytest.raises(HeadstartError, match="which is read"):
        pretrain(inside, tmp_path / "x" / ".." / "k")


def write_parts(run):
    """What a killed process leaves in a run, and a file of the user's."""
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / f".step-00000010.safetensors.abcd1234{PART}").write_bytes(b"half")
    (run / f".config.json.abcd1234{PART}").write_bytes(b"half")
    (run / ".mine.part").write_bytes(b"the user's")


def test_what_a_killed_process_had_half_written_in_a_run_is_removed(tmp_path):
    write_parts(tmp_path / "run")
    (tmp_path / "run" / "config.toml").touch()
    with locked(tmp_path / "run"):
        pass
    assert [path.name for path in (tmp_path / "run").rglob("*.part")] == [".mine.part"]


@pytest.mark.parametrize("outer", ["a folder of runs", "a study"])
def test_locking_a_folder_leaves_the_runs_inside_alone(tmp_path, outer):
    """Another process may be writing a checkpoint there."""
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.toml").touch()
    if outer == "a study":
        (tmp_path / "config.toml").touch()
    write_parts(tmp_path / "base")
    before = sorted(path.name for path in (tmp_path / "base").rglob("*"))
    with locked(tmp_path):
        pass
    assert sorted(path.name for path in (tmp_path / "base").rglob("*")) == before
