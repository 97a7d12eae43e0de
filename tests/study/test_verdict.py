"""The sentences say what the numbers say, and nothing where there is nothing."""

import dataclasses
import re

import numpy as np
import pytest

from headstart.studies.analysis import analyse
from headstart.studies.outcomes import RunKey
from headstart.studies.results import (
    Predictions,
    read_measures,
    read_predictions,
    read_study,
)
from headstart.studies.verdict import verdict
from tests.study.fake_study import Recipe, fake_study

ALIKE = {"scratch": (0.3, 0.2), "pretrained": (0.3, 0.2), "tfidf": (0.4, 0.2)}
COUNTING_ALONE = {"scratch": (0.1, 0.2), "counted": (0.5, 0.2), "pretrained": (0.5, 0.2)}


def judged(folder, **recipe):
    fake_study(folder, Recipe(**recipe))
    study = read_study(folder)
    return verdict(study, analyse(study, read_measures(folder), read_predictions(folder)))


def test_a_clear_gain_is_told_with_its_interval_its_parts_and_its_labels(tmp_path):
    found = judged(tmp_path, test_rows=3000, seed_noise=0.01)
    assert found.claims == ("counting", "pretraining")
    assert found.sentences[0].startswith("With 100 labels pretraining adds ")
    assert found.sentences[1].startswith("Pretrained − scratch, in points: with 100 labels ")
    assert "what counting alone needs all 1,600 labels for" in found.sentences[2]
    assert found.sentences[3].startswith("Beside it, TF-IDF is ")


def test_what_counting_and_pretraining_gave_add_up_to_the_whole(tmp_path):
    said = judged(tmp_path).sentences[1]
    pattern = r"labels (\S+) = (\S+) from counting \(.*?\) ([+−] \S+) from pretraining"
    sums = re.findall(pattern, said)
    assert len(sums) == 2
    for whole, *parts in (
        [float(value.replace("−", "-").replace(" ", "")) for value in line] for line in sums
    ):
        assert whole == pytest.approx(sum(parts), abs=0.11)  # each is rounded to 0.1


def test_what_counting_alone_gave_is_not_credited_to_pretraining(tmp_path):
    found = judged(tmp_path, skill=COUNTING_ALONE)
    assert found.claims == ("counting",)
    assert "pretraining adds" not in found.sentences[0]


def test_without_the_arm_counted_the_verdict_says_that_counting_is_inside(tmp_path):
    skill = {"scratch": (0.2, 0.2), "pretrained": (0.9, 0.2)}
    assert judged(tmp_path, skill=skill).sentences[1].startswith("What counting gave, if anything")


def test_a_difference_within_noise_is_not_claimed(tmp_path):
    found = judged(tmp_path, skill=ALIKE)
    assert not found.claims_difference
    assert found.sentences[0].startswith("Whether pretraining helps is not clear")
    assert not any("needs all" in sentence for sentence in found.sentences)


def test_arms_that_are_surely_alike_are_called_so(tmp_path):
    found = constructed(tmp_path, [(0.001, 0.002, 0.0), (0.001, 0.0, -0.001)])
    assert found.sentences[0].startswith("Pretraining makes no difference here")


def test_two_seeds_that_cannot_tell_say_what_they_would_have_found(tmp_path):
    found = constructed(tmp_path, [(0.0, 0.06), (0.08, 0.01)])
    assert not found.claims_difference
    assert "would have been found with a chance of 80 %" in found.sentences[0]


def test_all_labels_is_said_only_of_all_labels(tmp_path):
    fake_study(tmp_path, Recipe(test_rows=3000, seed_noise=0.01))
    study = dataclasses.replace(read_study(tmp_path), all_labels=2000)
    said = verdict(study, analyse(study, read_measures(tmp_path), read_predictions(tmp_path)))
    assert "what counting alone needs 1,600 labels for" in said.sentences[2]


def test_what_was_cut_is_the_last_sentence(tmp_path):
    fake_study(tmp_path)
    study = dataclasses.replace(read_study(tmp_path), cuts=["2 seeds instead of 3", "epochs: 1"])
    said = verdict(study, analyse(study, read_measures(tmp_path), read_predictions(tmp_path)))
    assert said.sentences[-1] == "Cut to fit into the minutes: 2 seeds instead of 3; epochs: 1."


