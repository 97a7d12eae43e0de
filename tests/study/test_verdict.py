"""The verdict claims what the numbers show, and nothing else."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from headstart.study.analysis import Analysis, make_curves
from headstart.study.results import make_results, run_predictions
from headstart.study.verdict import recommend, verdict
from tests.study.fake_study import ABOUT, Recipe, facts_of, fake_results

ALIKE = {"scratch": (0.3, 0.2), "pretrained": (0.3, 0.2), "tfidf": (0.4, 0.2)}
COOC_ALONE = {"scratch": (0.1, 0.2), "cooc-init": (0.5, 0.2), "pretrained": (0.5, 0.2)}
COOC = "co-occurrence initialisation"


def judge(results):
    """Return the verdict and the effects that it claims."""
    analysis = Analysis(results)
    steps = analysis.steps[analysis.objective] if analysis.steps else []
    claims = tuple(step.effect for step in steps if step.significant)
    return SimpleNamespace(**vars(verdict(analysis)), claims=claims)


def verdict_of(**recipe):
    return judge(fake_results(Recipe(**recipe)))


def constructed(gaps, **about):
    """A study whose pretrained arm is better by `gaps`, (budgets, seeds)."""
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
    found = verdict_of(test_rows=3000, seed_noise=0.01)
    assert found.claims == (COOC, "pretraining")
    assert found.sentences[0].startswith("Pretraining on your text raises test accuracy: ")
    assert "points better with 100 labels (95 % CI " in found.sentences[0]


def test_what_cooccurrence_gives_is_not_credited_to_pretraining():
    found = verdict_of(skill=COOC_ALONE)
    assert found.claims == (COOC,)
    assert "raises" not in found.sentences[0]


def test_a_difference_that_is_not_shown_is_not_claimed():
    found = verdict_of(skill=ALIKE)
    assert found.claims == ()
    assert found.sentences[0].startswith("This study does not show whether pretraining on your")


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
    found = verdict_of(skill={"scratch": (0.8, 0.2), "pretrained": (0.2, 0.2)})
    assert "lowers test accuracy" in found.sentences[0]
    low, high = found.sentences[0].split("95 % CI ")[1].partition(")")[0].split(" to ")
    assert 0 < float(low) < float(high)


def test_one_seed_claims_nothing():
    found = verdict_of(seeds=1)
    assert found.claims == ()
    assert "--seeds 3" in found.sentences[0]


def test_without_both_arms_nothing_is_said_about_pretraining():
    found = verdict_of(skill={"tfidf": (0.3, 0.2)})
    assert found.claims == ()
    assert "says nothing about pretraining" in found.sentences[0]


NETWORK = {"seconds": 60.0, "test_seconds": 3.2, "bytes": 24_000_000, "workers": 2, "threads": 1}
TFIDF = {"seconds": 2.0, "test_seconds": 0.08, "bytes": 600_000, "workers": 2, "threads": 1}
STACK = {**NETWORK, "seconds": 360.0, "test_seconds": 3.28, "bytes": 24_600_000}
ARMS = {"pretrained": (0.6, 0.2), "tfidf": (0.6, 0.2), "stack": (0.62, 0.2)}
CHOSEN = {"arm": "stack", "objective": "causal"}
TAKEN = {"best": CHOSEN, "saved": CHOSEN}
COSTS = {"pretrained": NETWORK, "tfidf": TFIDF, "stack": STACK}


def study(**recipe):
    recipe = {"skill": ARMS, "facts": COSTS, "about": TAKEN, "test_rows": 800, **recipe}
    return Analysis(fake_results(Recipe(**recipe)))


def test_the_recommendation_has_the_expected_score_its_interval_and_its_cost():
    skill = {**ARMS, "tfidf": (-0.6, 0.1)}
    found = recommend(study(skill=skill), Path("mine"))
    assert found.sentences[0].startswith("Take stack: expect ")
    for words in ("% accuracy on new texts (95 % CI ", "6.0 min", "24.6 MB", "4.1 ms per text"):
        assert words in found.sentences[0]
    assert not any("TF-IDF" in sentence for sentence in found.sentences)  # significantly worse
    assert found.command.startswith("headstart predict mine/best ")


def test_the_majority_class_is_mentioned_where_the_interval_holds_its_accuracy():
    """With 20 of 30 rows of one class, an accuracy of 68 % is not informative."""
    for start, mentioned in ((-2.0, True), (2.0, False)):
        skill = dict.fromkeys(ARMS, (start, 0.0))
        sentences = recommend(study(skill=skill), Path("mine")).sentences
        assert any("always predicting “" in one for one in sentences) == mentioned


def test_rows_that_selected_the_arm_and_judge_it_are_mentioned():
    for shared in (False, True):
        found = recommend(study(about={**TAKEN, "shared_test": shared}), Path("mine"))
        assert any("same rows selected this arm" in s for s in found.sentences) == shared


def test_a_cheaper_arm_that_does_not_differ_is_named_and_the_selected_one_is_recommended():
    """The recommended arm is selected without the test part."""
    found = recommend(study(seed_noise=0.0, row_noise=0.05), Path("mine"))
    assert found.series == ("stack", "causal")
    assert any("cannot be exported" in s for s in found.sentences)
    assert any("TF-IDF" in s and "41 times smaller" in s for s in found.sentences[1:])


def test_pairs_beyond_the_verdict_are_corrected_together():
    """Among many equally good arms, one seems better in an uncorrected interval."""
    skill = dict.fromkeys(("tfidf", "nb", "cooc-lr", "frozen", "scratch", "pretrained"), (0.4, 0.2))
    single = corrected = 0
    for seed in range(30):
        recipe = Recipe(seed=seed, skill=skill, test_rows=200, budgets=(100, 400))
        gaps = Analysis(fake_results(recipe)).differences.values()
        single += any(gap.interval.excludes(0) for gap in gaps)
        corrected += any(gap.significant for gap in gaps)
    assert corrected <= 5  # of 30: at most three are expected
    assert corrected < single


def test_the_mean_of_a_curve_and_its_interval_end_at_the_same_epoch():
    """Both end at the last epoch that all seeds reached."""
    lines = {
        (("scratch", "causal"), 100): {0: [0.5, 0.6, 0.7], 1: [0.5, 0.6]},
        (("pretrained", "causal"), 100): {0: [0.6, 0.8, 0.9], 1: [0.7, 0.8, 0.85]},
    }
    short, long = make_curves(lines)
    assert [len(short.mean), len(long.mean)] == [2, 3]
    assert all(one.bounded for one in (*short.mean, *long.mean))
    assert short.seeds[0] == [0.5, 0.6, 0.7]
