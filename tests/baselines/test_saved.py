"""A classifier without a network is a run like any other: saved, opened, used, checked."""

import json
import shutil

import numpy as np
import pytest

import headstart
from headstart.baselines.linear import TfidfClassifier
from headstart.baselines.stack import MEMBERS
from headstart.checksums import load_arrays, save_arrays
from headstart.errors import HeadstartError
from headstart.run import CLASSIFIER, ClassifierRun, NetworkRun, Run
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
    assert run.kind == kind


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


def rewrite(path, arrays=None, **changes):
    """Write a classifier with other content and the right checksum."""
    saved, about = load_arrays(path, fix="")
    save_arrays({**saved, **(arrays or {})}, path, json.dumps({**json.loads(about), **changes}))


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        (f"tfidf/{CLASSIFIER}", cut, "damaged"),
        ("cooc-lr/tokenizer.json", cut, "damaged"),
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
        ("tfidf", {"settings": {"C": [1], "words": ["a"]}}),
        ("tfidf", {"temperature": 0}),
        ("tfidf", {"arrays": {"coef_": np.full((1, 3), np.nan)}}),
        ("tfidf", {"arrays": {"coef_": np.zeros((1, 3))}}),
        ("tfidf", {"arrays": {"intercept_": np.zeros(2)}}),
        ("tfidf", {"arrays": {"classes_": np.arange(4)}}),
        ("stack", {"settings": {"members": ["../x", "tfidf"]}}),
        ("stack", {"arrays": {"weights": np.array([0.7, -0.4])}}),
        ("stack", {"arrays": {"weights": np.array([0.7])}}),
    ],
)
def test_changed_content_is_one_clear_error(copied, kind, change):
    rewrite(copied / kind / CLASSIFIER, **change)
    with pytest.raises(HeadstartError) as error:
        headstart.load(copied / kind)
    assert error.value.fix


def test_a_class_without_a_training_row_has_no_probability(tmp_path):
    arm = TfidfClassifier().fit(["a b", "c d"], [0, 2], validation=(["a", "c"], [0, 2]))
    run = ClassifierRun(tmp_path, arm, task=Classification(["x", "y", "z"]))
    run.save(tmp_path)
    assert headstart.load(tmp_path).predict(["a b"])[0]["probabilities"]["y"] == 0
