"""What is answered: every task and kind of run, the same as `headstart predict`, whatever else
is in the batch."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from headstart.errors import HeadstartError
from headstart.run import Run
from headstart.serve.model import ServedModel, use_onednn
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


@pytest.fixture(scope="module", params=LABELS)
def any_task(request, tmp_path_factory):
    """A run of each task."""
    folder = tmp_path_factory.mktemp("task") / request.param
    return save_random_run(folder, request.param)


def predicted(folder, given):
    """What `headstart predict` says about an input."""
    row = given if isinstance(given, str) else tuple(given.values())
    return Run.open(folder).predict([row])[0]


def test_each_task_answers_in_the_form_of_hugging_faces_pipeline(any_task):
    with served(any_task) as client:
        task = client.get("/info").json()["task"]
        reply = client.post("/predict", json={"inputs": INPUTS[task]})
        assert reply.status_code == 200, reply.text
        found = reply.json()
        several = client.post("/predict", json={"inputs": [INPUTS[task]] * 2}).json()
    assert len(several) == 2
    wanted = predicted(any_task, INPUTS[task])
    if task == "spans":
        assert found["score"] == pytest.approx(wanted["probability"], abs=TOLERANCE)
        assert set(found) == {"answer", "score", "start", "end"}
        assert QUESTION["context"][found["start"] : found["end"]] == found["answer"]
        return
    names = {"entity_group", "word", "score", "start", "end"}
    names = names if task == "tagging" else {"label", "score"}
    assert all(set(one) == names for one in found)
    if task == "tagging":
        assert [one["word"] for one in found] == [one["text"] for one in wanted["entities"]]
        return
    scores = {one["label"]: one["score"] for one in found}
    assert scores == pytest.approx(wanted["probabilities"], abs=TOLERANCE)
    if task in ("classification", "pairs"):
        assert {one["label"] for one in found} == set(LABELS[task])
        assert sum(one["score"] for one in found) == pytest.approx(1)
        assert found == sorted(found, key=lambda one: -one["score"])


def test_every_word_has_its_tag_where_that_is_wanted(tmp_path):
    folder = save_random_run(tmp_path / "tagger", "tagging")
    with served(folder) as client:
        body = {"inputs": "Ada lives", "parameters": {"aggregation_strategy": "none"}}
        found = client.post("/predict", json=body).json()
    assert [(one["word"], one["start"], one["end"]) for one in found] == [
        ("Ada", 0, 3),
        ("lives", 4, 9),
    ]
    assert all(one["entity"] in LABELS["tagging"] for one in found)


@pytest.mark.parametrize("kind", ["tfidf", "nb", "stack"])
def test_a_run_without_a_network_answers_and_explains(kind, tmp_path):
    classifier_run(kind).save(tmp_path / kind)
    body = {"inputs": TEXTS[0], "parameters": {"explain": True}}
    with served(tmp_path / kind) as client:
        first = client.post("/predict", json=body).json()[0]
    run = Run.open(tmp_path / kind)
    wanted = run.explain(TEXTS[0])
    assert first["label"] == run.predict([TEXTS[0]])[0]["label"]
    assert first["explanation"]["method"] == "occlusion"
    effects = [one["effect"] for one in first["explanation"]["effects"]]
    assert effects == pytest.approx([one.effect for one in wanted], abs=1e-4)


def test_an_export_to_onnx_answers_as_its_run_does(client, classifier, tmp_path):
    pytest.importorskip("onnxruntime")
    from headstart.interop.export import export_run

    export_run(classifier, "onnx", tmp_path / "exported")
    body = {"inputs": MIXED}
    with served(tmp_path / "exported") as exported:
        theirs = exported.post("/predict", json=body).json()
    for one, other in zip(client.post("/predict", json=body).json(), theirs, strict=True):
        assert other[0]["score"] == pytest.approx(one[0]["score"], abs=1e-4)


def test_a_study_is_served_by_its_best_under_its_own_name(tmp_path):
    save_random_run(tmp_path / "my study" / "best")
    (tmp_path / "my study" / "jobs").mkdir()
    assert ServedModel.open(tmp_path / "my study").name == "my-study"


def test_a_base_is_no_model_to_serve(tmp_path):
    with pytest.raises(HeadstartError, match="no such run"):
        ServedModel.open(tmp_path / "nowhere")


def test_explanations_over_http_are_those_of_headstart_predict(client, classifier):
    body = {"inputs": TEXTS[:2], "parameters": {"explain": True, "top_k": 1}}
    found = client.post("/predict", json=body).json()
    run = Run.open(classifier)
    for answer, text in zip(found, TEXTS, strict=False):
        effects = answer[0]["explanation"]["effects"]
        wanted = run.explain(text)
        assert [(one["start"], one["end"]) for one in effects] == [
            (one.start, one.end) for one in wanted
        ]
        assert [one["effect"] for one in effects] == pytest.approx(
            [one.effect for one in wanted], abs=1e-3
        )


def test_the_words_of_a_pair_are_placed_in_the_text_that_they_are_of(tmp_path):
    body = {"inputs": PAIR, "parameters": {"explain": True}}
    with served(save_random_run(tmp_path / "pairs", "pairs")) as client:
        effects = client.post("/predict", json=body).json()[0]["explanation"]["effects"]
    assert {one["input"] for one in effects} == set(PAIR)
    for one in effects:
        assert PAIR[one["input"]][one["start"] : one["end"]] == one["text"]


def test_tags_are_not_explained(tmp_path):
    body = {"inputs": "Ada lives", "parameters": {"explain": True}}
    with served(save_random_run(tmp_path / "tagger", "tagging")) as client:
        reply = client.post("/predict", json=body)
    assert (reply.status_code, reply.json()["where"]) == (422, "parameters.explain")


def test_an_answer_is_the_same_alone_and_under_load(client):
    """Forty threads at once, lists and single texts: each probability within 1e-5."""

    def scores(given):
        reply = client.post("/predict", json={"inputs": given})
        assert reply.status_code == 200
        found = reply.json()
        lists = found if isinstance(given, list) else [found]
        return [{one["label"]: one["score"] for one in answer} for answer in lists]

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
        ('["fine", ""]', "inputs[1]"),
        ('["fine", " \\n"]', "inputs[1]"),
        ("[3]", "inputs[0]"),
        ('[{"text": "a", "text_pair": "b"}]', "inputs[0]"),
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


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"text": "a"}, "inputs.text_pair"),
        ([PAIR, {"text": "a", "text_pair": ""}], "inputs[1].text_pair"),
        ([PAIR, "one text"], "inputs[1]"),
    ],
)
def test_an_input_of_two_texts_needs_both(tmp_path, given, place):
    with served(save_random_run(tmp_path / "pairs", "pairs")) as client:
        reply = client.post("/predict", json={"inputs": given})
    assert (reply.status_code, reply.json()["where"]) == (422, place)


@pytest.mark.parametrize("shape", [(5,), (1, 5), (2, 40, 5), (3, 700, 5)])
def test_linear_layers_of_a_served_network_are_those_of_pytorch(shape):
    layer, inputs = torch.nn.Linear(5, 7), torch.randn(shape)
    with torch.no_grad():
        wanted = layer(inputs)
        use_onednn(layer)
        torch.testing.assert_close(layer(inputs), wanted)
