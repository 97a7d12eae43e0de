"""Where things that can be made again are kept."""

import sys
from pathlib import Path

import pytest

from headstart.files import cache_folder, user_folder

HOME = Path.home()


@pytest.mark.parametrize(
    ("system", "cache", "data"),
    [
        ("linux", HOME / ".cache/headstart", HOME / ".local/share/headstart"),
        (
            "darwin",
            HOME / "Library/Caches/headstart",
            HOME / "Library/Application Support/headstart",
        ),
        ("win32", HOME / "AppData/Local/headstart/Cache", HOME / "AppData/Local/headstart"),
    ],
)
def test_files_are_where_the_system_keeps_them(system, cache, data, monkeypatch):
    for name in ("HEADSTART_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", system)
    assert cache_folder() == cache
    assert user_folder("data") == data


def test_a_place_of_your_own_can_be_named(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    assert user_folder("data") == Path("/elsewhere/headstart")
    monkeypatch.setenv("HEADSTART_CACHE", "~/elsewhere")
    assert cache_folder() == Path.home() / "elsewhere"
