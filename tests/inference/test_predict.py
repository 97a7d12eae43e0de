"""Predictions are correct, in order, complete, and do not depend on the batch."""

import csv
import json
import shutil
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError
from headstart.run import Run
from headstart.tasks.classification import Classification, Pairs
from tests.baselines.saved import classifier_run
from tests.labelled import dataset
from tests.runs import small_run


def test_the_answers_are_right(run):
    data = dataset(40, 5)
    assert run.predict([]) == []
    answers = run.predict(data.texts)
    assert sum(answers[0]["probabilities"].values()) == pytest.approx(1)
    right = [
        answer["label"] == run.labels[label]
        for answer, label in zip(answers, data.labels, strict=True)
    ]
    assert np.mean(right) > 0.9


def test_a_text_has_the_same_answer_alone_and_among_others_of_any_length(run):
    texts = [" ".join(["the cat sleeps ."] * n) for n in (1, 7, 2, 30, 1, 4)]
    together = run.predict_proba(texts)
    alone = np.concatenate([run.predict_proba([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_an_empty_text_has_one_message_everywhere(run, tagger, answerer, text):
    linear = classifier_run("tfidf")
    pairs = replace(run, task=Pairs(run.labels))
    calls = [
        lambda: run.predict([text]),
        lambda: run.predict_proba([text]),
        lambda: run.explain(text),
        lambda: linear.predict([text]),
        lambda: linear.explain(text),
        lambda: pairs.predict([("a", text)]),
        lambda: Run.open(tagger).predict([text]),
        lambda: Run.open(answerer).predict([("who?", text)]),
    ]
    for call in calls:
        with pytest.raises(HeadstartError, match=r"^the (second )?text is empty\n"):
            call()


@pytest.mark.parametrize(
    ("task", "texts"),
    [(Classification, one) for one in ("one text", [("a", "b")], [3])]
    + [(Pairs, one) for one in (["ab"], [("a",)], [("a", "b", "c")], [("a", 3)])],
)
def test_what_is_not_a_list_of_the_tasks_inputs_is_rejected(run, task, texts):
    with pytest.raises(HeadstartError):
        replace(run, task=task(run.labels)).predict(texts)


def test_a_base_without_a_task_is_rejected_with_the_way_out(tmp_path):
    base = small_run(tmp_path, steps=2)
    with pytest.raises(HeadstartError, match="no task") as error:
        Run.open(base).predict(["a text"])
    assert "headstart finetune" in error.value.fix


def test_a_run_with_the_tokenizer_of_another_is_rejected(run_folder, tmp_path):
    folder = shutil.copytree(run_folder, tmp_path / "run")
    train_tokenizer(["the cat sits ."], vocab_size=270).save(folder)
    with pytest.raises(HeadstartError, match="not the one that this run was trained with"):
        Run.open(folder)


def write_input(path, rows, broken, note=1):
    with path.open("w", newline="") as file:
        file.write("note,text\n")
        for n in range(1, rows + 1):
            name = "cat" if n % 2 else "judge"
            cells = "one\tcell,too many" if n in broken else f"the {name} sits ."
            file.write(f"{note},{cells}\n")
    return path


def read_output(path):
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    return [json.loads(line) for line in path.open()]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_every_row_of_a_file_is_answered_in_its_place(run, tmp_path, suffix):
    source = write_input(tmp_path / "in.csv", 2_500, broken={1_250})
    output = tmp_path / f"out{suffix}"
    summary = run.predict_file(source, output)
    rows = read_output(output)
    assert (summary["rows"], summary["bad_rows"], len(rows)) == (2_500, 1, 2_500)
    assert summary["bad"][0]["row"] == 1_250
    assert [int(row["row"]) for row in rows] == list(range(1, 2_501))
    assert "columns" in rows[1_249]["error"]
    assert not rows[1_249]["label"]
    assert not any(row["error"] for n, row in enumerate(rows) if n != 1_249)
    texts = ["the cat sits .", "the judge sits ."]
    labels = [answer["label"] for answer in run.predict(texts)]
    assert [row["label"] for row in rows[:4]] == labels * 2


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(run, tmp_path):
    peaks = []
    for rows in (6_000, 18_000):  # more than a megabyte, which is read at a time
        source = write_input(tmp_path / f"{rows}.csv", rows, broken=set(), note="x" * 200)
        tracemalloc.start()
        run.predict_file(source, tmp_path / "out.csv")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0], peaks


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_the_columns_of_the_input_are_kept_and_none_is_overwritten(run, tmp_path, suffix):
    rows = [
        {"text": "the cat sits .", "label": "mine", "row": "x", "n": 3},
        {"text": "", "label": "theirs", "row": "y", "n": None},
    ]
    source = write_lines(tmp_path / "in.jsonl", rows)
    run.predict_file(source, tmp_path / f"out{suffix}")
    first, second = read_output(tmp_path / f"out{suffix}")
    assert (first["text"], first["label"], first["row"]) == ("the cat sits .", "mine", "x")
    assert (second["label"], second["row"]) == ("theirs", "y")
    assert first["n"] == (3 if suffix == ".jsonl" else "3")
    assert first["predicted_label"] in run.labels
    assert int(first["predicted_row"]) == 1
    assert not second["predicted_label"]
    assert "empty" in second["error"]


def test_a_column_that_comes_too_late_for_a_table_is_rejected_not_lost(run, tmp_path):
    rows = [{"text": "the cat sits ."}] * 1_100 + [{"text": "a dog .", "late": 1}]
    write_lines(tmp_path / "in.jsonl", rows)
    with pytest.raises(HeadstartError, match=r"row 1,101 has a column 'late'") as error:
        run.predict_file(tmp_path / "in.jsonl", tmp_path / "out.csv")
    assert ".jsonl" in error.value.fix
    assert not (tmp_path / "out.csv").exists()
    run.predict_file(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert read_output(tmp_path / "out.jsonl")[-1]["late"] == 1


@pytest.mark.parametrize("name", ["./in.csv", "link.csv", "hard.csv"])
def test_the_input_is_never_overwritten(run, tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = write_input(tmp_path / "in.csv", 2, broken=set())
    (tmp_path / "link.csv").symlink_to(source)
    (tmp_path / "hard.csv").hardlink_to(source)
    before = source.read_bytes()
    with pytest.raises(HeadstartError, match="would overwrite the input"):
        run.predict_file(source, Path(name))
    assert source.read_bytes() == before
    (tmp_path / "data").mkdir()
    with pytest.raises(HeadstartError, match="lies in the input"):
        run.predict_file(tmp_path / "data", tmp_path / "data" / "out.csv")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("out.xlsx", r"as '\.xlsx'"),
        ("folder.csv", "this is a folder"),
        ("in.csv/out.csv", "is a file, not a folder"),
        ("x" * 300 + ".csv", "the name is too long"),
    ],
)
def test_an_output_that_cannot_be_written_is_rejected_before_the_work(
    run, tmp_path, output, message
):
    (tmp_path / "folder.csv").mkdir()
    write_input(tmp_path / "in.csv", 2, broken=set())
    with pytest.raises(HeadstartError, match=message) as error:
        run.predict_file(tmp_path / "in.csv", tmp_path / output)
    assert error.value.fix
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv", "in.csv"]


def test_the_word_that_decides_has_the_largest_effect(run):
    found = run.explain("the old judge reads the thing .")
    assert max(found, key=lambda one: one.effect).text in ("judge", "reads")
    assert "".join(one.text for one in found) == "theoldjudgereadsthething."
    assert [len(run.explain(text)) for text in ("cat", "cat " * 1_000, "猫が好き")] == [1, 200, 4]


def test_no_cell_of_a_csv_is_a_formula(run, tmp_path):
    rows = ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1 from me", "-1 star", "fine"]
    write_lines(tmp_path / "in.jsonl", [{"text": text, "n": -0.5} for text in rows])
    run.predict_file(tmp_path / "in.jsonl", tmp_path / "out.csv")
    found = read_output(tmp_path / "out.csv")
    assert [row["text"] for row in found] == [*(f"'{text}" for text in rows[:4]), "fine"]
    assert {row["n"] for row in found} == {"-0.5"}
