"""A run folder says which format it has; newer ones are refused clearly."""

import json

import pytest

from headstart import load
from headstart.config import FinetuneConfig
from headstart.errors import HeadstartError
from headstart.files import FOLDER_FORMAT, installed_version
from headstart.training.finetune import finetune
from tests.labelled import config, splits
from tests.runs import small_run


@pytest.fixture
def run(tmp_path):
    finetune(config(epochs=1), tmp_path / "run", splits=splits())
    return tmp_path / "run"


def set_format(folder, **content):
    (folder / "format.json").write_text(json.dumps(content))


def test_a_run_names_its_format_and_the_version_that_made_it(run):
    found = json.loads((run / "format.json").read_text())
    assert found == {"format": FOLDER_FORMAT, "headstart": installed_version()}


def test_a_pretraining_and_a_saved_run_name_it_too(tmp_path):
    folder = small_run(tmp_path, steps=2)
    load(folder).save(tmp_path / "copy")
    for place in (folder, tmp_path / "copy"):
        assert json.loads((place / "format.json").read_text())["format"] == FOLDER_FORMAT


def test_a_newer_run_says_who_made_it_and_what_to_do(run):
    set_format(run, format=FOLDER_FORMAT + 1, headstart="9.2.0")
    for read in (load, FinetuneConfig.load):
        with pytest.raises(HeadstartError, match=r"Headstart 9\.2\.0 made this folder") as error:
            read(run)
        assert "pip install 'headstart>=9.2.0'" in error.value.fix


@pytest.mark.parametrize("content", ["", "[]", '{"format": "new"}', "{}"])
def test_a_damaged_format_is_said(run, content):
    (run / "format.json").write_text(content)
    with pytest.raises(HeadstartError, match=r"format\.json is missing or damaged"):
        load(run)
