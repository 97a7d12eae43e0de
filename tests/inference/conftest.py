"""A small classifier for tests of prediction."""

import pytest

from headstart.run import NetworkRun
from headstart.training.finetune import finetune
from tests.labelled import config, splits, write_csv


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """A run that was trained on a CSV file next to it."""
    folder = tmp_path_factory.mktemp("classifier")
    data = splits(rows=120, wrong=0.1)
    write_csv(folder / "train.csv", data.train)
    settings = config(dataset=[str(folder / "train.csv")], epochs=4, head_init="random")
    finetune(settings, folder / "run")
    return folder / "run"


@pytest.fixture(scope="session")
def run(run_folder):
    return NetworkRun.open(run_folder)
