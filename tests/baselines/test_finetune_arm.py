"""`finetune --arm` trains a linear classifier, and says what it cannot do."""

import numpy as np
import pytest

from headstart.baselines.baselines import finetune_arm
from headstart.config import FinetuneConfig
from headstart.errors import HeadstartError
from headstart.run import Run
from tests.labelled import dataset, splits, write_csv


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("data") / "train.csv", dataset(100, wrong=0.1))


@pytest.mark.parametrize("arm", ["tfidf", "nb"])
def test_a_linear_arm_is_trained_and_evaluated_on_the_command_line(
    data, arm, tmp_path, headstart_json
):
    summary = headstart_json("finetune", data, "--arm", arm, "--out", tmp_path / "run")
    assert summary["arm"] == arm
    assert summary["validation"]["accuracy"] > 0.5
    found = headstart_json("evaluate", tmp_path / "run")
    assert found["seen_rows"] == 0
    assert found["accuracy"] > 0.5
    again = headstart_json("finetune", "--resume", "--out", tmp_path / "run")
    assert again == summary
    assert {one["name"] for one in summary["baselines"]}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"arm": "cooccurrence"}, "choose network, tfidf, nb"),
        ({"arm": "tfidf", "epochs": 3}, "does not take --epochs"),
        ({"arm": "nb", "base": "runs/base"}, "does not take --base"),
        ({"arm": "tfidf", "task": "tagging"}, "not for tagging"),
    ],
)
def test_what_an_arm_cannot_do_is_said_before_the_work(tmp_path, changes, told):
    with pytest.raises(HeadstartError, match=told) as error:
        finetune_arm(FinetuneConfig(dataset=["d.csv"], **changes), tmp_path / "run")
    assert error.value.fix
    assert not (tmp_path / "run").exists()


def test_pairs_of_texts_have_a_linear_arm_too(tmp_path):
    rows = [("a cat", "a cat", "same"), ("a dog", "a cat", "other")] * 20
    lines = [f"{first} {n},{second} {n},{label}" for n, (first, second, label) in enumerate(rows)]
    (tmp_path / "pairs.csv").write_text("\n".join(["first,second,label", *lines]) + "\n")
    settings = FinetuneConfig(
        dataset=[str(tmp_path / "pairs.csv")],
        task="pairs",
        arm="tfidf",
        text_column="first",
        second_column="second",
    )
    finetune_arm(settings, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    assert run.task.name == "pairs"
    assert [one.text for one in run.explain(("a cat", "a dog"))] == ["a", "cat", "a", "dog"]
    first, second = run.classifier.scores([("a cat", "a dog"), "a cat ¦ a dog"])
    assert np.array_equal(first, second)


def test_an_arm_killed_before_its_summary_was_written_is_resumed(tmp_path, monkeypatch):
    def killed(*given, **named):
        raise KeyboardInterrupt

    settings = FinetuneConfig.create(dataset=["generated"], arm="tfidf", threads=1)
    with monkeypatch.context() as patched:
        patched.setattr("headstart.baselines.baselines.write_card", killed)
        with pytest.raises(KeyboardInterrupt):
            finetune_arm(settings, tmp_path / "run", splits=splits())
    run = finetune_arm(settings, tmp_path / "run", splits=splits(), resume=True)
    assert run.summary["validation"]["accuracy"] > 0.9
