"""Trying a classifier: its prediction, and the text in pieces with the effect of each."""

import shutil

import pytest

from headstart.webapp.trying import LONGEST, Classifiers
from tests.baselines.saved import classifier_run
from tests.webapp.conftest import ended


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("classifier") / "best"
    classifier_run("tfidf").save(place)
    return place


def test_a_text_is_predicted_and_explained(folder):
    text = "the old cat chases the mouse ."
    found = Classifiers().predict(folder, [text])
    assert found["label"] == "animal"
    assert found["probability"] == max(found["probabilities"].values())
    assert "".join(piece["text"] for piece in found["explanation"]) == text
    strongest = max((p for p in found["explanation"] if "share" in p), key=lambda p: p["share"])
    assert strongest["share"] == 1.0
    assert strongest["text"] in ("cat", "chases", "mouse")


def test_it_says_which_labels_it_knows(folder):
    found = Classifiers().describe(folder)
    assert found == {"labels": ["animal", "person"], "inputs": ("text",), "task": "classification"}


@pytest.mark.parametrize("texts", [["  "], ["x" * (LONGEST + 1)], [], ["a", "b"], ["a", "b", "c"]])
def test_texts_that_cannot_be_predicted_are_one_message(client, upload, studies, folder, texts):
    study = upload()
    shutil.copytree(folder, studies.find(study["id"]).best)
    path = f"/api/studies/{study['id']}/classifier"
    response = client.post(path, json={"texts": texts})
    assert response.status_code == 422, response.text
    assert response.json()["error"]["what"]


def test_a_study_without_a_classifier_is_a_message(client, upload):
    response = client.post(f"/api/studies/{upload()['id']}/classifier", json={"texts": ["x"]})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "no-classifier")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["more films.csv", "predictions.csv"])
def test_the_texts_of_a_file_are_predicted(client, upload, studies, folder, name):
    study = upload()
    shutil.copytree(folder, studies.find(study["id"]).best)
    path = f"/api/studies/{study['id']}/predictions"
    headers = {"x-file-name": name}
    client.post(path, content=b"text,x\nthe old cat,1\nthe mouse,2\n", headers=headers)
    assert ended(client, study, "predict")["state"] == "done"
    found = client.get(path)
    assert "predictions.csv" in found.headers["content-disposition"]
    assert len(found.text.splitlines()) == 3
    assert "p(animal)" in found.text.splitlines()[0]
    client.post(path, content=b"a,b\n1,2\n", headers=headers)
    assert "in the data of the study" in ended(client, study, "predict")["error"]["fix"]
