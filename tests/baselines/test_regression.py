"""What a baseline refuses to learn from."""

import pytest

from headstart.baselines.regression import check_labels
from headstart.errors import HeadstartError


def test_one_class_is_refused():
    with pytest.raises(HeadstartError, match="2 training rows have 1 class"):
        check_labels(["a", "b"], ["good", "good"])


def test_no_rows_are_refused():
    with pytest.raises(HeadstartError, match="0 training rows have 0 classes"):
        check_labels([], [])


def test_as_many_labels_as_texts_are_needed():
    with pytest.raises(ValueError, match="2 texts and 1 labels"):
        check_labels(["a", "b"], ["good"])
