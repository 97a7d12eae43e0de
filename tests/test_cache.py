"""Where things that can be made again are kept."""

from pathlib import Path

from platformdirs import user_cache_path

from headstart.files import cache_folder


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch):
    monkeypatch.delenv("HEADSTART_CACHE")
    assert cache_folder() == user_cache_path("headstart", appauthor=False)
    assert cache_folder().parts.count("headstart") == 1


def test_a_place_of_your_own_can_be_named(monkeypatch):
    monkeypatch.setenv("HEADSTART_CACHE", "~/elsewhere")
    assert cache_folder() == Path.home() / "elsewhere"
