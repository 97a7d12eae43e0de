"""With few labelled rows, every row is evaluated once per seed, in folds."""

import json
import shutil

import numpy as np
import pytest

import headstart
from headstart.data.overlap import HeldOutTexts
from headstart.errors import HeadstartError
from headstart.model_card import CARD
from headstart.study.data import read_data
from headstart.study.results import read_results
from headstart.study.statistics import mean_interval, seed_variance
from headstart.training.callbacks import Callback
from tests.labelled import dataset, write_csv
from tests.study.small_study import results_of, run_config, small_config

ARMS = ["tfidf", "scratch", "pretrained", "stack"]
FOLDS = 3  # of the trained study; by default there are 5


def fold_config(folder, **changes):
    return small_config(folder, **{"folds": None, "arms": ARMS, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study without a corpus: the training texts of each fold are its corpus."""
    folder = tmp_path_factory.mktemp("folds")
    write_csv(folder / "data.csv", dataset(130, wrong=0.1))
    labels = ["20", "all"]
    config = fold_config(folder, folds=FOLDS, corpus=[], labels=labels, epochs=1, tokens=2 * 2048)
    return run_config(config, folder / "out")


def test_every_row_is_judged_once_by_each_seed(finished):
    results = read_results(finished.folder)
    data, rows = finished.data, results.rows["row"].to_pylist()
    assert sorted(rows) == sorted(set(rows))
    assert len(rows) == len(data.splits.train)
    for run in results.runs:
        assert results.scores(*run).shape == (2, len(rows))
    for seed in (0, 1):
        positions = [data.fold(seed, fold).rows for fold in range(1, FOLDS + 1)]
        assert sorted(np.concatenate(positions)) == list(range(len(rows)))
    assert data.fold(0, 1).rows != data.fold(1, 1).rows


def test_a_row_has_the_prediction_of_the_fold_that_held_it_out(finished):
    joined = read_results(finished.folder).probabilities("scratch", *finished.config.objectives, 20)
    for one in results_of(finished, "scratch", labels=20):
        rows = finished.data.fold(one.job.seed, one.job.fold).rows
        assert np.array_equal(joined[one.job.seed, rows], one.predictions)


def test_no_row_is_judged_by_what_has_read_it_or_its_duplicate(finished):
    data = finished.data
    for (seed, fold), one in data.folds.items():
        held_out = HeldOutTexts(one.splits.test.texts)
        assert [one.splits.test.texts[0]] == [data.splits.test.texts[one.rows[0]]]
        for texts in (data.rows(data.all_labels, seed, fold).train.texts, list(one.corpus)):
            assert texts
            assert set(held_out.find(texts)) == {None}


def test_a_corpus_that_is_given_holds_no_labelled_text(tmp_path):
    config = fold_config(tmp_path)
    texts = dataset(200, wrong=0.1).texts
    with (tmp_path / "corpus.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in texts[:7])
    data = read_data(config, Callback())
    assert not set(data.corpus) & set(texts)
    assert {id(fold.corpus) for fold in data.folds.values()} == {id(data.corpus)}


def test_best_is_trained_on_all_rows_and_says_what_the_folds_expect(finished):
    best = headstart.load(finished.folder / "best")
    assert best.summary["train_rows"] == len(finished.data.splits.train)
    results = read_results(finished.folder)
    taken = results.about["best"]
    scores = results.scores(taken["arm"], taken["objective"], taken["labels"])
    expected = best.summary["expected"]
    assert expected["folds"] == FOLDS
    assert expected["accuracy"] == pytest.approx(scores.mean())
    assert f"measured in {FOLDS} folds" in (best.folder / CARD).read_text()
    with pytest.raises(HeadstartError) as error:
        best.evaluate(finished.data.splits.train)
    assert error.value.code == "seen-rows"


def test_the_study_says_that_it_is_in_folds_and_counts_their_trainings(finished):
    assert read_results(finished.folder).about["folds"] == FOLDS
    assert len(finished.trainings) == len(ARMS) * 2 * 2 * FOLDS
    saved = [job for job in finished.jobs if job.labels == len(finished.data.splits.train)]
    assert [(job.arm, job.fold) for job in saved] == [(arm, 0) for arm in ARMS]
    assert len(list(finished.folder.glob("folds/*/bases/*"))) == 2 * FOLDS


@pytest.mark.slow
def test_a_study_that_is_started_again_has_the_same_bits(finished):
    """A study resumes after half of its jobs and the base of one fold were lost."""
    before = read_results(finished.folder)
    jobs = sorted((finished.folder / "jobs").iterdir())
    for path in jobs[::2]:
        path.unlink()
    shutil.rmtree(finished.folder / "folds" / "seed-1-fold-2")
    run_config(finished.config, finished.folder)
    after = read_results(finished.folder)
    assert after.predictions.equals(before.predictions)
    drop = ["seconds"]
    assert after.values.drop_columns(drop).equals(before.values.drop_columns(drop))


def test_many_rows_or_a_test_part_or_one_fold_need_no_folds(tmp_path):
    few = read_data(fold_config(tmp_path), Callback())
    assert few.fold_count == 5
    path = write_csv(tmp_path / "test.csv", dataset(40, 1))
    for settings in ({"test": str(path)}, {"folds": 1}):
        assert not read_data(fold_config(tmp_path, **settings), Callback()).folds
    assert read_data(fold_config(tmp_path, folds=3), Callback()).fold_count == 3
    with pytest.raises(HeadstartError, match="--folds"):
        read_data(fold_config(tmp_path, folds=3, test=str(path)), Callback())


@pytest.mark.slow
def test_a_class_of_two_rows_is_judged_in_two_folds(tmp_path):
    path = write_csv(tmp_path / "data.csv", dataset(60, wrong=0.1))
    with path.open("a", encoding="utf-8") as file:
        file.write("a stone lies in the cold valley,thing\nthe moon shines on a far river,thing\n")
    config = fold_config(tmp_path, arms=["tfidf", "nb"], labels=["all"], corpus=[])
    study = run_config(config, tmp_path / "out")
    results = read_results(study.folder)
    assert results.rows["gold"].to_pylist().count("thing") == 2
    document = json.loads((study.folder / "study.json").read_text())
    assert document["splits"] == {"labelled": len(results.rows)}


def test_intervals_cover_the_expected_accuracy_of_real_folds():
    """For a ridge classifier, 95 % of the intervals should contain the accuracy."""
    rng = np.random.default_rng(7)
    penalties, seeds, folds, studies, rows = (1.0, 30.0, 300.0), 3, 5, 250, 60
    size = rows - rows // folds
    truth = np.zeros(len(penalties))
    for _ in range(200):
        train, test = _draw(rng, size), _draw(rng, 1000)
        truth += [np.mean(_predict(*train, test[0], one) == test[1]) for one in penalties]
    truth /= 200
    covered = 0
    for _ in range(studies):
        features, classes = _draw(rng, rows)
        tables = {one: np.zeros((seeds, rows)) for one in penalties}
        for seed in range(seeds):
            places = rng.permutation(rows) % folds
            for fold in range(folds):
                held = places == fold
                for one, table in tables.items():
                    found = _predict(features[~held], classes[~held], features[held], one)
                    table[seed, held] = found == classes[held]
        variance = seed_variance(tables, folds=folds)
        intervals = [mean_interval(table, variance) for table in tables.values()]
        covered += sum(i.low <= t <= i.high for i, t in zip(intervals, truth, strict=True))
    assert covered / studies / len(penalties) >= 0.93


def _draw(rng, rows):
    classes = rng.integers(0, 2, rows)
    shift = 0.35 * (np.arange(15) < 5)
    return rng.normal(size=(rows, 15)) + shift * (2 * classes - 1)[:, None], classes


def _predict(features, classes, others, penalty):
    with_bias = np.c_[features, np.ones(len(features))]
    gram = with_bias.T @ with_bias + penalty * np.eye(with_bias.shape[1])
    weights = np.linalg.solve(gram, with_bias.T @ (2 * classes - 1))
    return (np.c_[others, np.ones(len(others))] @ weights > 0).astype(int)
