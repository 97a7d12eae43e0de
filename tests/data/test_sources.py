"""A path or a name says what it is, or what is wrong with it."""

import pytest

from headstart.data.sources import find_source, find_sources
from headstart.errors import HeadstartError


def test_a_missing_file_lists_the_built_in_names(tmp_path):
    with pytest.raises(HeadstartError, match="no file or folder") as error:
        find_source(tmp_path / "nothing.csv")
    assert "rotten-tomatoes, imdb" in error.value.fix


def test_a_spreadsheet_is_to_be_saved_as_csv(write):
    with pytest.raises(HeadstartError, match=r"'\.xlsx' files cannot be read") as error:
        find_source(write("a.xlsx", b"PK"))
    assert "save it as CSV" in error.value.fix


def test_a_folder_in_place_of_a_file_lists_its_files(write):
    path = write("folder/train.csv", "text,label\n")
    with pytest.raises(HeadstartError, match="is a folder") as error:
        find_source(path.parent)
    assert "train.csv" in error.value.fix


def test_a_gzipped_file_is_of_its_own_kind(write):
    source = find_source(write("a.jsonl.gz", "{}"))
    assert (source.kind, source.gzipped) == ("jsonl", True)


def test_a_folder_gives_its_files_in_order_and_says_what_it_unread(write):
    for name in ("f/b.txt", "f/a.txt", "f/deep/c", "f/.hidden", "f/picture.png"):
        folder = write(name, "x").parents[0]
    folder = folder if folder.name == "f" else folder.parent
    sources, unread = find_sources(folder)
    assert [source.file.name for source in sources] == ["a.txt", "b.txt", "c"]
    assert [name.rsplit("/")[-1] for name in unread] == ["picture.png"]


def test_a_folder_without_readable_files_is_an_error(tmp_path):
    with pytest.raises(HeadstartError, match="no readable file"):
        find_sources(tmp_path)
