"""The data of a study: budgets, parts, and a corpus without held-out texts."""

import pytest

from headstart.config import PretrainConfig, StudyConfig
from headstart.errors import HeadstartError
from headstart.study.data import find_budgets, read_data
from headstart.study.results import read_results
from headstart.study.study import plan_study
from headstart.tasks import find_task
from headstart.training.callbacks import Callback
from headstart.training.corpus import open_corpus
from tests.labelled import dataset, write_csv
from tests.runs import small_run
from tests.study.small_study import small_config, small_study


def read(config):
    return read_data(config, Callback())


def test_other_seeds_draw_other_rows_and_smaller_budgets_lie_within_larger_ones(tmp_path):
    data = read(small_config(tmp_path))
    rows = {
        (labels, seed): set(data.rows(labels, seed).train.texts)
        for labels in (8, 20, data.all_labels)
        for seed in (0, 1)
    }
    assert rows[20, 0] != rows[20, 1]
    for seed in (0, 1):
        assert rows[8, seed] < rows[20, seed] < rows[data.all_labels, seed]
    assert rows[data.all_labels, 0] == rows[data.all_labels, 1]


def test_corpus_texts_that_hold_held_out_rows_are_dropped_and_counted(tmp_path):
    config = small_config(tmp_path)
    clean = read(config)
    test = clean.splits.test
    held_out = [
        test.texts[0],
        test.texts[1].upper(),
        f"They wrote: {clean.splits.validation.texts[0]} And so on.",
    ]
    with (tmp_path / "corpus.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in held_out)
    found = read(config)
    assert sum(found.dropped.values()) == sum(clean.dropped.values()) + 3
    assert not set(found.corpus) & set(held_out)


@pytest.mark.parametrize(
    ("labels", "rows", "budgets"),
    [
        ([], 80, [80]),
        ([], 300, [100, 300]),
        ([], 500, [100, 400, 500]),
        (["all", "20", "25%", "20"], 80, [20, 80]),
    ],
)
def test_budgets_are_ascending_and_end_where_the_rows_do(labels, rows, budgets):
    train = dataset(rows)
    task = find_task("classification").from_rows(train)
    config = StudyConfig.create(dataset=["d"], labels=labels)
    assert find_budgets(config, task, train) == budgets


@pytest.mark.parametrize(
    ("labels", "words"), [("9999", "only"), ("many", "not a label budget"), ("1", "too small")]
)
def test_a_budget_that_cannot_be_is_rejected(tmp_path, labels, words):
    with pytest.raises(HeadstartError, match=words):
        read(small_config(tmp_path, labels=[labels]))


def test_without_a_test_part_half_of_validation_becomes_one(tmp_path):
    path = write_csv(tmp_path / "validation.csv", dataset(40, 1))
    found = read(small_config(tmp_path).replace(validation=str(path)))
    validation, test = found.splits.validation, found.splits.test
    assert (len(validation), len(test)) == (20, 20)
    assert not set(validation.texts) & set(test.texts)
    assert any("half of the validation part" in note for note in found.notes)


def test_where_nothing_is_selected_all_of_validation_is_reported_on(tmp_path):
    path = write_csv(tmp_path / "validation.csv", dataset(40, 1))
    found = read(small_config(tmp_path, selection="none").replace(validation=str(path)))
    assert found.shared_test
    assert found.splits.test.texts == found.splits.validation.texts
    notes = " ".join(found.notes)
    assert "the results are those of the 40 validation rows" in notes
    assert "validation texts are also in test" not in notes  # one part does not overlap itself


def test_a_base_that_read_the_test_rows_is_reported(tmp_path):
    config = small_config(tmp_path)
    held_out = read(config).splits.test.texts
    with (tmp_path / "corpus.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in held_out[:2])
    base = small_run(tmp_path, steps=2)
    study = StudyConfig.create(dataset=config.dataset, base=str(base), arms=["pretrained"], folds=1)
    assert study.objectives == ["causal"]
    held = sum(read(config).dropped.values())
    assert held >= 2
    assert any(f"pretrained on {held} texts that equal" in note for note in read(study).notes)


def test_a_base_has_the_objective_it_was_pretrained_with(tmp_path):
    base = small_run(tmp_path, objective="masked", steps=2)
    assert StudyConfig.create(dataset=["x"], base=str(base)).objectives == ["masked"]
    with pytest.raises(HeadstartError, match="pretrained with masked"):
        StudyConfig.create(dataset=["x"], base=str(base), objectives=["causal"])


# Without a corpus, the training texts are what a study pretrains on.


def test_the_base_reads_no_text_that_is_to_be_judged(tmp_path):
    settings = {"corpus": [], "arms": ["pretrained"], "labels": ["20"], "seeds": 1, "epochs": 1}
    study = small_study(tmp_path, **settings)
    train = study.data.splits.train.texts
    assert list(study.data.corpus) == train
    base = study.base_folder(*study.config.objectives)
    assert set(open_corpus(PretrainConfig.load(base))) == set(train)
    about = read_results(study.folder).about
    assert about["corpus"] == "its own training texts"
    assert any("no corpus was given" in warning for warning in about["warnings"])
    assert about["task_texts"] == 0


def test_texts_too_few_to_pretrain_on_are_rejected_before_anything_is_trained(tmp_path):
    config = small_config(tmp_path, corpus=[])
    write_csv(tmp_path / "data.csv", dataset(30))
    with pytest.raises(HeadstartError) as caught:
        plan_study(config, tmp_path / "out")
    assert caught.value.code == "no-corpus"
    assert "--corpus FILE, or choose --arms tfidf,scratch" in caught.value.fix
    assert not (tmp_path / "out").exists()
