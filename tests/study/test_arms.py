"""The table of arms: names, how they are fitted, and arms of Hugging Face."""

import pytest

from headstart.arms import arm_order, find_arm
from headstart.config import StudyConfig
from headstart.errors import HeadstartError
from headstart.study.jobs import JobContext, network_config
from headstart.study.plan import Job, Plan, safe_name


def test_an_unknown_arm_is_an_error_that_lists_the_known_ones():
    with pytest.raises(HeadstartError, match="unknown arm 'wizard'; there are trivial, tfidf"):
        find_arm("wizard")
    with pytest.raises(HeadstartError, match="unknown arm 'wizard'"):
        StudyConfig.create(arms=["wizard"])


def test_a_model_of_hugging_face_is_an_arm():
    arm = find_arm("hf:owner/small-bert@abc")
    assert (arm.label, arm.is_network, arm.uses_objective) == ("hf:small-bert", True, False)
    assert arm_order(["stack", "hf:a/b", "scratch"]) == ["scratch", "hf:a/b", "stack"]


def test_a_model_of_hugging_face_is_trained_with_the_precision_of_the_study(tmp_path):
    """`--precision` was dropped."""
    name = "hf:owner/model"
    config = StudyConfig.create(dataset=["d"], arms=[name, "tfidf"], epochs=3)
    paths = {safe_name(name): str(tmp_path)}
    plan = Plan(
        seeds=[1], budgets=[20], pretrain_steps=0, jobs=1, threads=2,
        pretrain_threads=2, precision="bf16", all_labels=40,
    )  # fmt: skip
    context = JobContext(
        Job(name, "", 20, 1), find_arm(name), config, plan,
        None, None, paths, (), tmp_path, print,
    )  # fmt: skip
    found = network_config(context)
    assert (found.precision, found.base, found.threads) == ("bf16", str(tmp_path), 2)
    assert (found.seed, found.epochs, found.fresh) == (1, 3, False)


def test_a_stack_needs_two_arms_to_combine():
    with pytest.raises(HeadstartError, match="a stack combines two or more of"):
        StudyConfig.create(arms=["tfidf", "scratch", "stack"])


def test_with_a_base_nothing_is_pretrained(tmp_path):
    with pytest.raises(HeadstartError, match="--bases is for bases"):
        StudyConfig(dataset=["d"], arms=["pretrained"], base="b", bases=2, objectives=["causal"],
                    seeds=2).validate()  # fmt: skip
    with pytest.raises(HeadstartError, match="give --seeds 4 or more"):
        StudyConfig.create(bases=4)
