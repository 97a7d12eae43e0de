"""A run as an MLflow model: a table of texts in, a table of answers out."""

import json

import pandas as pd
import pytest

from headstart import HeadstartClassifier
from headstart.errors import HeadstartError
from headstart.interop import mlflow as ours
from headstart.interop.exporters import export_run
from headstart.run import load

TEXTS = ["oh yes", "oh no"]
TINY = {"width": 16, "layers": 1, "heads": 2, "vocab_size": 300, "threads": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow") / "run"
    arm = HeadstartClassifier(epochs=1, **TINY, random_state=0)
    arm.fit(["yes", "oh yes", "no", "oh no"], ["y", "y", "n", "n"]).save(folder)
    return folder


def test_what_mlflow_loads_predicts_a_table(run):
    found = ours._load_pyfunc(str(run)).predict(pd.DataFrame({"text": TEXTS}))
    assert found.columns.tolist() == ["label", "p(n)", "p(y)"]
    answers = load(run).predict(TEXTS)
    assert found["label"].tolist() == [answer["label"] for answer in answers]
    assert found["p(n)"].tolist() == [answer["probabilities"]["n"] for answer in answers]


def test_answers_that_are_no_classes_are_documents(tagger):
    found = ours._load_pyfunc(str(tagger)).predict(pd.DataFrame({"text": ["Ada saw Paris"]}))
    assert json.loads(found["answer"][0])["words"] == ["Ada", "saw", "Paris"]


def test_a_missing_column_is_named(run):
    with pytest.raises(HeadstartError, match="no column text"):
        ours._load_pyfunc(str(run)).predict(pd.DataFrame({"review": TEXTS}))


def test_without_mlflow_the_install_command_is_named(run, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HeadstartError, match="not installed"):
        ours.save_model(run, tmp_path / "model")


@pytest.mark.parametrize("form", ["run", "onnx"])
def test_mlflow_opens_what_was_saved_and_holds_the_signature(run, form, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    folder = run
    if form == "onnx":
        pytest.importorskip("onnxruntime")
        folder = tmp_path / "onnx"
        export_run(run, "onnx", folder)
    ours.save_model(folder, tmp_path / "model")
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert model.metadata.signature.inputs.input_names() == ["text"]
    assert model.metadata.signature.outputs.input_names() == ["label", "p(n)", "p(y)"]
    answers = load(run).predict(TEXTS)
    found = model.predict(pd.DataFrame({"text": TEXTS}))
    assert found["label"].tolist() == [answer["label"] for answer in answers]
    assert not list((tmp_path / "model").rglob("*.pkl"))
    with pytest.raises(Exception, match="text"):
        model.predict(pd.DataFrame({"review": TEXTS}))
