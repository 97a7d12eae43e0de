"""Uploads: within limits, under names of our own."""

from pathlib import Path
from urllib.parse import quote

import pytest

from headstart.errors import HeadstartError
from headstart.webapp.uploads import file_name, first_rows
from headstart.webapp.workspace import clean_name

HOSTILE = [
    "../../etc/passwd.csv",
    "..\\..\\x.csv",
    "/abs.csv",
    "a\x00b\n.csv",
    "\u202evsc.csv",
    "-rf.csv",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_never_a_path(name):
    assert file_name("data", name) == "data.csv"
    assert not set(clean_name(name)) & set("/\\\0\n")


@pytest.mark.parametrize("name", HOSTILE)
def test_an_upload_with_a_hostile_name_lies_in_the_folder_of_its_study(client, services, name):
    before = set(Path(services.workspace.folder.parent).rglob("*"))
    headers = {"x-file-name": quote(name)}
    response = client.post("/api/studies", content=b"text,label\na,b\n", headers=headers)
    study = services.workspace.find(response.json()["id"])
    made = set(Path(services.workspace.folder.parent).rglob("*")) - before
    assert {path for path in made if path.suffix == ".csv"} == {study.folder / "data.csv"}
    assert all(path == study.folder or study.folder in path.parents for path in made)


def test_a_file_beyond_the_limit_is_refused_and_leaves_nothing(client, services):
    response = client.post(
        "/api/studies", content=b"x" * 1_000_001, headers={"x-file-name": "large.csv"}
    )
    assert response.status_code == 413
    assert list(services.workspace.studies_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", b"", "empty"),
        ("book.xlsx", b"PK", "cannot be read"),
        ("notes.txt", b"only text\n", "a table"),
        ("noname", b"text,label\n", "kind is not known"),
        ("broken.parquet", b"PAR1 no", "arquet"),
        ("broken.json", b"{", "JSON"),
        ("latin.csv", "text,label\nfaçade,good\n".encode("latin-1"), "UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_words(client, services, name, content, words):
    response = client.post("/api/studies", content=content, headers={"x-file-name": name})
    assert response.status_code == 422
    assert words in response.text
    assert str(services.workspace.folder) not in response.text
    assert list(services.workspace.studies_folder.iterdir()) == []


def test_the_columns_are_found_by_their_names(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,review,stars\n1,fine,5\n2,bad,1\n")
    found = first_rows(path, "films.csv")
    assert found["columns"] == ["id", "review", "stars"]
    assert (found["text_column"], found["label_column"]) == ("review", "stars")
    assert found["rows"] == [["1", "fine", "5"], ["2", "bad", "1"]]


def test_columns_that_are_not_clear_are_left_to_the_person(upload):
    study = upload(b"a,b\n1,2\n")
    assert (study["reading"]["text_column"], study["reading"]["label_column"]) == ("", "")
    assert study["preview"]["columns"] == ["a", "b"]


def test_a_message_names_the_file_as_its_owner_does(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("")
    with pytest.raises(HeadstartError) as raised:
        first_rows(path, "films.csv")
    assert raised.value.where == "films.csv"


def test_a_second_upload_replaces_the_text_and_what_was_found(client, upload, services):
    study = upload()
    services.workspace.find(study["id"]).save("inspection.json", {"warnings": [], "found": []})
    headers = {"x-file-name": "more text.txt"}
    path = f"/api/studies/{study['id']}/corpus"
    found = client.put(path, content=b"a\nb\n", headers=headers).json()
    assert found["files"]["corpus"] == "more text.txt"
    assert found["inspection"] is None
