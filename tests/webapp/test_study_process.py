"""A study's process: started once, found again, stopped, and never mistaken for another."""

import os
import subprocess
import sys

import psutil
import pytest

from headstart.webapp.study_process import StudyProcesses
from headstart.webapp.workspace import PLAN, Workspace
from tests.webapp.conftest import wait_until

SLEEPS = "import time; time.sleep(60)"
# As `compare` does: it says where it is, and ends with 130 when it is interrupted.
STOPS = """
import pathlib, sys, time
ready = pathlib.Path([a for a in sys.argv if a.startswith("--out=")][0][6:] + ".ready")
try:
    ready.touch(); time.sleep(60)
except KeyboardInterrupt:
    ready.unlink(); sys.exit(130)
"""


@pytest.fixture
def planned(upload, services):
    def make(**names):
        study = upload(**names)
        found = services.workspace.find(study["id"])
        found.save("inspection.json", {"warnings": [], "found": []})
        found.save(PLAN, {"warnings": []})
        return found

    return make


@pytest.fixture
def ended(services):
    yield
    for study in services.workspace.all():
        for _ in range(2):
            services.processes.stop(study.id)


def state(client, study):
    return client.get(f"/api/studies/{study.id}").json()["state"]


def test_a_study_that_is_started_twice_runs_once(client, planned, services, fake_command, ended):
    fake_command(SLEEPS)
    study = planned()
    for _ in range(2):
        assert client.post(f"/api/studies/{study.id}/start").json()["state"] == "running"
    first = services.workspace.find(study.id).process["pid"]
    client.post(f"/api/studies/{study.id}/start")
    assert services.workspace.find(study.id).process["pid"] == first


def test_a_second_study_waits_for_the_first(client, planned, fake_command, ended):
    fake_command(SLEEPS)
    first, second = planned(), planned(name="other.csv")
    client.post(f"/api/studies/{first.id}/start")
    response = client.post(f"/api/studies/{second.id}/start")
    assert response.status_code == 409
    assert "films.csv" in response.json()["error"]["what"]


def test_stopping_lets_it_save_and_starting_again_resumes(client, planned, fake_command, ended):
    fake_command(STOPS)
    study = planned()
    ready = study.study_folder.with_name("study.ready")
    for _ in range(2):
        client.post(f"/api/studies/{study.id}/start")
        wait_until(ready.exists)
        said = client.post(f"/api/studies/{study.id}/stop").json()["state"]
        assert said in ("stopping", "stopped")  # it may be as quick as the answer
        wait_until(lambda: state(client, study) == "stopped")
        assert not ready.exists()  # it had time for that


def test_asked_again_it_ends_at_once(client, planned, services, fake_command, ended):
    fake_command("import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(60)")
    study = planned()
    client.post(f"/api/studies/{study.id}/start")
    for _ in range(2):
        client.post(f"/api/studies/{study.id}/stop")
    wait_until(lambda: state(client, study) == "stopped")


def test_another_server_finds_the_study_again(client, planned, services, fake_command, ended):
    fake_command(SLEEPS)
    study = planned()
    client.post(f"/api/studies/{study.id}/start")
    other = StudyProcesses(Workspace(services.workspace.folder))
    assert other.state(other.workspace.find(study.id)) == ("running", None)
    other.stop(study.id)
    wait_until(lambda: not services.processes.is_running(services.workspace.find(study.id)))


def test_it_does_not_end_with_the_server(planned, services, fake_command, ended):
    fake_command(SLEEPS)
    study = planned()
    services.processes.start(study.id, ["compare"])
    pid = services.workspace.find(study.id).process["pid"]
    assert os.getsid(pid) == pid != os.getsid(0)


def test_a_pid_that_another_process_has_now_is_not_touched(planned, services):
    study = planned()
    with subprocess.Popen([sys.executable, "-c", SLEEPS]) as bystander:
        started = psutil.Process(bystander.pid).create_time() - 3600
        seen = {"pid": bystander.pid, "started": started, "stopping": True}
        services.workspace.change(study.id, lambda one: setattr(one, "process", seen))
        services.processes.stop(study.id)
        assert not services.processes.is_running(services.workspace.find(study.id))
        assert bystander.poll() is None
        bystander.kill()


def test_an_error_of_the_study_is_shown_and_it_can_be_tried_again(client, planned, fake_command):
    fake_command('print(\'{"error": {"what": "no room", "where": null, "fix": "make some"}}\')')
    study = planned()
    client.post(f"/api/studies/{study.id}/start")
    wait_until(lambda: state(client, study) == "failed")
    assert client.get(f"/api/studies/{study.id}").json()["error"]["what"] == "no room"
    assert client.post(f"/api/studies/{study.id}/start").status_code == 202
    wait_until(lambda: state(client, study) == "failed")


def test_what_was_started_keeps_its_data_and_plan(client, planned, fake_command, ended):
    fake_command(SLEEPS)
    study = planned()
    client.post(f"/api/studies/{study.id}/start")
    for path, body in (("inspect", {}), ("plan", {})):
        assert client.post(f"/api/studies/{study.id}/{path}", json=body).status_code == 409
    assert client.delete(f"/api/studies/{study.id}").status_code == 409
