"""Costs, alternatives and curves, from the results table."""

from pathlib import Path

from headstart.study.analysis import Analysis, make_curves
from headstart.study.verdict import recommend
from tests.study.fake_study import Recipe, fake_results

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
    files = "--input texts.csv --output predictions.csv"
    assert found.command == f"headstart predict mine/best {files}"


def test_the_majority_class_is_mentioned_where_the_interval_holds_its_accuracy():
    """30 rows, 20 of one class: an accuracy of 68 % says nothing."""
    for start, mentioned in ((-2.0, True), (2.0, False)):
        skill = dict.fromkeys(ARMS, (start, 0.0))
        sentences = recommend(study(skill=skill), Path("mine")).sentences
        assert any("always predicting “" in one for one in sentences) == mentioned


def test_rows_that_selected_the_arm_and_judge_it_are_mentioned():
    for shared in (False, True):
        found = recommend(study(about={**TAKEN, "shared_test": shared}), Path("mine"))
        assert any("expect slightly less" in s for s in found.sentences) == shared


def test_a_cheaper_arm_that_does_not_differ_is_named_and_the_selected_one_is_recommended():
    """Which arm is taken is decided without the test part."""
    found = recommend(study(seed_noise=0.0, row_noise=0.05), Path("mine"))
    assert found.series == ("stack", "causal")
    assert any("TF-IDF" in s and "41 times smaller" in s for s in found.sentences[1:])


def test_pairs_beyond_the_verdict_are_corrected_together():
    """Of many arms that are alike, one looks better in a single interval."""
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
    """Bands stopped where the first seed did, and lines went on."""
    lines = {
        (("scratch", "causal"), 100): {0: [0.5, 0.6, 0.7], 1: [0.5, 0.6]},
        (("pretrained", "causal"), 100): {0: [0.6, 0.8, 0.9], 1: [0.7, 0.8, 0.85]},
    }
    short, long = make_curves(lines)
    assert [len(short.mean), len(long.mean)] == [2, 3]
    assert all(one.bounded for one in (*short.mean, *long.mean))
    assert short.seeds[0] == [0.5, 0.6, 0.7]
