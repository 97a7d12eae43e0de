"""Presets are found by name."""

import pytest

from headstart.errors import HeadstartError
from headstart.model.presets import (
    preset,
)


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(HeadstartError, match="the presets are lab, small, bert, gpt2"):
        preset("tiny")
