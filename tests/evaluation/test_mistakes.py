"""The most confident mistakes come first."""

from headstart.evaluation.metrics import confident_mistakes

PROBABILITIES = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.05, 0.95], [0.4, 0.6]]


def test_only_mistakes_are_listed_the_most_confident_first():
    found = confident_mistakes(PROBABILITIES, [1, 1, 1, 0, 1])
    assert [mistake["row"] for mistake in found] == [3, 0, 2]
    assert found[0] == {"row": 3, "true": 0, "predicted": 1, "confidence": 0.95}


def test_among_equals_the_earlier_row_comes_first():
    found = confident_mistakes([[0.7, 0.3]] * 3, [1, 1, 1], count=2)
    assert [mistake["row"] for mistake in found] == [0, 1]