def constructed(folder, gaps):
    """A study whose pretrained arm is ahead by `gaps`, a line of seeds for each budget."""
    fake_study(folder, Recipe(budgets=(100, 400)))
    study, rows = read_study(folder), np.arange(1000)
    said = []
    for labels, line in zip(study.budgets, gaps, strict=True):
        for seed, gap in enumerate(line):
            for arm, right in (("scratch", 500), ("pretrained", 500 + round(1000 * gap))):
                predicted = (rows < right).astype(int)
                run = RunKey(arm, "causal", labels, seed)
                said.append(Predictions(run, rows, np.ones_like(rows), predicted, np.eye(2)))
    return verdict(study, analyse(study, [], said))


def test_a_difference_that_only_all_budgets_show_is_told_as_that(tmp_path):
    found = constructed(tmp_path, [(0.06, 0.0, 0.03), (0.0, 0.06, 0.03)])
    assert found.claims_difference
    assert found.sentences[0].startswith("Over all label budgets pretraining adds 3.0 points")
    assert "is not clear: 100 (" in found.sentences[0]
    assert "within noise" not in found.sentences[0]


def test_the_budget_that_stands_out_is_told_from_the_one_that_does_not(tmp_path):
    found = constructed(tmp_path, [(0.06, 0.07, 0.08), (0.01, -0.01, 0.0)])
    assert found.sentences[0].startswith("With 100 labels pretraining adds 7.0 points")
    assert found.sentences[0].endswith("may be noise.")


def test_budgets_that_outweigh_each_other_claim_nothing(tmp_path):
    found = constructed(tmp_path, [(0.06, 0.06, 0.07), (-0.06, -0.07, -0.06)])
    assert not found.claims_difference
    assert "on average over all label budgets" in found.sentences[0]
    assert "opposite directions" in found.sentences[0]


def test_a_loss_is_told_as_a_cost(tmp_path):
    skill = {"scratch": (0.8, 0.2), "pretrained": (0.2, 0.2)}
    found = judged(tmp_path, skill=skill)
    assert found.claims_difference
    assert "pretraining costs" in found.sentences[0]
    assert not any("needs" in sentence for sentence in found.sentences)


def test_tfidf_is_told_also_where_it_wins(tmp_path):
    skill = {"scratch": (0.2, 0.2), "pretrained": (0.5, 0.2), "tfidf": (1.2, 0.2)}
    assert "points ahead with 1,600 labels" in judged(tmp_path, skill=skill).sentences[-1]


def test_one_seed_claims_nothing(tmp_path):
    found = judged(tmp_path, seeds=1)
    assert not found.claims_difference
    assert "--seeds 3" in found.sentences[0]


def test_without_both_arms_nothing_is_said_of_pretraining(tmp_path):
    found = judged(tmp_path, skill={"tfidf": (0.3, 0.2)})
    assert not found.claims_difference
    assert "nothing is said about pretraining" in found.sentences[0]


def test_one_budget_has_no_savings(tmp_path):
    found = judged(tmp_path, budgets=(400,))
    assert not any("needs all" in sentence for sentence in found.sentences)


def test_two_objectives_name_the_one_that_speaks(tmp_path):
    found = judged(tmp_path, objectives=("causal", "masked"))
    assert "causal pretraining" in found.sentences[0] or "masked pretraining" in found.sentences[0]


def test_an_unfinished_study_uses_the_seeds_that_both_arms_have(tmp_path):
    fake_study(tmp_path)
    study = read_study(tmp_path)
    said = [
        one
        for one in read_predictions(tmp_path)
        if not (one.run.arm == "pretrained" and one.run.seed == 2)
    ]
    found = analyse(study, read_measures(tmp_path), said)
    assert {test.seed for test in found.mcnemar} == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("seed_noise", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("row_noise", [0.2, 1.0])
def test_where_pretraining_cannot_help_twenty_studies_claim_it_at_most_twice(
    tmp_path, seed_noise, row_noise
):
    claims = 0
    for seed in range(20):
        found = judged(
            tmp_path / str(seed),
            seed=seed,
            skill={"scratch": (0.3, 0.2), "pretrained": (0.3, 0.2)},
            test_rows=300,
            seed_noise=seed_noise,
            row_noise=row_noise,
        )
        claims += found.claims_difference
    assert claims <= 2


def test_the_numbers_do_not_depend_on_the_order_of_the_files(tmp_path):
    fake_study(tmp_path)
    study, measures, said = (
        read_study(tmp_path),
        read_measures(tmp_path),
        read_predictions(tmp_path),
    )
    one = analyse(study, measures, said)
    other = analyse(dataclasses.replace(study), measures[::-1], said[::-1])
    assert one.gaps == other.gaps
    assert one.savings == other.savings
