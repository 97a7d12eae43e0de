"""Broken files, damaged folders and wild options: some cases of each; `make fuzz` tries more."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz_properties import PROPERTIES

pytestmark = pytest.mark.slow

EXAMPLES = {"reading_any_file": 40, "predicting_any_file": 30}


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_promise_holds_for_what_the_grammar_builds(name):
    more = int(os.environ.get("CASES", 0))  # new ones each time

    @settings(
        max_examples=more or EXAMPLES.get(name, 16),
        derandomize=not more,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def holds(data):
        PROPERTIES[name](data)

    holds()
