"""Responses for every task and kind of run equal `headstart predict`, whatever else is in the
batch."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from headstart.run import Run
from headstart.serve.model import onednn_linear
from tests.baselines.saved import classifier_run
from tests.serve.served import LABELS, MIXED, TEXTS, save_random_run, served

TOLERANCE = 1e-5  # of a probability; docs/serving.md states 1e-4 for networks of any size
PAIR = {"text": "the cat sleeps", "text_pair": "the dog does not"}
QUESTION = {"question": "who lives here?", "context": "In 1970, Ada lives here. Alan works."}
INPUTS = {
    "classification": "the old cat",
    "multi-label": "the old cat",
    "pairs": PAIR,
    "tagging": "Ada lives in Paris",
    "spans": QUESTION,
}


def by_label(answer):
    return {one["label"]: one["score"] for one in answer}


@pytest.mark.parametrize("task", LABELS)
def test_each_task_answers_in_the_form_of_hugging_faces_pipeline(task, tmp_path):
    folder, given = save_random_run(tmp_path / task, task), INPUTS[task]
    with served(folder) as client:
        assert client.get("/info").json()["task"] == task
        found = client.post("/predict", json={"inputs": given}).json()
        several = client.post("/predict", json={"inputs": [given] * 2}).json()
    row = given if isinstance(given, str) else tuple(given.values())
    wanted = Run.open(folder).predict([row])[0]
    assert len(several) == 2
    if task == "spans":
        assert set(found) == {"answer", "score", "start", "end"}
        assert QUESTION["context"][found["start"] : found["end"]] == found["answer"]
    elif task == "tagging":
        names = {"entity_group", "word", "score", "start", "end"}
        assert all(set(one) == names for one in found)
        assert [one["word"] for one in found] == [one["text"] for one in wanted["entities"]]
    else:
        assert by_label(found) == pytest.approx(wanted["probabilities"], abs=TOLERANCE)
        assert found == sorted(found, key=lambda one: -one["score"])


def test_every_word_has_its_tag_where_that_is_wanted(tmp_path):
    body = {"inputs": "Ada lives", "parameters": {"aggregation_strategy": "none"}}
    with served(save_random_run(tmp_path / "tagger", "tagging")) as client:
        found = client.post("/predict", json=body).json()
    places = [(one["word"], one["start"], one["end"]) for one in found]
    assert places == [("Ada", 0, 3), ("lives", 4, 9)]
    assert all(one["entity"] in LABELS["tagging"] for one in found)


def test_a_study_is_served_by_its_best_arm_of_any_kind(tmp_path):
    classifier_run("tfidf").save(tmp_path / "study" / "best")
    (tmp_path / "study" / "jobs").mkdir()
    with served(tmp_path / "study") as client:
        found = client.post("/predict", json={"inputs": TEXTS[0]}).json()
    wanted = Run.open(tmp_path / "study" / "best").predict([TEXTS[0]])[0]
    assert by_label(found) == pytest.approx(wanted["probabilities"], abs=TOLERANCE)


def test_an_export_to_onnx_answers_as_its_run_does(client, classifier, tmp_path):
    pytest.importorskip("onnxruntime")
    from headstart.interop.export import export_run

    export_run(classifier, "onnx", tmp_path / "exported")
    body = {"inputs": MIXED}
    with served(tmp_path / "exported") as exported:
        theirs = exported.post("/predict", json=body).json()
    for one, other in zip(client.post("/predict", json=body).json(), theirs, strict=True):
        assert by_label(other) == pytest.approx(by_label(one), abs=1e-4)


def test_an_answer_is_the_same_alone_and_under_load(client):
    """Forty threads send lists and single texts; every probability is within 1e-5."""

    def scores(given):
        reply = client.post("/predict", json={"inputs": given})
        assert reply.status_code == 200
        found = reply.json()
        return [by_label(one) for one in (found if isinstance(given, list) else [found])]

    alone = {text: scores(text)[0] for text in MIXED}
    asked = [*MIXED, MIXED, MIXED[::-1], *MIXED[::-1], MIXED[5:25]] * 2
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(scores, asked))
    for given, answers in zip(asked, found, strict=True):
        texts = given if isinstance(given, list) else [given]
        for text, answer in zip(texts, answers, strict=True):
            assert answer == pytest.approx(alone[text], abs=TOLERANCE)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ('["fine", " \\n"]', "inputs[1]"),
        ("[3]", "inputs[0]"),
        ('"a\\u0000b"', "inputs"),
        ('["half \\ud83d"]', "inputs[0]"),
        ("null", "inputs"),
    ],
)
def test_an_input_that_cannot_be_answered_is_named_by_its_place(client, given, place):
    headers = {"Content-Type": "application/json"}
    reply = client.post("/predict", content=f'{{"inputs": {given}}}', headers=headers)
    found = reply.json()
    assert (reply.status_code, found["code"], found["where"]) == (422, "invalid", place)
    assert "inputs" in found["fix"]


def test_an_input_of_two_texts_needs_both(tmp_path):
    with served(save_random_run(tmp_path / "pairs", "pairs")) as client:
        for given, place in (
            ({"text": "a"}, "inputs.text_pair"),
            ([PAIR, {"text": "a", "text_pair": ""}], "inputs[1].text_pair"),
            ([PAIR, "one text"], "inputs[1]"),
        ):
            reply = client.post("/predict", json={"inputs": given})
            assert (reply.status_code, reply.json()["where"]) == (422, place)


@pytest.mark.parametrize("shape", [(5,), (2, 40, 5), (3, 700, 5)])
def test_linear_layers_of_a_served_network_are_those_of_pytorch(shape):
    layer, inputs = torch.nn.Linear(5, 7), torch.randn(shape)
    with torch.no_grad():
        torch.testing.assert_close(onednn_linear(layer, inputs), layer(inputs))
