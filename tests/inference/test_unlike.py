"""A run reports texts that are unlike its training rows."""

import csv
import json
import shutil

import pytest

from headstart.errors import HeadstartError
from headstart.run import NetworkRun
from headstart.serve.model import reply
from headstart.training.finetune import finetune
from headstart.training.trainer import Interrupted
from headstart.unlike import FIELD, TOKENS
from tests.callbacks import StopAt
from tests.labelled import config, splits

ELSEWHERE = "12,345 % Rabatt: jetzt zugreifen!"


def flags(run, texts):
    return [one[FIELD] for one in run.predict(texts)]


def test_a_text_from_elsewhere_is_flagged_whatever_its_probability(run):
    (found,) = run.predict([ELSEWHERE])
    assert found[FIELD] is True
    assert set(found["probabilities"]) == set(run.labels)


def test_at_most_a_hundredth_of_the_training_texts_is_flagged(run):
    texts = splits(rows=120, wrong=0.1).train.texts
    assert sum(flags(run, texts)) <= len(texts) / 100


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_file_of_predictions_has_a_column_and_the_summary_a_count(run, tmp_path, suffix):
    source, output = tmp_path / "in.jsonl", tmp_path / f"out{suffix}"
    texts = [splits().train.texts[0], "", ELSEWHERE]
    source.write_text("".join(json.dumps({"text": one}) + "\n" for one in texts))
    assert run.predict_file(source, output)[FIELD] == 1
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file) if suffix == ".csv" else map(json.loads, file))
    assert [str(row[FIELD]) for row in rows] in (["False", "", "True"], ["False", "None", "True"])


def test_the_server_has_the_field_at_the_most_probable_label(run):
    (prediction,) = run.predict([ELSEWHERE])
    first, second = reply(run, ELSEWHERE, prediction)
    assert first[FIELD] is True
    assert set(second) == {"label", "score"}


def test_the_command_says_it_on_standard_error(headstart, run_folder):
    shown = headstart("predict", run_folder, ELSEWHERE)
    assert ELSEWHERE in shown.stderr
    usual = headstart("predict", run_folder, splits().train.texts[0])
    assert "note" not in usual.stderr


@pytest.fixture
def copy(run_folder, tmp_path):
    return shutil.copytree(run_folder, tmp_path / "copy")


def test_a_run_without_the_file_has_the_same_predictions_without_the_field(run, copy):
    (copy / TOKENS).unlink()
    (found,), (whole,) = NetworkRun.open(copy).predict([ELSEWHERE]), run.predict([ELSEWHERE])
    assert FIELD not in found
    assert found == {name: value for name, value in whole.items() if name != FIELD}


@pytest.mark.parametrize("content", [b"", b"damaged", None])
def test_a_damaged_file_is_one_error_with_a_fix(copy, content):
    whole = (copy / TOKENS).read_bytes()
    (copy / TOKENS).write_bytes(whole[:-9] if content is None else content)
    with pytest.raises(HeadstartError, match=f"{TOKENS} is damaged") as raised:
        NetworkRun.open(copy)
    assert raised.value.fix


def test_it_is_the_same_after_a_resume(tmp_path):
    finetune(config(epochs=1), tmp_path / "a", splits=splits())
    with pytest.raises(Interrupted):
        finetune(config(epochs=1), tmp_path / "b", splits=splits(), callbacks=[StopAt(2)])
    finetune(config(epochs=1), tmp_path / "b", splits=splits(), resume=True)
    assert (tmp_path / "a" / TOKENS).read_bytes() == (tmp_path / "b" / TOKENS).read_bytes()
