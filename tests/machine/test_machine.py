"""Device, threads and precision follow from the machine."""

import os

import pytest
import torch

from headstart import machine
from headstart.errors import HeadstartError
from headstart.machine import (
    choose_threads,
    pick_device,
    usable_cores,
)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a cuda device")
def test_a_device_that_is_not_here_is_rejected_with_those_that_are():
    with pytest.raises(HeadstartError) as error:
        pick_device("cuda")
    assert "cpu" in error.value.fix


@pytest.mark.parametrize("name", ["abacus", "meta", "cpu:x"])
def test_a_device_that_does_not_exist_is_rejected(name):
    with pytest.raises(HeadstartError, match=f"no device called '{name}'"):
        pick_device(name)


def test_threads_never_exceed_the_usable_cores():
    assert 1 <= choose_threads() <= usable_cores()
    assert choose_threads(7) == 7


@pytest.mark.parametrize(("worthwhile", "expected"), [(0.0, "bf16"), (1e9, "fp32")])
def test_bf16_is_chosen_only_where_it_pays(monkeypatch, worthwhile, expected):
    monkeypatch.setattr(machine, "WORTHWHILE", worthwhile)
    choice = machine.choose_precision(torch.device("cpu"))
    assert choice["precision"] == expected
    assert choice["why"]


def test_amx_is_turned_off_where_a_bf16_product_ends_the_process(monkeypatch, tmp_path):
    monkeypatch.delenv(machine.ISA, raising=False)
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})
    monkeypatch.setattr(machine, "_TRIAL", "import os; os.abort()")
    machine.make_bf16_safe.__wrapped__()
    assert os.environ[machine.ISA] == machine.WITHOUT_AMX
    monkeypatch.setattr(machine, "_TRIAL", "raise SystemExit('not tried twice')")
    assert not machine._amx_works()
