"""`progress.jsonl`: what a study writes for whoever watches it."""

import json

from headstart.studies.progress_file import ProgressFile, read_progress
from headstart.studies.run import StudyListener, StudyRun, join_listeners
from tests.studies.small_study import small_recipe


def test_a_study_writes_its_plan_its_epochs_and_its_trainings(tmp_path):
    recipe = small_recipe(tmp_path, arms=["tfidf", "scratch"], labels=["20"], seeds=1)
    folder = tmp_path / "study"
    StudyRun(recipe, folder, listener=ProgressFile(folder).listener()).run()
    events = read_progress(folder)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "stage"  # reading, before the folder was there
    assert kinds.index("plan") < kinds.index("epoch") < len(kinds) - 1
    assert kinds.count("done") == 2
    assert [event["epoch"] for event in events if event["event"] == "epoch"] == [1, 2]
    plan = events[kinds.index("plan")]
    assert plan["trainings"] == 2
    assert plan["work"] == sum(event["work"] for event in events if event["event"] == "done")
    again = StudyRun(recipe, folder, listener=ProgressFile(folder).listener())
    again.run()
    assert read_progress(folder)[-1]["finished"] == 2


def test_a_line_that_a_kill_cut_short_spoils_no_other(tmp_path):
    (tmp_path / "progress.jsonl").write_text('{"time": 1, "event": "ep')
    file = ProgressFile(tmp_path, clock=lambda: 7.0)
    file.stage("reading")
    recipe = small_recipe(tmp_path, arms=["tfidf"], labels=["20"], seeds=1)
    file.on_plan(StudyRun(recipe, tmp_path / "none"))
    assert [event["event"] for event in read_progress(tmp_path)] == ["stage", "plan"]


def test_a_study_goes_on_where_its_progress_cannot_be_written(tmp_path):
    (tmp_path / "progress.jsonl").mkdir()
    file = ProgressFile(tmp_path)
    file._waiting = None
    file.write("finished")


def test_every_listener_hears_every_event():
    heard = []
    listeners = [
        StudyListener(
            stages=lambda name, who=who: lambda done, total: heard.append((who, name, done)),
            on_epoch=lambda run, epoch, value, who=who: heard.append((who, epoch)),
        )
        for who in "ab"
    ]
    both = join_listeners(*listeners)
    both.stages("reading")(3, None)
    both.on_epoch(None, 1, 0.5)
    with both.pretraining("causal") as listener:
        listener.on_warning("passed on to both")
    assert heard == [("a", "reading", 3), ("b", "reading", 3), ("a", 1), ("b", 1)]


def test_the_lines_are_json_for_any_program(tmp_path):
    file = ProgressFile(tmp_path, clock=lambda: 7.0)
    file._waiting = None
    file.write("finished")
    assert json.loads((tmp_path / "progress.jsonl").read_text()) == {
        "time": 7.0,
        "event": "finished",
    }
