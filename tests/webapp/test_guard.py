"""Who may talk to the app."""

import pytest
from fastapi.testclient import TestClient

from tests.webapp.conftest import ORIGIN, PORT, TABLE

NAMED = {"x-file-name": "films.csv"}


def create(client, **headers):
    return client.post("/api/studies", content=TABLE, headers={**NAMED, **headers})


def test_the_printed_address_opens_the_page_and_leaves_no_key_in_it(app, services):
    with TestClient(app, base_url=ORIGIN) as client:
        response = client.get("/", params={"key": services.workspace.key()})
    assert response.status_code == 200
    assert response.url.query == b""
    cookie = response.history[0].headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()


def test_the_key_on_the_browsers_command_line_opens_the_page_one_time(app, services):
    services.once.add("once")
    found = []
    for _ in range(2):
        with TestClient(app, base_url=ORIGIN) as client:
            found.append(client.get("/", params={"key": "once"}).status_code)
    assert found == [200, 403]


def test_cookies_of_other_servers_on_this_machine_do_not_hide_ours(client):
    """Cookies do not tell ports apart, and not everybody's are well formed."""
    (ours,) = [f"{name}={value}" for name, value in client.cookies.items()]
    client.cookies.clear()
    headers = {"cookie": f'theirs={{"a": 1}}; {ours}; last'}
    assert client.get("/api/studies", headers=headers).status_code == 200


@pytest.mark.parametrize("key", ["", "wrong"])
@pytest.mark.parametrize("path", ["/", "/api/studies", "/static/main.js", "/study/0123456789ab"])
def test_nothing_is_shown_without_the_key(app, path, key):
    with TestClient(app, base_url=ORIGIN) as client:
        response = client.get(path, params={"key": key})
    assert response.status_code == 403
    assert "headstart app" in response.text


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:1"])
def test_a_foreign_name_that_points_to_this_machine_is_refused(client, host):
    assert client.get("/api/studies", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_a_page_of_another_origin_can_start_nothing(client, services, origin):
    assert create(client, origin=origin).status_code == 403
    assert services.workspace.all() == []


def test_a_page_without_the_token_can_start_nothing(client, services):
    assert create(client, **{"x-headstart-token": "guessed"}).status_code == 403
    assert services.workspace.all() == []


def test_a_request_that_another_site_made_is_refused(client):
    headers = {"sec-fetch-site": "cross-site"}
    assert client.get("/api/studies", headers=headers).status_code == 403


def test_the_page_may_load_nothing_from_elsewhere_and_be_framed_by_nobody(client):
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


def test_a_request_that_is_no_upload_is_small(client, upload):
    study = upload()
    response = client.post(f"/api/studies/{study['id']}/answer", content=b" " * 1_000_001)
    assert response.status_code == 413


@pytest.mark.parametrize("name", ["../server.py", "..%2fserver.py", "server.py", "index.html"])
def test_only_the_pages_own_files_are_served(client, name):
    assert client.get(f"/static/{name}").status_code == 404
