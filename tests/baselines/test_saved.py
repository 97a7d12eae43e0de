"""A classifier without a network is a run like any other: saved, opened, used, checked."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import headstart
from headstart.baselines.linear import ARRAYS, VOCABULARY, TfidfClassifier
from headstart.baselines.stack import MEMBERS, Stack
from headstart.errors import HeadstartError
from headstart.run import (
    CALIBRATION,
    CLASSIFIER,
    ClassifierRun,
    NetworkRun,
    Run,
)
from headstart.tasks.classification import Classification
from tests.baselines.saved import KINDS, TRAIN, classifier_run
from tests.labelled import dataset

TEXTS = dataset(40, 5).texts


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A saved classifier of each kind."""
    place = tmp_path_factory.mktemp("saved")
    for kind in KINDS:
        classifier_run(kind).save(place / kind)
    return place


@pytest.fixture
def copied(folders, tmp_path):
    """A copy of each that may be damaged."""
    return shutil.copytree(folders, tmp_path / "copied")


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_saved_predicts_the_same_bits_in_any_batch_and_cannot_hold_code(
    folders, kind, tmp_path
):
    expected = classifier_run(kind).predict_proba(TEXTS)
    run = headstart.load(folders / kind)
    run.save(tmp_path / "again")
    for one in (run, headstart.load(tmp_path / "again")):
        assert np.array_equal(one.predict_proba(TEXTS), expected)
    alone = np.concatenate([run.predict_proba([text]) for text in TEXTS[:5]])
    assert np.array_equal(alone, expected[:5])
    suffixes = {path.suffix for path in (folders / kind).rglob("*") if path.is_file()}
    assert suffixes <= {".json", ".safetensors"}


@pytest.mark.parametrize("kind", KINDS)
def test_it_predicts_and_is_evaluated_as_a_network_is(folders, kind, tmp_path):
    run = Run.open(folders / kind)
    assert run.labels == TRAIN.label_names
    assert {answer["label"] for answer in run.predict(TEXTS)} <= set(run.labels)
    found = run.evaluate(dataset(40, 9))
    assert found["accuracy"] > 0.8
    assert found["calibration"]["temperature"] == run.temperature
    (tmp_path / "in.csv").write_text("text\nthe cat sleeps .\n")
    assert run.predict_file(tmp_path / "in.csv", tmp_path / "out.csv")["rows"] == 1
    assert run.facts()["kind"] == kind


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_line_predicts_and_explains(folders, kind, headstart_json):
    found = headstart_json("predict", folders / kind, "the old judge reads the law .", "--explain")
    answer = found["predictions"][0]
    words = {one["text"]: one["effect"] for one in answer["explanation"]["effects"]}
    assert (words["judge"] > 0) == (answer["label"] == "person")


def test_a_base_for_finetuning_must_be_a_network(folders):
    with pytest.raises(HeadstartError, match="no network to train: it is of the kind 'tfidf'"):
        NetworkRun.open(folders / "tfidf")


def cut(path):
    path.write_bytes(path.read_bytes()[:10])


def reorder(path):
    path.write_text(json.dumps(json.loads(path.read_text())[::-1]))


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        (f"tfidf/{ARRAYS}", cut, "damaged"),
        (f"tfidf/{VOCABULARY}", cut, "damaged"),
        (f"tfidf/{CLASSIFIER}", cut, "damaged"),
        (f"tfidf/{CALIBRATION}", cut, "damaged"),
        (f"tfidf/{VOCABULARY}", reorder, "not the file that was saved"),
        (f"tfidf/{ARRAYS}", Path.unlink, f"No such file.*{ARRAYS}"),
        (f"stack/{MEMBERS}/tfidf", shutil.rmtree, "no such run"),
    ],
)
def test_a_damaged_or_missing_file_is_one_clear_error(copied, name, damage, message):
    damage(copied / name)
    with pytest.raises(HeadstartError, match=message) as error:
        headstart.load((copied / name).parents[name.count("/") - 1])
    assert error.value.fix


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("tfidf", {"kind": "wizard"}),
        ("tfidf", {"labels": ["one"]}),
        ("stack", {"labels": 3}),
        ("tfidf", {"task": "nothing"}),
        ("tfidf", {"settings": {}}),
        ("tfidf", {"files": {"../x": ""}}),
        ("stack", {"files": None}),
        ("stack", {"settings": {"weights": {}}}),
        ("stack", {"settings": {"weights": {"tfidf": -1}}}),
        ("stack", {"settings": {"weights": {"../x": 1}}}),
        ("stack", {"settings": {"weights": {"tfidf": "much"}}}),
        ("stack", {"settings": {"weights": [1]}}),
    ],
)
def test_a_changed_description_is_one_clear_error(copied, kind, change):
    path = copied / kind / CLASSIFIER
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(HeadstartError):
        headstart.load(copied / kind)


@pytest.mark.parametrize("name", ["coef_", "intercept_", "classes_", "char_idf_", "NaN"])
def test_arrays_that_do_not_fit_each_other_are_rejected(copied, name):
    folder = copied / "tfidf"
    arrays = load_file(folder / ARRAYS)
    if name == "NaN":
        arrays["coef_"] *= np.nan
    else:
        arrays[name] = np.concatenate([arrays[name], arrays[name]], axis=-1)
    save_file(arrays, folder / ARRAYS)
    content = json.loads((folder / CLASSIFIER).read_text())
    del content["files"][ARRAYS]
    (folder / CLASSIFIER).write_text(json.dumps(content))
    with pytest.raises(HeadstartError, match="damaged"):
        headstart.load(folder)


def test_a_member_that_counts_for_nothing_changes_no_bit():
    draw = np.random.default_rng(0)
    arms = [draw.dirichlet([1, 1, 1], 50).astype(np.float32) for _ in range(3)]
    stack = Stack()
    stack.weights_ = np.array([0.7, 0.0, 0.4])
    fewer = Stack()
    fewer.weights_ = np.array([0.7, 0.4])
    assert np.array_equal(stack.predict_proba(arms), fewer.predict_proba([arms[0], arms[2]]))


def test_a_class_without_a_training_row_has_no_probability(tmp_path):
    arm = TfidfClassifier().fit(["a b", "c d"], [0, 2], validation=(["a", "c"], [0, 2]))
    run = ClassifierRun(tmp_path, Classification(["x", "y", "z"]), arm)
    run.save(tmp_path)
    assert headstart.load(tmp_path).predict(["a b"])[0]["probabilities"]["y"] == 0
