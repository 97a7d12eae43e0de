"""A task, its head and its predictor from outside the package are used like ours."""

import json
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
import torch
from headstart.inference.evaluate import evaluate, evaluation_rows
from headstart.inference.predict import Predictor, predict_file, predictor_of
from headstart.inference.predict.predictor import TextRow
from torch import nn

from headstart.errors import HeadstartError
from headstart.model import config, heads
from headstart.model.config import Checked
from headstart.model.pooling import pool
from headstart.run import NetworkRun
from headstart.tasks import find_task, register, tasks, unregister
from headstart.tasks.classification import Classification
from headstart.tasks.examples import Examples, encode_texts
from headstart.tasks.task import Task
from headstart.text.reading.lenient_rows import LenientRows
from headstart.text.reading.read import read_dataset, read_labelled
from headstart.training.finetune import finetune
from tests.labelled import recipe


@dataclass(frozen=True, kw_only=True)
class RatingConfig(Checked):
    kind: Literal["rating"] = "rating"


class RatingHead(nn.Module):
    """One number per text."""

    def __init__(self, base, config):
        super().__init__()
        self.config = config
        self.output = nn.Linear(base.width, 1)

    def forward(self, hidden, segments=None):
        return self.output(pool(hidden, segments, "mean"))  # (B, 1)


class RatingPredictor(Predictor):
    def read_file(self, source, options):
        return LenientRows(source, options)

    def read_texts(self, texts):
        return [TextRow(n, text, {"text": text}) for n, text in enumerate(texts, start=1)]

    def predict(self, rows, *, progress=None):
        if not rows:
            return []
        part = type("Part", (), {"texts": [row.text for row in rows], "labels": [0] * len(rows)})
        return self.run_network(part, progress).tolist()

    def document(self, answer):
        return {"rating": answer}


class Rating(Task):
    """A number for each text; labels are numbers."""

    name = "rating"
    metric = "closeness"
    predictor = RatingPredictor

    @classmethod
    def read(cls, sources, **how):
        return read_dataset(sources, **how)

    def read_all(self, source, **how):
        return read_labelled(source, self.labels, **how)

    @classmethod
    def of(cls, train):
        return cls(train.label_names)

    def texts(self, part):
        return part.texts

    def head(self, preset, pooling):
        return RatingConfig()

    def encode(self, part, encoding, *, progress=None):
        ids = [encoding.parts(one)[0] for one in encode_texts(part.texts, encoding, progress)]
        return Examples(
            tokens=[encoding.framed(one) for one in ids],
            owners=np.arange(len(ids)),
            targets=[np.float32(self.labels[label]) for label in part.labels],
            weights=np.ones(len(ids), dtype=np.float32),
        )

    def losses(self, outputs, batch, *, smoothing=0.0):
        return (outputs.float()[:, 0] - batch.targets) ** 2

    def join(self, outputs, examples):
        return np.array([output[0] for output in outputs], dtype=np.float64)

    def metrics(self, answers, part):
        error = float(np.mean((answers - [float(self.labels[n]) for n in part.labels]) ** 2))
        return {"loss": error, "closeness": 1 / (1 + error)}

    def kept(self, answers, part):
        return {"answers": answers}

    def balanced(self, part, examples):
        raise HeadstartError("--balance is for classes")


@pytest.fixture(scope="module")
def rating():
    register(Rating)
    heads.register_head(RatingConfig, RatingHead)
    yield
    unregister("rating")
    del config.HEAD_CONFIGS["rating"], heads._HEADS[RatingConfig]


@pytest.fixture(scope="module")
def run(rating, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rating")
    words = {"bad": 1, "fine": 3, "great": 5}
    rows = [f"a {word} film number {n},{words[word]}" for n in range(60) for word in words]
    (folder / "train.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    settings = recipe(
        task="rating", dataset=[str(folder / "train.csv")], epochs=12, learning_rate=1e-2
    )
    finetune(settings, folder / "run")
    return NetworkRun.open(folder / "run"), settings


def test_it_is_found_by_name_beside_the_built_in_ones(rating):
    assert find_task("rating") is Rating
    assert {"classification", "multi-label", "pairs", "spans", "tagging"} < set(tasks())


def test_it_is_fine_tuned_evaluated_and_opened_again(run):
    opened, settings = run
    assert isinstance(opened.model.head, RatingHead)
    part, _ = evaluation_rows(settings, opened.task, None)
    assert evaluate(opened, part)["closeness"] > 0.3  # always 3 would have 0.27


def test_it_predicts_texts_and_files_and_keeps_the_columns(run, tmp_path):
    predictor = predictor_of(run[0])
    bad, great = predictor.predict(predictor.read_texts(["a bad film", "a great film"]))
    assert bad < great
    (tmp_path / "in.csv").write_text("text,rating\na great film,4\n")
    predict_file(run[0], tmp_path / "in.csv", tmp_path / "out.jsonl")
    found = json.loads((tmp_path / "out.jsonl").read_text())
    assert found["rating"] == "4"
    assert found["predicted_rating"] == pytest.approx(great, abs=0.01)


def test_it_is_shown_as_a_table_of_its_fields(run, capsys):
    from headstart.cli.output import results
    from headstart.cli.predict_display import show_predictions

    predictor = predictor_of(run[0])
    rows = predictor.read_texts(["a [/] film"])
    show_predictions(results(), predictor, rows, [4.5])
    shown = capsys.readouterr().out
    assert "rating" in shown
    assert "4.5" in shown
    assert "a [/] film" in shown


def test_a_task_that_inherits_predicts_as_its_parent_does(rating, run):
    class Mood(Classification):
        name = "mood"

    register(Mood)
    try:
        assert find_task("mood").predictor == Classification.predictor
    finally:
        unregister("mood")


def test_what_is_no_task_or_has_a_name_that_is_taken_is_refused(rating):
    with pytest.raises(HeadstartError, match="has no `name`, which every task has"):
        register(dict)
    with pytest.raises(HeadstartError, match="the task 'rating' exists already"):
        register(Rating)


def test_a_head_whose_kind_is_taken_or_missing_is_refused(rating):
    @dataclass(frozen=True, kw_only=True)
    class Other(Checked):
        kind: Literal["spans"] = "spans"

    with pytest.raises(HeadstartError, match="already a head of the kind 'spans'"):
        heads.register_head(Other, RatingHead)

    @dataclass(frozen=True, kw_only=True)
    class Nameless(Checked):
        size: int = 1

    with pytest.raises(HeadstartError, match="does not describe a head"):
        heads.register_head(Nameless, RatingHead)


def test_an_unregistered_head_cannot_be_built():
    class Unknown(RatingConfig):
        pass

    with pytest.raises(HeadstartError, match="no head is registered for Unknown"):
        heads.make_head(None, Unknown(), torch.nn.Embedding(2, 2))
