"""Broken files, damaged folders and wild options: some cases of each here, more in `make fuzz`."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz_properties import PROPERTIES

pytestmark = pytest.mark.slow

EXAMPLES = {"reading_any_file": 40, "predicting_any_file": 30, "using_a_damaged_cache": 6}


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_promise_holds_for_what_the_grammar_builds(name):
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

    @settings(max_examples=EXAMPLES.get(name, 16), derandomize=True, suppress_health_check=slow)
    @given(st.data())
    def holds(data):
        PROPERTIES[name](data)

    holds()
