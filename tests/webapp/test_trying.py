"""Trying a classifier: its prediction, and the effect of each part of the text."""

import shutil

import pytest

from headstart.webapp.routes import LONGEST, describe_classifier, predict_texts
from tests.baselines.saved import classifier_run
from tests.webapp.conftest import ended


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("classifier") / "best"
    classifier_run("tfidf").save(place)
    return place


def test_a_text_is_predicted_and_explained(folder):
    text = "the old cat chases the mouse ."
    assert describe_classifier(folder)["labels"] == ["animal", "person"]
    found = predict_texts(folder, [text])
    assert found["label"] == "animal"
    assert found["probability"] == max(found["probabilities"].values())
    assert "".join(piece["text"] for piece in found["explanation"]) == text
    strongest = max((p for p in found["explanation"] if "share" in p), key=lambda p: p["share"])
    assert strongest["share"] == 1.0
    assert strongest["text"] in ("cat", "chases", "mouse")


def test_texts_that_cannot_be_predicted_are_one_message(client, upload, studies, folder):
    path = f"/api/studies/{upload()['id']}/classifier"
    response = client.post(path, json={"texts": ["x"]})
    assert (response.status_code, response.json()["code"]) == (422, "no-classifier")
    shutil.copytree(folder, studies.all()[0].best)
    for texts in (["  "], ["x" * (LONGEST + 1)], [], ["a", "b"]):
        response = client.post(path, json={"texts": texts})
        assert response.status_code == 422, response.text
        assert response.json()["error"]


@pytest.mark.slow
def test_the_texts_of_a_file_are_predicted(client, upload, studies, folder):
    study = upload()
    shutil.copytree(folder, studies.find(study["id"]).best)
    path, headers = f"/api/studies/{study['id']}/predictions", {"x-file-name": "predictions.csv"}
    client.post(path, content=b"text,x\nthe old cat,1\nthe mouse,2\n", headers=headers)
    assert ended(client, study, "predict")["state"] == "done"
    found = client.get(path)
    assert "predictions.csv" in found.headers["content-disposition"]
    assert len(found.text.splitlines()) == 3
    assert "p(animal)" in found.text.splitlines()[0]
    client.post(path, content=b"a,b\n1,2\n", headers=headers)
    assert "in the data of the study" in ended(client, study, "predict")["error"]["fix"]
    assert client.get(path).status_code == 422  # not the predictions of before
