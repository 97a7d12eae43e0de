"""Executors: a training runs anywhere, is lost, or runs twice, and the results are the same."""

import time
from dataclasses import replace
from threading import Thread

import pytest

from headstart.config import FinetuneConfig
from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.lock import locked
from headstart.studies.context import StudyContext, ignore
from headstart.studies.executors import Executor
from headstart.studies.executors.attempt import attempt, attempt_lock
from headstart.studies.executors.parcel import Parcel, pack, sees_folder, unpacked, write_marker
from headstart.studies.executors.protocol import (
    Resources,
    Session,
    TrainingEvent,
    run_trainings,
)
from headstart.studies.outcomes import ARRAYS, RunKey, read_training, training_file
from headstart.studies.run import StudyRun
from tests.labelled import splits
from tests.studies.small_arms import Majority, registered
from tests.studies.small_study import small_recipe

RUNS = [RunKey("majority", "", 20, seed) for seed in range(3)]


def results(folder, runs):
    """What trainings came to, but for the time that they took."""
    found = {}
    for run in runs:
        one = read_training(folder, run)
        found[run] = (
            [(m.epoch, m.split, m.metric, m.value) for m in one.measures],
            [getattr(one, name).tobytes() for name in ARRAYS],
        )
    return found


@pytest.fixture
def study(tmp_path):
    return StudyContext(tmp_path, small_recipe(tmp_path), splits(), epochs={})


# The protocol, with an engine that does as it is told


def run_with(executor, runs, study, *, jobs=2, **heard):
    heard = {"on_start": ignore, "on_epoch": ignore, "on_done": ignore} | heard
    run_trainings(executor, runs, study, Resources(), jobs=jobs, **heard)


class Scripted(Executor):
    """Each submission of a training ends as the next of its script says."""

    name = "scripted"

    def __init__(self, *script):
        self.script, self.submitted, self.most, self.closed = list(script), [], 0, False

    def at_once(self, recipe, resources):
        return 2

    def open(self, study, resources):
        owner = self

        class Scene(Session):
            def __init__(self):
                self.running = []

            def submit(self, run):
                owner.submitted.append(run)
                self.running.append(run)
                owner.most = max(owner.most, len(self.running))

            def events(self):
                run = self.running.pop(0)
                kind = owner.script.pop(0) if owner.script else "done"
                error = HeadstartError("its machine is gone") if kind != "done" else None
                yield TrainingEvent("start", run, node="far")
                yield TrainingEvent(kind, run, error=error)
                yield TrainingEvent("epoch", run, epoch=9)

            def close(self):
                owner.closed = True

        return Scene()


def test_a_training_that_died_is_submitted_again_and_late_news_is_ignored(study):
    engine, done, late = Scripted("died", "done", "died"), [], []
    run_with(engine, RUNS, study, on_done=done.append, on_epoch=lambda *news: late.append(news))
    assert sorted(done) == RUNS
    assert len(late) == 2  # of those that died, not of those that are done
    assert len(engine.submitted) == 5
    assert engine.most == 2
    assert engine.closed


def test_a_training_that_always_dies_ends_the_study_with_the_reason(study):
    engine = Scripted(*["died"] * 9)
    with pytest.raises(HeadstartError, match="its machine is gone"):
        run_with(engine, RUNS[:1], study)
    assert len(engine.submitted) == 1 + engine.retries
    assert engine.closed


def test_an_error_of_a_training_is_not_tried_again(study):
    engine = Scripted("error")
    with pytest.raises(HeadstartError):
        run_with(engine, RUNS, study)
    assert len(engine.submitted) == 2
    assert engine.closed


# Attempts


@pytest.fixture
def majority(tmp_path):
    with registered(Majority()) as arm:
        Majority.trained.clear()
        recipe = small_recipe(tmp_path, arms=["tfidf"])
        yield StudyContext(tmp_path, recipe, splits(), epochs={20: 1}, arms=(arm,))


def test_a_training_that_runs_twice_is_done_once(majority):
    assert [attempt(RUNS[0], majority, ignore) for _ in range(2)] == [None, None]
    assert Majority.trained == RUNS[:1]


class Locking(Majority):
    """Works in its folder, as networks do."""

    name = "locking"

    def fit(self, context):
        with locked(context.folder):
            return super().fit(context)


def test_an_attempt_waits_for_another_that_was_thought_dead(majority, tmp_path):
    run = RunKey("locking", "", 20, 0)
    with registered(Locking()) as arm:
        study = replace(majority, arms=(arm,))
        with locked(study.run_folder(run)):
            second = Thread(target=attempt, args=(run, study, ignore), kwargs={"pause": 0.01})
            second.start()
            time.sleep(0.1)
            assert second.is_alive()
        second.join(30)
    assert read_training(tmp_path, run).run == run


def test_two_attempts_do_not_choose_settings_at_the_same_time(majority):
    with locked(attempt_lock(majority, RUNS[0])):
        second = Thread(target=attempt, args=(RUNS[0], majority, ignore), kwargs={"pause": 0.01})
        second.start()
        time.sleep(0.1)
        assert not Majority.trained
    second.join(30)
    assert Majority.trained == RUNS[:1]


# Machines without the study's folder


def test_a_training_elsewhere_brings_back_what_it_wrote(tmp_path):
    recipe = small_recipe(tmp_path, arms=["scratch"], labels=["20"], seeds=2, epochs=1)
    whole = StudyRun(recipe, tmp_path / "study")
    whole.run()
    run = whole.runs[1]
    before = results(whole.folder, [run])
    path = whole.folder / "trainings" / "scratch-causal-000020-seed-1.safetensors"
    path.unlink()
    kept = FinetuneConfig.load(whole.context.run_folder(run))
    with unpacked(pack(whole.context), whole.context) as moved:
        assert moved.tokenizer != whole.context.tokenizer
        assert attempt(run, moved, ignore) is None
        parcel = Parcel.of_training(run, moved, whole.context)
    assert not path.exists()
    parcel.bring_to(whole.folder)
    assert results(whole.folder, [run]) == before
    assert FinetuneConfig.load(whole.context.run_folder(run)) == kept


def test_the_texts_of_a_run_name_the_study_s_own_paths_again_however_many_bases_there_are(study):
    own = [f"bases/{name}" for name in "abcdefghijkl"]
    study = replace(study, tokenizer="tokenizer", vectors="vectors", bases={"causal": own})
    places = [f"/far/inputs/{number}" for number in range(14)]
    bases = {"causal": places[2:]}
    there = study.folder / "there"
    moved = replace(study, folder=there, tokenizer=places[0], vectors=places[1], bases=bases)
    made = moved.run_folder(RUNS[0])
    write_text(made / "config.toml", "\n".join(places[2:]))
    moved_back = replace(moved, epochs={RUNS[0].labels: 1})
    write_text(training_file(there, RUNS[0]), "")
    Parcel.of_training(RUNS[0], moved_back, study).bring_to(study.folder)
    assert (study.run_folder(RUNS[0]) / "config.toml").read_text().split() == own


def test_a_folder_of_the_same_name_elsewhere_is_not_taken_for_the_study(tmp_path):
    marker = write_marker(tmp_path)
    assert sees_folder(tmp_path, marker)
    assert not sees_folder(tmp_path, "another")
    assert not sees_folder(tmp_path / "none", marker)
