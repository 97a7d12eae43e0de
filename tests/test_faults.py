"""If any disk operation of a command fails, there is one message, and a second run succeeds.

A few operations of each command; `make torture` takes `FAULTS` of them.
"""

import os

import pytest

from tests.fault_cases import CASES, survive, uninterrupted, write_inputs

pytestmark = pytest.mark.slow

FAULTS = {"pretrain": 6, "finetune": 6, "compare": 1, "predict": 6}  # how many are tried here


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return write_inputs(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("name", CASES)
def test_a_disk_that_refuses_costs_one_message_and_no_bit(inputs, tmp_path, name):
    case = CASES[name]
    expected, disk = uninterrupted(case, inputs, tmp_path / "whole")
    total = len(disk.log)
    count = min(total, int(os.environ.get("FAULTS", FAULTS[name])))
    for number in range(count):
        nth = 1 + (2 * number + 1) * total // (2 * count)  # the middle of each of `count` parts
        survive(case, inputs, tmp_path / str(nth), expected, nth, stays=bool(number % 2))
