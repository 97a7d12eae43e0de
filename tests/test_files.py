"""Files are complete or absent."""

import errno

import pytest

from headstart.errors import HeadstartError
from headstart.files import check_file, check_folder, escape_formula, replacing, write_text


def test_a_full_disk_keeps_the_old_file_and_names_the_new_one(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(HeadstartError, match="the disk is full") as told, replacing(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert told.value.where == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("cell", ["=1", "@x", "+a", "-a", "\t=1"])
def test_a_cell_that_a_spreadsheet_would_run_is_made_text(cell):
    assert escape_formula(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-0.5", "+3", "-1e-05", "text", "", "a=b"])
def test_other_cells_stay_as_they_are(cell):
    assert escape_formula(cell) == cell


def test_a_place_that_cannot_be_written_is_rejected_before_any_work(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("")
    for wrong in (file, file / "run", tmp_path / ("x" * 300)):
        with pytest.raises(HeadstartError):
            check_folder(wrong)
    for wrong in (tmp_path, file / "a.csv", tmp_path / ("x" * 300)):
        with pytest.raises(HeadstartError):
            check_file(wrong)
    check_folder(tmp_path / "new" / "run")
    check_file(tmp_path / "new" / "a.csv")
    assert list(tmp_path.iterdir()) == [file]
