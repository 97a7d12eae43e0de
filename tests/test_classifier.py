"""The estimator follows scikit-learn's conventions, with lists of strings."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks as checks

from headstart import HeadstartClassifier, load
from headstart.errors import HeadstartError
from tests.baselines.saved import classifier_run
from tests.labelled import dataset, write_csv
from tests.runs import small_run

TINY = {"width": 16, "layers": 1, "heads": 2, "vocab_size": 300, "threads": 1}
DATA = dataset(60, 4)
TEXTS, LABELS = DATA.texts, [DATA.label_names[label] for label in DATA.labels]


def estimator(**options):
    usual = {"epochs": 3, "learning_rate": 1e-2, "random_state": 0, **TINY}
    return HeadstartClassifier(**{**usual, **options})


@pytest.fixture(scope="module")
def fitted():
    return estimator().fit(TEXTS, LABELS)


def test_it_learns_and_scores(fitted):
    other = dataset(40, 6)
    assert fitted.score(other.texts, [other.label_names[label] for label in other.labels]) > 0.9
    assert fitted.classes_.tolist() == ["animal", "person"]
    p = fitted.predict_proba(["the small cat chases the mouse .", "the old judge reads the law ."])
    assert np.allclose(p.sum(axis=1), 1)
    assert p[0, 0] > 0.5 > p[1, 0]
    with pytest.raises(NotFittedError):
        estimator().predict(TEXTS)


def test_it_starts_from_a_base(tmp_path):
    base = small_run(tmp_path, steps=30)
    arm = HeadstartClassifier(base, epochs=2, threads=1, random_state=0)
    assert arm.fit(TEXTS, LABELS).summary_["swap"][0]["status"] == "kept"


def test_scikit_learns_suite_finds_nothing_else_that_applies_to_text():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says which checks need a table of numbers
        checks.check_estimator(estimator())


def test_the_same_random_state_gives_the_same_answers_and_fitting_anew_forgets(fitted):
    again = clone(fitted).fit(TEXTS[::-1], LABELS).fit(TEXTS, LABELS)
    assert np.array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_a_pickle_answers_the_same(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert pickle.loads(pickle.dumps(estimator())).get_params() == estimator().get_params()


def test_it_can_be_searched_in_a_pipeline():
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, estimator())
    search = GridSearchCV(pipeline, {"headstartclassifier__epochs": [1, 3]}, cv=2)
    search.fit(TEXTS, LABELS)
    assert search.best_score_ > 0.7
    assert len(search.predict(TEXTS[:3])) == 3


@pytest.mark.parametrize("labels", [[-3, 7] * 30, np.array(["b", "a"] * 30, dtype=object)])
def test_labels_of_any_kind_come_back_as_they_were(labels):
    arm = estimator(epochs=1).fit(TEXTS, labels)
    assert set(arm.predict(TEXTS).tolist()) <= set(np.asarray(labels).tolist())
    assert arm.classes_.tolist() == sorted(set(np.asarray(labels).tolist()))


def test_one_text_a_class_is_enough_to_begin_with():
    arm = estimator(epochs=1).fit(["yes", "no"], [1, 0])
    assert len(arm.predict(["yes"])) == 1


def test_what_was_saved_opens_elsewhere_and_can_be_judged(fitted, tmp_path, headstart_json):
    fitted.save(tmp_path / "run")
    assert load(tmp_path / "run").labels == ("animal", "person")
    others = write_csv(tmp_path / "a.csv", dataset(30, 9))
    assert headstart_json("evaluate", tmp_path / "run", others)["rows"] == 30
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert summary["run"] == str(tmp_path / "run")


def test_a_classifier_without_a_network_is_an_estimator_too(tmp_path):
    run = classifier_run("tfidf")
    run.save(tmp_path / "run")
    fitted = HeadstartClassifier.from_run(tmp_path / "run")
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(fitted.predict_proba(TEXTS), run.predict_proba(TEXTS))
    assert np.array_equal(again.predict(TEXTS), fitted.predict(TEXTS))


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("one text", [0], "not one text"),
        (["a", 3], [0, 1], "text 1 is not a string but a int"),
        (["a", "b"], [0], "one label per text"),
        (["a", "b"], [0, 0], "1 class"),
        (["a", "b"], [0.5, 1.7], "continuous"),
    ],
)
def test_wrong_input_is_a_value_error(texts, labels, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(texts, labels)


def test_an_empty_text_is_rejected_as_on_the_command_line(fitted):
    with pytest.raises(HeadstartError, match="the text is empty"):
        fitted.predict(["fine", ""])
    with pytest.raises(HeadstartError, match="the text is empty"):
        estimator().fit([*TEXTS, " "], [*LABELS, LABELS[0]])


@pytest.mark.parametrize("weight", ["balanced", {"animal": 1.0, "person": 29.0}])
def test_class_weights_make_a_rare_class_count(weight):
    rare = [n for n in range(60) if LABELS[n] == "animal" or n < 2]
    texts, labels = [TEXTS[n] for n in rare], [LABELS[n] for n in rare]
    kind = {"epochs": 1, "learning_rate": 1e-3, "head_init": "random", "class_weight": weight}
    weighted = estimator(**kind).fit(texts, labels)
    plain = estimator(**{**kind, "class_weight": None}).fit(texts, labels)
    person = weighted.classes_.tolist().index("person")
    change = weighted.predict_proba(TEXTS)[:, person] - plain.predict_proba(TEXTS)[:, person]
    assert change.mean() > 0


def test_parameters_are_the_settings_of_finetune_and_checked_when_fitting():
    names = set(HeadstartClassifier().get_params())
    assert {"base", "epochs", "width", "class_weight", "random_state", "precision"} <= names
    assert not {"dataset", "text_column", "seed", "settings"} & names
    assert HeadstartClassifier().precision == "fp32"
    with pytest.raises(TypeError, match="settings"):
        HeadstartClassifier(settings={})
    with pytest.raises(HeadstartError, match="token_dropout is 35"):
        estimator(token_dropout=35).fit(TEXTS, LABELS)


def test_scikit_learns_names_of_the_arguments_work_and_a_table_of_one_column(fitted):
    table = pd.DataFrame({"review": TEXTS})
    arm = estimator().fit(X=table, y=pd.Series(LABELS))
    assert np.array_equal(arm.predict_proba(X=table), fitted.predict_proba(TEXTS))
    assert np.array_equal(arm.predict(np.array(TEXTS).reshape(-1, 1)), fitted.predict(TEXTS))


def test_a_weight_of_zero_leaves_a_text_out_and_the_size_of_weights_does_not_matter():
    without = estimator(epochs=1).fit(TEXTS[:40], LABELS[:40])
    weights = np.array([7.0] * 40 + [0.0] * 20)
    weighted = estimator(epochs=1).fit(TEXTS, LABELS, sample_weight=weights)
    np.testing.assert_allclose(
        weighted.predict_proba(TEXTS), without.predict_proba(TEXTS), atol=1e-6
    )


@pytest.mark.parametrize("weights", [[1.0], [-1.0] * 60, [0.0] * 60, [np.nan] * 60])
def test_weights_that_mean_nothing_are_rejected(weights):
    with pytest.raises(ValueError, match="weight"):
        estimator().fit(TEXTS, LABELS, sample_weight=weights)
