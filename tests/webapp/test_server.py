"""Access control and size limits of the app."""

import gzip
import urllib.request

import pytest
from fastapi.testclient import TestClient

from headstart.webapp.server import make_app
from tests.webapp.conftest import ORIGIN, TABLE, client_of, serving

NAMED = {"x-file-name": "films.csv"}


def test_the_key_is_a_header_of_this_launch_and_nothing_is_a_cookie(app, tmp_path):
    other = make_app(tmp_path / "other").state.token
    for key, status in ((app.state.token, 200), (other, 401), ("", 401)):
        with TestClient(app, base_url=ORIGIN) as client:
            client.cookies.set("authorization", f"Bearer {app.state.token}")
            response = client.get("/api/studies", headers={"authorization": f"Bearer {key}"})
        assert response.status_code == status
        assert "set-cookie" not in response.headers
    assert response.json()["code"] == "token"
    assert "address" in response.json()["fix"]


@pytest.mark.parametrize("path", ["/", "/study/0123456789ab", "/static/main.js", "/report.css"])
def test_what_is_served_without_the_key_does_not_contain_it(app, path):
    with TestClient(app, base_url=ORIGIN) as client:
        response = client.get(path)
    assert response.status_code == 200
    assert app.state.token not in response.text


def test_a_ticket_is_exchanged_for_the_key_once(app):
    app.state.tickets.add("once")
    with TestClient(app, base_url=ORIGIN) as client:
        found = [client.post("/session", headers={"x-headstart-ticket": "once"}) for _ in range(2)]
    assert [one.status_code for one in found] == [200, 401]
    assert found[0].json() == {"token": app.state.token}


@pytest.mark.parametrize("host", ["evil.example:8765", "127.0.0.1.evil.example"])
def test_a_foreign_name_that_points_to_this_machine_is_rejected(client, host):
    for path in ("/", "/api/studies", "/session"):
        assert client.get(path, headers={"host": host}).status_code == 400


def test_the_page_may_load_nothing_from_elsewhere_and_be_framed_by_nobody(tmp_path):
    with serving(tmp_path / "app") as served, urllib.request.urlopen(served.origin) as page:
        policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("chunked", [False, True])
def test_the_header_of_uploads_does_not_lift_the_limit_of_other_routes(client, upload, chunked):
    body = b'{"texts": ["' + b"x" * 200_000 + b'"]}'
    headers = {**NAMED, "content-type": "application/json"}
    path = f"/api/studies/{upload()['id']}/classifier"
    response = client.post(path, content=iter([body]) if chunked else body, headers=headers)
    assert (response.status_code, response.json()["code"]) == (413, "too-large")


def test_a_file_beyond_the_limit_is_rejected_and_leaves_nothing(client, studies):
    sent = iter([b"x" * 500_000, b"x" * 500_001])
    response = client.post("/api/studies", content=sent, headers=NAMED)
    assert response.status_code == 413
    assert "file" in response.json()["fix"]
    assert list(studies.folder.iterdir()) == []


def test_a_compressed_file_counts_with_its_decompressed_size(client, upload, studies):
    bomb = gzip.compress(TABLE + b"more of the same,good\n" * 50_000)
    headers = {"x-file-name": "films.csv.gz"}
    assert client.post("/api/studies", content=bomb, headers=headers).status_code == 413
    assert list(studies.folder.iterdir()) == []
    study = upload()
    for method, path in (("PUT", "corpus"), ("POST", "predictions")):
        url = f"/api/studies/{study['id']}/{path}"
        assert client.request(method, url, content=bomb, headers=headers).status_code == 413


@pytest.mark.parametrize("name", ["../server.py", "..%2fserver.py", "server.py"])
def test_only_the_pages_own_files_are_served(client, name):
    assert client.get(f"/static/{name}").status_code == 404


def test_no_trace_of_a_bug_leaves_the_server(app, upload, monkeypatch):
    def broken(*_):
        raise RuntimeError("/home/secret")

    study = upload()
    monkeypatch.setattr("headstart.webapp.routes.predict_texts", broken)
    quiet = client_of(app, raise_server_exceptions=False)
    response = quiet.post(f"/api/studies/{study['id']}/classifier", json={"texts": ["x"]})
    assert response.status_code == 500
    assert "secret" not in response.text
    assert "Traceback" not in response.text
