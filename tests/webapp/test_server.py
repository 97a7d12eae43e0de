"""Who may talk to the app, and how much."""

import gzip

import pytest
from fastapi.testclient import TestClient

from headstart.webapp.server import KEY, make_app
from tests.webapp.conftest import ORIGIN, TABLE

NAMED = {"x-file-name": "films.csv"}


def test_the_key_is_a_header_of_this_launch_and_nothing_is_a_cookie(app, tmp_path):
    other = make_app(tmp_path / "app")
    for key, status in ((app.state.keys.key, 200), (other.state.keys.key, 403), ("", 403)):
        with TestClient(app, base_url=ORIGIN) as client:
            for path in ("/", "/api/studies"):
                response = client.get(path, headers={KEY: key})
                assert "set-cookie" not in response.headers
            client.cookies.set(KEY, app.state.keys.key)
            response = client.get("/api/studies", headers={KEY: key})
        assert response.status_code == status
        if status == 403:
            assert response.json()["error"]["code"] == "key"


@pytest.mark.parametrize("path", ["/", "/study/0123456789ab", "/static/main.js", "/report.css"])
def test_what_is_served_without_the_key_does_not_contain_it(app, path):
    with TestClient(app, base_url=ORIGIN) as client:
        response = client.get(path)
    assert response.status_code == 200
    assert app.state.keys.key not in response.text


def test_a_ticket_is_exchanged_for_the_key_once(app):
    ticket = app.state.keys.ticket()
    with TestClient(app, base_url=ORIGIN) as client:
        found = [client.post("/session", headers={KEY: ticket}) for _ in range(2)]
        assert client.get("/api/studies", headers={KEY: ticket}).status_code == 403
    assert [one.status_code for one in found] == [200, 403]
    assert found[0].json() == {"key": app.state.keys.key}


@pytest.mark.parametrize("host", ["evil.example:8765", "127.0.0.1.evil.example"])
def test_a_foreign_name_that_points_to_this_machine_is_rejected(client, host):
    for path in ("/", "/api/studies", "/session"):
        assert client.get(path, headers={"host": host}).status_code == 400


def test_the_page_may_load_nothing_from_elsewhere_and_be_framed_by_nobody(client):
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("chunked", [False, True])
def test_the_header_of_uploads_does_not_lift_the_limit_of_other_routes(client, upload, chunked):
    study = upload()
    body = b'{"texts": ["' + b"x" * 200_000 + b'"]}'
    content = iter([body]) if chunked else body
    headers = {**NAMED, "content-type": "application/json"}
    path = f"/api/studies/{study['id']}/classifier"
    response = client.post(path, content=content, headers=headers)
    assert response.status_code == 413
    error = response.json()["error"]
    assert error["code"] == "too-large"
    assert "file" not in error["fix"]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_file_beyond_the_limit_is_rejected_and_leaves_nothing(client, studies, chunked):
    content = b"x" * 1_000_001
    sent = iter([content[:500_000], content[500_000:]]) if chunked else content
    response = client.post("/api/studies", content=sent, headers=NAMED)
    assert response.status_code == 413
    assert "file" in response.json()["error"]["fix"]
    assert list(studies.folder.iterdir()) == []


def test_a_compressed_file_counts_with_its_decompressed_size(client, upload, studies):
    rows = TABLE + b"more of the same,good\n" * 50_000
    bomb = gzip.compress(rows)
    assert len(bomb) < 10_000 < 1_000_000 < len(rows)
    headers = {"x-file-name": "films.csv.gz"}
    response = client.post("/api/studies", content=bomb, headers=headers)
    assert response.status_code == 413
    assert list(studies.folder.iterdir()) == []
    study = upload()
    for method, path in (("PUT", "corpus"), ("POST", "predictions")):
        url = f"/api/studies/{study['id']}/{path}"
        assert client.request(method, url, content=bomb, headers=headers).status_code == 413


@pytest.mark.parametrize("name", ["../server.py", "..%2fserver.py", "server.py"])
def test_only_the_pages_own_files_are_served(client, name):
    assert client.get(f"/static/{name}").status_code == 404


def test_no_trace_of_a_bug_leaves_the_server(client, upload, monkeypatch):
    def broken(*_):
        raise RuntimeError("/home/secret")

    study = upload()
    monkeypatch.setattr("headstart.webapp.trying.Classifiers.predict", broken)
    quiet = TestClient(
        client.app, base_url=ORIGIN, headers=client.headers, raise_server_exceptions=False
    )
    response = quiet.post(f"/api/studies/{study['id']}/classifier", json={"texts": ["x"]})
    assert response.status_code == 500
    assert "secret" not in response.text
    assert "Traceback" not in response.text
