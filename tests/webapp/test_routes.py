"""The routes that the page uses."""

import json
import os
import subprocess
import sys

import psutil
import pytest

from headstart.errors import HeadstartError
from headstart.webapp.routes import FIXES, page_error
from headstart.webapp.studies import Job, Studies
from tests.webapp.conftest import ECHO, SLEEPS, ended, wait_until

# As `compare` does: it ends with 130 when it is interrupted.
STOPS = """
import pathlib, sys, time
ready = pathlib.Path([a for a in sys.argv if a.startswith("--out=")][0][6:] + ".ready")
try:
    ready.touch(); time.sleep(60)
except KeyboardInterrupt:
    ready.unlink(); sys.exit(130)
"""


def fails(**error):
    document = {"what": "no room", "where": None, "fix": None, "code": "disk", **error}
    return f"print({json.dumps(json.dumps({'error': document}))})"


def post(client, study, path, **settings):
    return client.post(f"/api/studies/{study['id']}/{path}", json=settings)


def state(client, study):
    return client.get(f"/api/studies/{study['id']}").json()["state"]


@pytest.fixture
def planned(client, upload, fake_command):
    def make(**names):
        fake_command(ECHO)
        study = upload(**names)
        for kind in ("inspect", "plan"):
            assert post(client, study, kind).status_code == 202
            ended(client, study, kind)
        return study

    return make


# Settings


def test_the_settings_of_the_page_are_options_of_the_commands(client, upload, fake_command):
    fake_command(ECHO)
    study = upload(b"--evil,label\nfine,good\nbad,poor\n", "my films.csv")
    post(client, study, "inspect", text_column="--evil", label_column="label")
    seen = ended(client, study, "inspect")["result"]["arguments"]
    assert seen[:2] == ["inspect", "my films.csv"]
    assert "--text-column=--evil" in seen  # a value, never an option
    choices = {"minutes": 5, "seeds": 2, "labels": "20,all", "arms": ["tfidf", "scratch"]}
    post(client, study, "plan", **choices)
    planned = ended(client, study, "plan")["result"]["arguments"]
    assert planned[-1] == "--dry-run"
    for option in ("--minutes=5", "--seeds=2", "--labels=20,all", "--arms=tfidf,scratch"):
        assert option in planned
    assert "--text-column=--evil" in planned
    assert "--name=my films.csv" in planned


@pytest.mark.parametrize("typed", ["50 100 all", " 50;100,,\tall "])
def test_budgets_are_understood_as_they_are_typed(client, upload, fake_command, typed):
    fake_command(ECHO)
    study = upload()
    assert post(client, study, "plan", labels=typed).json()["settings"]["labels"] == [
        *("50", "100", "all")
    ]
    assert "--labels=50,100,all" in ended(client, study, "plan")["result"]["arguments"]


@pytest.mark.parametrize("typed", ["50100all", "1,000", "-5"])
def test_budgets_that_make_no_sense_are_one_message(client, upload, typed):
    study = upload()
    response = post(client, study, "plan", labels=typed)
    assert response.status_code == 422
    error = response.json()
    assert (error["code"], error["where"]) == ("budgets", "Label budgets")
    assert "labels" not in client.get(f"/api/studies/{study['id']}").json()["settings"]


