"""`progress.jsonl`: what a study writes for other processes that watch it."""

from headstart.study.progress import ProgressFile, read_progress
from headstart.study.study import plan_study
from tests.study.small_study import run_config, small_config


def test_a_study_writes_its_plan_its_epochs_and_its_jobs(tmp_path):
    config = small_config(tmp_path, arms=["tfidf", "scratch"], labels=["20"], seeds=1)
    folder = tmp_path / "study"
    run_config(config, folder, ProgressFile(folder))
    events = read_progress(folder)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "plan"
    assert kinds.index("epoch") < len(kinds) - 1
    assert [event["epoch"] for event in events if event["event"] == "epoch"] == [1, 2]
    done = [event for event in events if event["event"] == "done"]
    assert [event["arm"] for event in done] == ["tfidf", "scratch"]
    assert all(event["seconds"] > 0 and 0 <= event["value"] <= 1 for event in done)
    plan = events[kinds.index("plan")]
    assert plan["trainings"] == len(plan["all_jobs"]) == 2


def test_a_line_that_a_kill_cut_short_spoils_no_other(tmp_path):
    (tmp_path / "progress.jsonl").write_text('{"time": 1, "event": "ep')
    file = ProgressFile(tmp_path)
    config = small_config(tmp_path, arms=["tfidf"], labels=["20"], seeds=1)
    file.on_plan(plan_study(config, tmp_path / "none"))
    assert [event["event"] for event in read_progress(tmp_path)] == ["plan"]


def test_a_study_goes_on_where_its_progress_cannot_be_written(tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "progress.jsonl").mkdir()
    config = small_config(tmp_path, arms=["tfidf"], labels=["20"], seeds=1)
    study = run_config(config, tmp_path / "study", ProgressFile(tmp_path / "study"))
    assert study.results
