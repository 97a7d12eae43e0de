"""Entities and their F1 equal those of seqeval."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval import metrics as reference
from seqeval.metrics.sequence_labeling import get_entities

from headstart.data.dataset import Sentences
from headstart.errors import HeadstartError
from headstart.evaluation.metrics import (
    Entity,
    class_table,
    count_entities,
    find_entities,
)
from headstart.tasks.tagging import Tagging

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
pairs_of_tags = st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1)
sentences = st.lists(pairs_of_tags, min_size=1, max_size=5)


def measured(true, predicted):
    """The metrics of a tagger with these predictions."""
    numbers = [[TAGS.index(tag) for tag in tags] for tags in true]
    rows = Sentences("x", [["word"] * len(tags) for tags in true], numbers, tuple(TAGS))
    scores = [np.eye(len(TAGS))[[TAGS.index(tag) for tag in tags]] for tags in predicted]
    found = Tagging(TAGS).row_scores(scores, rows)
    return {name: one.value for name, one in found.items()}


@settings(deadline=None)
@given(sentences)
def test_scores_are_seqevals(pairs):
    true = [[one for one, _ in sentence] for sentence in pairs]
    predicted = [[other for _, other in sentence] for sentence in pairs]
    kinds, counts = count_entities(true, predicted)
    found, table = measured(true, predicted), class_table(kinds, *counts.sum(axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ours: an empty class scores 0; it says so aloud
        assert found["precision"] == pytest.approx(reference.precision_score(true, predicted))
        assert found["recall"] == pytest.approx(reference.recall_score(true, predicted))
        assert found["f1"] == pytest.approx(reference.f1_score(true, predicted))
        if table:
            each = reference.f1_score(true, predicted, average=None)
            assert [row["f1"] for row in table] == pytest.approx(list(each))
            macro = reference.f1_score(true, predicted, average="macro")
            assert found["macro_f1"] == pytest.approx(macro)


@pytest.mark.parametrize("tag", ["PER", "X-PER", "B-", "B", ""])
def test_a_tag_that_is_not_iob2_is_rejected_by_name(tag):
    with pytest.raises(HeadstartError, match="is not IOB2"):
        find_entities([tag])


@given(st.lists(st.sampled_from([*TAGS, "E-PER", "S-PER", "E-LOC", "S-LOC"])))
def test_entities_are_seqevals(tags):
    # seqeval's ends are the last token, ours the one after it.
    expected = [Entity(kind, start, last + 1) for kind, start, last in get_entities(tags)]
    assert find_entities(tags) == expected


def test_bilou_is_iobes_in_other_letters():
    tags = ["B-PER", "I-PER", "E-PER", "S-LOC", "S-LOC", "O"]
    other = [tag.replace("E-", "L-").replace("S-", "U-") for tag in tags]
    assert (
        find_entities(other) == find_entities(tags) == [("PER", 0, 3), ("LOC", 3, 4), ("LOC", 4, 5)]
    )