@pytest.mark.parametrize(
    "settings",
    [
        {"minutes": -1}, {"seeds": 0}, {"labels": "20; rm"}, {"arms": "tfidf"}, {"unknown": 1},
        {"arms": ["nonsense"]}, {"executor": "slurm"}, {"seeds": "many"}, {"objectives": ["x"]},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_change_nothing(client, upload, settings):
    study = upload()
    response = post(client, study, "plan", **settings)
    assert response.status_code == 422
    assert response.json()["error"]
    assert client.get(f"/api/studies/{study['id']}").json() == study


@pytest.mark.parametrize("name", ["te\x00xt", "te\ud800xt"])
def test_a_column_that_no_option_can_name_is_a_plain_message(client, upload, fake_command, name):
    rows = [{name: "fine film", "label": "good"}, {name: "bad film", "label": "poor"}]
    study = upload("\n".join(json.dumps(row) for row in rows).encode(), "films.jsonl")
    body, headers = json.dumps({"text_column": name}), {"content-type": "application/json"}
    path = f"/api/studies/{study['id']}/inspect"
    response = client.post(path, content=body, headers=headers)
    assert response.status_code == 422
    assert "text_column" in response.json()["error"]
    fake_command(ECHO)
    assert post(client, study, "inspect").status_code == 202  # the study is still usable
    assert ended(client, study, "inspect")["state"] == "done"


def test_another_task_starts_with_its_usual_arms(client, upload, fake_command):
    fake_command(ECHO)
    study = upload()
    assert post(client, study, "plan", seeds=2, arms=["tfidf", "nb"]).status_code == 202
    found = post(client, study, "inspect", task="multi-label")
    assert found.status_code == 202
    assert found.json()["settings"] == {"task": "multi-label", "seeds": 2}


# Errors


def test_an_error_of_a_command_belongs_to_its_step_and_speaks_of_the_page(
    client, upload, fake_command
):
    study = upload()
    fake_command(fails(code="text-column", fix="say which one it is: --text-column NAME"))
    post(client, study, "inspect")
    assert ended(client, study, "inspect")["error"]["fix"] == FIXES["text-column"]
    fake_command(fails(code="does-not-fit", fix="give --minutes 12 or more"))
    post(client, study, "plan")
    assert ended(client, study, "plan")["error"]["fix"] == FIXES["does-not-fit"]
    assert client.get(f"/api/studies/{study['id']}").json()["jobs"]["study"] is None


def test_a_fix_of_the_command_line_is_not_shown_where_the_page_has_none():
    error = HeadstartError("too long", fix="give a larger --length", code="anything")
    assert page_error(error.document())["fix"] is None
    error = HeadstartError("there is no column 'x' (--text-column); the columns are 'a'", code="x")
    assert page_error(error.document())["what"] == "there is no column 'x'; the columns are 'a'"
    error = HeadstartError("the disk is full", fix="make room", code="disk")
    assert page_error(error.document()) == error.document()


@pytest.mark.parametrize("name", ["0123456789ab", "..", "%2e%2e%2f%2e%2e", "ABCDEF012345"])
def test_an_unknown_study_is_not_a_path(client, name):
    assert client.get(f"/api/studies/{name}").status_code == 404
    assert client.delete(f"/api/studies/{name}").status_code in (404, 405)


def test_a_deleted_study_is_gone_with_its_data(client, upload, studies):
    study, kept = upload(), upload(name="kept.csv")
    assert client.delete(f"/api/studies/{study['id']}").status_code == 204
    assert [one["name"] for one in client.get("/api/studies").json()] == ["kept.csv"]
    assert [path.name for path in studies.folder.iterdir()] == [kept["id"]]


def test_a_damaged_record_does_not_hide_the_others(client, upload, studies):
    study, _ = upload(), upload(name="kept.csv")
    (studies.find(study["id"]).folder / "record.json").write_text("{")
    assert [one["name"] for one in client.get("/api/studies").json()] == ["kept.csv"]


# The study as a process


def test_a_second_study_waits_for_the_first(client, planned, fake_command):
    first, second = planned(), planned(name="other.csv")
    fake_command(SLEEPS)
    post(client, first, "start")
    response = post(client, second, "start")
    assert response.status_code == 409
    assert "films.csv" in response.json()["error"]


def test_stopping_lets_it_save_and_starting_again_resumes(client, planned, studies, fake_command):
    study = planned()
    fake_command(STOPS)
    ready = studies.find(study["id"]).study_folder.with_name("study.ready")
    for _ in range(2):
        post(client, study, "start")
        wait_until(ready.exists)
        assert post(client, study, "stop").json()["state"] in ("stopping", "stopped")
        wait_until(lambda: state(client, study) == "stopped")
        assert not ready.exists()  # it had time for that


def test_another_server_finds_the_study_again(client, planned, studies, fake_command):
    study = planned()
    fake_command(SLEEPS)
    post(client, study, "start")
    other = Studies(studies.folder.parent).find(study["id"])
    assert other.state() == "running"
    pid = json.loads(other.job("study").record.read_text())["pid"]
    assert os.getsid(pid) == pid  # it goes on when the server and its terminal end
    other.job("study").stop(at_once=True)
    wait_until(lambda: state(client, study) == "stopped")


def test_a_pid_that_another_process_has_now_is_not_touched(tmp_path):
    job = Job(tmp_path, "study")
    with subprocess.Popen([sys.executable, "-c", SLEEPS]) as bystander:
        created = psutil.Process(bystander.pid).create_time() - 3600
        seen = {"pid": bystander.pid, "created": created, "stopping": True}
        job.record.write_text(json.dumps(seen))
        job.stop(at_once=True)
        assert not job.is_running
        assert bystander.poll() is None
        bystander.kill()


def test_what_was_started_keeps_its_data_and_plan(client, planned, fake_command):
    study = planned()
    fake_command(SLEEPS)
    post(client, study, "start")
    for path in ("inspect", "plan"):
        assert post(client, study, path).status_code == 409
    headers = {"x-file-name": "a.txt"}
    path = f"/api/studies/{study['id']}"
    assert client.put(f"{path}/corpus", content=b"a\n", headers=headers).status_code == 409
    assert client.delete(path).status_code == 409
