"""`headstart report`."""

from pathlib import Path

from tests.studies.fake_study import fake_study


def test_json_names_the_files_written(headstart_json, tmp_path):
    written = headstart_json("report", fake_study(tmp_path))
    assert written["report"] == str(tmp_path / "report.html")
    for path in (written["report"], *written["figures"], *written["tables"]):
        assert Path(path).is_file()
    assert written["verdict"]


def test_the_page_prints_the_verdict_and_the_path(headstart, tmp_path):
    result = headstart("report", fake_study(tmp_path))
    assert "pretraining adds" in result.stdout.splitlines()[0]
    assert result.stdout.rstrip().endswith("report.html")


def test_a_folder_that_is_no_study_is_one_message_and_code_2(headstart, tmp_path):
    result = headstart("report", tmp_path)
    assert result.returncode == 2
    assert "this folder has no study.json" in result.stderr
    assert "Traceback" not in result.stderr
