"""Span answers are scored as in SQuAD, in any language."""

import pytest

from headstart.evaluation.metrics import exact_match, span_f1


@pytest.mark.parametrize(
    ("predicted", "answer", "match", "score"),
    [
        ("Denver Broncos", "denver broncos.", 1, 1),
        ("Denver", "Denver Broncos", 0, 2 / 3),
        ("Carolina", "Denver Broncos", 0, 0),
        ("to to be", "to be", 0, 0.8),  # a word counts as often as both have it
        ("the Broncos", "Broncos", 0, 2 / 3),  # SQuAD's script would drop the article
        ("", "Denver", 0, 0),
        ("« L'Étranger »", "l'étranger", 1, 1),
        ("STRASSE", "Straße", 1, 1),
        ("東京都", "東京", 0, 0.8),
        ("ｆｕｌｌ ｗｉｄｔｈ", "full width", 1, 1),
    ],
)
def test_scores_by_hand(predicted, answer, match, score):
    assert exact_match(predicted, [answer]) == match
    assert span_f1(predicted, [answer]) == pytest.approx(score)


@pytest.mark.parametrize("answers", [[], [""]])
def test_saying_nothing_is_right_where_there_is_no_answer(answers):
    assert exact_match("", answers) == span_f1("", answers) == 1
    assert exact_match("Denver", answers) == span_f1("Denver", answers) == 0
