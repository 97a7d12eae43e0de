"""Uploads get safe names, are parsed in another process, and are removed if they are bad."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from headstart.webapp import preview
from headstart.webapp.preview import look_at
from headstart.webapp.studies import file_name, shown_name
from tests.webapp.conftest import SLEEPS, ended

HOSTILE = [
    "../../etc/passwd.csv",
    "..\\..\\x.csv",
    "/abs.csv",
    "a\x00b\n.csv",
    "\u202evsc.csv",
    "-rf.csv",
    "hub:owner/name.csv",
    "hub:name.csv",
    "é" * 300 + ".csv",
    "é" * 5 + "-" * 10 + "é" * 95 + ".csv",
    "<img src=x onerror=alert(1)>.csv",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_never_a_path_an_option_or_a_name_on_the_hub(name):
    made = file_name(name)
    assert made.endswith(".csv")
    assert not made.startswith(("-", ".", "hub:"))
    assert not set(made) & set("/\\\0\n<>:")
    assert len(made.encode()) < 250
    assert not set(shown_name(name)) & set("/\\\0\n")


@pytest.mark.parametrize("name", HOSTILE)
def test_an_upload_with_a_hostile_name_lies_in_the_folder_of_its_study(client, studies, name):
    before = set(Path(studies.folder.parent).rglob("*"))
    headers = {"x-file-name": quote(name)}
    response = client.post("/api/studies", content=b"text,label\na,b\n", headers=headers)
    study = studies.find(response.json()["id"])
    made = set(Path(studies.folder.parent).rglob("*")) - before
    assert {path for path in made if path.suffix == ".csv"} == {
        study.files_folder / file_name(name)
    }
    assert all(path == study.folder or study.folder in path.parents for path in made)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", b"", "empty"),
        ("book.xlsx", b"PK", "cannot be read"),
        ("notes.txt", b"only text\n", "a table"),
        ("noname", b"text,label\n", "kind is not known"),
        ("broken.parquet", b"PAR1 no", "arquet"),
        ("broken.json", b"{", "JSON"),
        ("broken.csv.gz", b"\x1f\x8bno", "gzip"),
        ("deep.json", b"[" * 100_000, "JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_message_and_leaves_nothing(
    client, studies, name, content, words
):
    response = client.post("/api/studies", content=content, headers={"x-file-name": name})
    assert response.status_code == 422
    assert words in response.text
    assert str(studies.folder) not in response.text
    assert "--" not in response.json().get("fix", "")
    assert list(studies.folder.iterdir()) == []


def test_no_upload_is_parsed_in_the_process_of_the_server(client, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("parsed here")

    monkeypatch.setattr("headstart.data.readers.json.loads", json.loads)
    for name in ("FORMATS", "guess_task"):
        monkeypatch.setattr(preview, name, refuse)
    rows = json.dumps([{"text": "fine", "label": "good"}, {"text": "bad", "label": "poor"}])
    response = client.post("/api/studies", content=rows, headers={"x-file-name": "films.json"})
    assert response.status_code == 201
    assert response.json()["preview"]["columns"] == ["text", "label"]


def test_the_columns_are_found_by_their_names(tmp_path):
    path = tmp_path / "films.csv"
    path.write_text("id,review,stars\n1,fine,5\n2,bad,1\n")
    found = look_at(path)
    assert found["columns"] == ["id", "review", "stars"]
    assert (found["text_column"], found["label_column"]) == ("review", "stars")
    assert found["rows"] == [["1", "fine", "5"], ["2", "bad", "1"]]
    assert found["tasks"] == ["classification", "pairs", "multi-label"]


QUESTION = {"id": "1", "question": "Who?", "answers": [{"text": "Anna", "answer_start": 0}]}
SQUAD = {"data": [{"paragraphs": [{"context": "Anna sings.", "qas": [QUESTION]}]}]}


@pytest.mark.parametrize(
    ("name", "content", "task"),
    [
        ("ner.conll", "Anna B-PER\nsings O\n\nBerlin B-LOC\n", "tagging"),
        ("squad.json", json.dumps(SQUAD), "spans"),
        ("many.csv", "text,label\nfine film,good|long\nbad,poor\n", "multi-label"),
    ],
)
def test_the_file_implies_its_task(client, upload, fake_command, name, content, task):
    fake_command(SLEEPS)
    study = upload(content.encode(), name)
    assert study["settings"]["task"] == study["preview"]["tasks"][0] == task
    assert [arm["name"] for arm in study["arms"] if arm["usual"]]


def test_a_message_names_the_file_as_its_owner_does(client, upload):
    study = upload(b"text,label\nfine,good\nbad,\n", "my films.csv")
    client.post(f"/api/studies/{study['id']}/inspect", json={})
    assert ended(client, study, "inspect")["error"]["where"].startswith("my films.csv, row 2")


def test_another_corpus_replaces_the_first_one_and_what_was_found(client, upload, studies):
    study = upload()
    for name in ("films.csv", "more text.txt"):
        path = f"/api/studies/{study['id']}/corpus"
        found = client.put(path, content=b"a\nb\n", headers={"x-file-name": name}).json()
        assert found["jobs"]["inspect"] is None
    assert found["files"] == {"data": "films.csv", "corpus": "more text.txt"}
    files = studies.find(study["id"]).files_folder
    assert {path.name for path in files.iterdir()} == {"films.csv", "more text.txt"}
    assert (files / "films.csv").read_bytes() != b"a\nb\n"
