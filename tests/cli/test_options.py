"""Words on the command line that several commands read alike."""

import pytest

from headstart.cli.options import read_amounts
from headstart.errors import HeadstartError


@pytest.mark.parametrize("written", ["0", "many", "1M,,2M", "-3k", ""])
def test_what_is_no_amount_says_how_to_write_one(written):
    with pytest.raises(HeadstartError, match="is no number of tokens"):
        read_amounts(written)


@pytest.mark.parametrize(
    ("written", "amounts"),
    [("500000", [500_000]), ("0.5M", [500_000]), ("2M, 1000k", [1_000_000, 2_000_000])],
)
def test_amounts_are_read_with_and_without_a_unit(written, amounts):
    assert read_amounts(written) == amounts
