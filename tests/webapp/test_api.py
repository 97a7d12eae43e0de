"""What the page asks of the server."""

import json

import pytest
from fastapi.testclient import TestClient

from headstart.data.read import read_dataset
from headstart.errors import HeadstartError
from headstart.webapp.study_document import page_words, plain_error
from tests.webapp.conftest import wait_until

ECHO = (
    "import json, sys; print(json.dumps({'warnings': [], 'found': [], 'arguments': sys.argv[1:]}))"
)
FAILS = """
import json
error = {"what": "no label column was found; the columns are 'a'", "where": "%s",
         "fix": "say which one it is: --label-column NAME", "code": "label-column"}
print(json.dumps({"error": error}))
"""


def finished(client, study, kind):
    def look():
        job = client.get(f"/api/studies/{study['id']}").json()["jobs"][kind]
        return job["state"] != "running" and job

    return wait_until(look)


def arguments(services, study, name):
    return services.workspace.find(study["id"]).saved(name)["arguments"]


def test_the_choices_of_the_page_are_arguments_of_the_commands(
    client, upload, services, fake_command
):
    fake_command(ECHO)
    study = upload(name="my films.csv")
    reading = {"text_column": "--evil", "label_column": "label", "task": "classification"}
    client.post(f"/api/studies/{study['id']}/inspect", json=reading)
    assert finished(client, study, "inspect")["state"] == "done"
    folder = services.workspace.find(study["id"]).folder
    seen = arguments(services, study, "inspection.json")
    assert seen[:2] == ["inspect", str(folder / "data.csv")]
    assert "--text-column=--evil" in seen  # a value, never an option
    choices = {"minutes": 5, "seeds": 2, "labels": "20,all", "arms": ["tfidf", "scratch"]}
    client.post(f"/api/studies/{study['id']}/plan", json=choices)
    finished(client, study, "plan")
    planned = arguments(services, study, "plan.json")
    assert planned[-1] == "--dry-run"
    for option in ("--minutes=5.0", "--seeds=2", "--labels=20,all", "--arms=tfidf,scratch"):
        assert option in planned
    assert "--name=my films.csv" in planned


def test_an_error_is_told_in_the_words_of_the_page(client, upload, services, fake_command):
    study = upload()
    path = services.workspace.find(study["id"]).path("data")
    fake_command(FAILS % f"{path}, row 1")
    client.post(f"/api/studies/{study['id']}/inspect", json={})
    error = finished(client, study, "inspect")["error"]
    assert error["where"] == "films.csv, row 1"
    assert error["fix"] == "choose the label column below"


def test_a_command_that_dies_is_an_error_and_not_an_endless_wait(client, upload, fake_command):
    fake_command("import os; os._exit(9)")
    study = upload()
    client.post(f"/api/studies/{study['id']}/inspect", json={})
    assert "without an answer" in finished(client, study, "inspect")["error"]["what"]


def test_looking_again_ends_the_look_before(client, upload, fake_command):
    study = upload()
    fake_command("import time; time.sleep(60)")
    client.post(f"/api/studies/{study['id']}/inspect", json={})
    fake_command(ECHO)
    client.post(f"/api/studies/{study['id']}/inspect", json={"text_column": "text"})
    assert finished(client, study, "inspect")["state"] == "done"


@pytest.mark.parametrize(
    "choices",
    [{"minutes": -1}, {"seeds": 0}, {"labels": "20; rm"}, {"arms": "tfidf"}, {"unknown": 1}],
)
def test_choices_that_make_no_sense_are_refused(client, upload, choices):
    response = client.post(f"/api/studies/{upload()['id']}/plan", json=choices)
    assert response.status_code == 422
    assert response.json()["error"]["what"]


@pytest.mark.parametrize("name", ["0123456789ab", "..", "%2e%2e%2f%2e%2e", "ABCDEF012345"])
def test_an_unknown_study_is_no_path(client, name):
    assert client.get(f"/api/studies/{name}").status_code == 404
    assert client.delete(f"/api/studies/{name}").status_code in (404, 405)


def test_a_document_that_the_page_has_is_not_sent_again(client, upload):
    path = f"/api/studies/{upload()['id']}"
    version = client.get(path).headers["etag"]
    assert client.get(path, headers={"if-none-match": version}).status_code == 304


def test_a_deleted_study_is_gone_with_its_data(client, upload, services):
    study, kept = upload(), upload(name="kept.csv")
    assert client.delete(f"/api/studies/{study['id']}").status_code == 204
    assert [one["name"] for one in client.get("/api/studies").json()] == ["kept.csv"]
    left = [path.name for path in services.workspace.studies_folder.iterdir()]
    assert left == [kept["id"]]


def test_a_damaged_record_does_not_hide_the_others(client, upload, services):
    study, _ = upload(), upload(name="kept.csv")
    (services.workspace.find(study["id"]).folder / "record.json").write_text("{")
    assert [one["name"] for one in client.get("/api/studies").json()] == ["kept.csv"]


def test_no_trace_of_a_bug_leaves_the_server(client, upload, services, monkeypatch):
    def broken(*_):
        raise RuntimeError("/home/secret")

    study = upload()
    monkeypatch.setattr(services.classifiers, "answer", broken)
    quiet = TestClient(client.app, base_url=str(client.base_url), raise_server_exceptions=False)
    quiet.cookies, quiet.headers = client.cookies, client.headers
    response = quiet.post(f"/api/studies/{study['id']}/answer", json={"texts": ["x"]})
    assert response.status_code == 500
    assert "secret" not in response.text
    assert "Traceback" not in response.text


def test_a_study_without_a_classifier_says_so(client, upload):
    response = client.post(f"/api/studies/{upload()['id']}/answer", json={"texts": ["x"]})
    assert response.status_code == 422
    assert "no classifier" in json.dumps(response.json())


def test_the_page_names_its_own_fields_and_no_options(services, upload):
    study = services.workspace.find(upload()["id"])
    warning = "3 of 9 test texts are in train (2 equal): too good (--drop-overlap removes them)"
    assert page_words(study, warning) == "3 of 9 test texts are in train (2 equal): too good"
    assert page_words(study, "give --labels 20 or more") == "give the label budgets 20 or more"


@pytest.mark.parametrize(
    ("columns", "code"), [("a,b,c", "text-column"), ("text,b,c", "label-column")]
)
def test_an_error_about_a_column_says_what_to_do_on_the_page(
    services, upload, write, columns, code
):
    with pytest.raises(HeadstartError) as found:
        read_dataset([str(write("d.csv", f"{columns}\nx,y,z\nv,w,u\n"))])
    assert found.value.code == code
    study = services.workspace.find(upload()["id"])
    shown = plain_error(study, found.value.document())
    assert shown["what"] == found.value.what
    assert "--" not in shown["fix"]
    assert shown["fix"] == f"choose the {code.removesuffix('-column')} column below"


def test_an_error_about_an_encoding_asks_for_utf_8(services, upload, write):
    with pytest.raises(HeadstartError) as found:
        read_dataset([str(write("d.csv", "text,label\nd\xe9j\xe0,a\n".encode("cp1252")))])
    study = services.workspace.find(upload()["id"])
    assert "UTF-8" in plain_error(study, found.value.document())["fix"]


def test_an_error_without_a_code_of_the_page_keeps_its_fix(services, upload):
    study = services.workspace.find(upload()["id"])
    error = HeadstartError("the disk is full", fix="make room", code="disk")
    assert plain_error(study, error.document()) == error.document()
