"""The app supports tagging and spans in the same steps as classification."""

import pytest

from headstart.webapp.server import make_app
from tests.labelled import write_conll, write_squad
from tests.webapp.conftest import TINY, client_of, end_all, ended

pytestmark = pytest.mark.slow

WRITE = {"ner.conll": write_conll, "squad.json": write_squad}


@pytest.mark.parametrize(
    ("name", "arms", "texts", "field"),
    [
        ("ner.conll", ["trivial", "linear"], ["Anna sings in Berlin"], "tags"),
        ("squad.json", ["trivial", "scratch"], ["Who sings?", "Anna sings in Berlin."], "answer"),
    ],
)
def test_a_study_of_another_task_from_its_file_to_a_prediction(tmp_path, name, arms, texts, field):
    app = make_app(tmp_path / "app", extra=TINY)
    data = WRITE[name](tmp_path / name, 80).read_bytes()
    with client_of(app) as client:
        headers = {"x-file-name": name}
        study = client.post("/api/studies", content=data, headers=headers).json()
        path = f"/api/studies/{study['id']}"
        settings = {"seeds": 1, "labels": "20 all", "arms": arms}
        try:
            for kind, given in (("inspect", {}), ("plan", settings), ("start", {})):
                assert client.post(f"{path}/{kind}", json=given).status_code == 202
                job = ended(client, study, {"start": "study"}.get(kind, kind))
                assert job["state"] == "done", job
        finally:
            end_all(app.state.studies)
        assert "expect" in job["result"]["recommendation"][0]
        assert field in client.post(f"{path}/classifier", json={"texts": texts}).json()
