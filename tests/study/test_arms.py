"""The table of arms: names, how they are fitted, and arms of Hugging Face."""

from types import SimpleNamespace

from headstart.arms import arm_order, find_arm
from headstart.config import StudyConfig
from headstart.study.jobs import network_config
from headstart.study.plan import Job, safe_name


def test_a_model_of_hugging_face_is_an_arm():
    arm = find_arm("hf:owner/small-bert@abc")
    assert (arm.label, arm.is_network, arm.uses_objective) == ("hf:small-bert", True, False)
    assert arm_order(["stack", "hf:a/b", "scratch"]) == ["scratch", "hf:a/b", "stack"]


def test_a_model_of_hugging_face_is_trained_with_the_precision_of_the_study(tmp_path):
    """`--precision` applies to it, too."""
    name = "hf:owner/model"
    context = SimpleNamespace(
        job=Job(name, "", 20, 1), arm=find_arm(name), inputs={safe_name(name): str(tmp_path)},
        config=StudyConfig.create(dataset=["d"], arms=[name, "tfidf"], epochs=3),
        plan=SimpleNamespace(threads=2, precision="bf16"),
    )  # fmt: skip
    found = network_config(context)
    assert (found.precision, found.base, found.threads) == ("bf16", str(tmp_path), 2)
    assert (found.seed, found.epochs, found.fresh) == (1, 3, False)
