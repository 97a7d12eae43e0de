"""The sentences say what the numbers say, and nothing where there is nothing."""

from types import SimpleNamespace

import numpy as np

from headstart.study.analysis import Analysis
from headstart.study.results import make_results, run_predictions
from headstart.study.verdict import verdict
from tests.study.fake_study import ABOUT, Recipe, facts_of, fake_results

ALIKE = {"scratch": (0.3, 0.2), "pretrained": (0.3, 0.2), "tfidf": (0.4, 0.2)}
COOC_ALONE = {"scratch": (0.1, 0.2), "cooc-init": (0.5, 0.2), "pretrained": (0.5, 0.2)}
COOC = "co-occurrence initialisation"


def judge(results):
    """The verdict, and the effects that its study claims."""
    analysis = Analysis(results)
    steps = analysis.steps[analysis.objective] if analysis.steps else []
    claims = tuple(step.effect for step in steps if step.significant)
    return SimpleNamespace(**vars(verdict(analysis)), claims=claims)


def judged(**recipe):
    return judge(fake_results(Recipe(**recipe)))


def constructed(gaps, **about):
    """A study whose pretrained arm is ahead by `gaps`, a line of seeds for each budget."""
    budgets, rows, parts = [100, 400], np.arange(1000), []
    for labels, line in zip(budgets, gaps, strict=True):
        for seed, gap in enumerate(line):
            for arm, correct in (("scratch", 500), ("pretrained", 500 + round(1000 * gap))):
                run = {"arm": arm, "objective": "causal", "labels": labels, "seed": seed}
                scores = np.where(rows < correct, [[0.0], [1.0]], [[1.0], [0.0]]).T
                gold = np.ones(1000, dtype=int)
                parts.append(run_predictions(run, rows, scores, gold))
    named = [{"row": int(row), "text": "", "gold": "b"} for row in rows]
    facts = facts_of(budgets, ("scratch", "causal"), ("pretrained", "causal"))
    about = {**ABOUT, **facts, **about}
    return judge(make_results(about, [], parts, named))


def test_a_clear_gain_is_told_with_its_interval_and_what_it_comes_from():
    found = judged(test_rows=3000, seed_noise=0.01)
    assert found.claims == (COOC, "pretraining")
    assert found.sentences[0].startswith("Pretraining on your text raises test accuracy: ")
    assert "points better with 100 labels (95 % CI " in found.sentences[0]
    assert "points better with all 1,600 labels (95 % CI " in found.sentences[0]
    assert found.sentences[1].startswith("Compared with scratch, co-occurrence init is ")
    assert found.sentences[2].startswith("Compared with TF-IDF, pretrained is ")


def test_what_cooccurrence_gives_is_not_credited_to_pretraining():
    found = judged(skill=COOC_ALONE)
    assert found.claims == (COOC,)
    assert "raises" not in found.sentences[0]


def test_a_difference_that_is_not_shown_is_not_claimed():
    found = judged(skill=ALIKE)
    assert found.claims == ()
    assert found.sentences[0].startswith("This study does not show whether pretraining on your")
    assert "or more (power 80 %)" in found.sentences[1]


def test_arms_that_are_certainly_alike_are_called_so():
    found = constructed([(0.001, 0.002, 0.0), (0.001, 0.0, -0.001)])
    assert "makes no difference here" in found.sentences[0]


def test_a_difference_that_only_all_budgets_show_is_told_as_that():
    found = constructed([(0.05, 0.0, 0.025), (0.0, 0.05, 0.025)])
    assert found.claims == ("pretraining",)
    assert "on average over all label budgets" in found.sentences[0]


def test_the_budget_that_is_significant_is_told_apart_from_the_other():
    found = constructed([(0.06, 0.07, 0.08), (0.01, -0.01, 0.0)])
    assert "7.0 points better with 100 labels" in found.sentences[0]
    assert "and as good with 400 labels" in found.sentences[0]


def test_budgets_that_outweigh_each_other_claim_nothing():
    found = constructed([(0.06, 0.06, 0.07), (-0.06, -0.07, -0.06)])
    assert found.claims == ()


def test_a_loss_is_told_with_the_ends_of_its_interval_in_order():
    found = judged(skill={"scratch": (0.8, 0.2), "pretrained": (0.2, 0.2)})
    assert "lowers test accuracy" in found.sentences[0]
    low, high = found.sentences[0].split("95 % CI ")[1].partition(")")[0].split(" to ")
    assert 0 < float(low) < float(high)


def test_one_seed_claims_nothing():
    found = judged(seeds=1)
    assert found.claims == ()
    assert "--seeds 3" in found.sentences[0]


def test_without_both_arms_nothing_is_said_about_pretraining():
    found = judged(skill={"tfidf": (0.3, 0.2)})
    assert found.claims == ()
    assert "says nothing about pretraining" in found.sentences[0]
