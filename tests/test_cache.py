"""Where things that can be made again are kept."""

from pathlib import Path

from headstart.files import cache_folder, user_folder


def test_files_are_in_the_users_folders_or_in_one_of_your_own(monkeypatch):
    for name in ("HEADSTART_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache/headstart"
    assert user_folder("data") == Path.home() / ".local/share/headstart"
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    assert user_folder("data") == Path("/elsewhere/headstart")
    monkeypatch.setenv("HEADSTART_CACHE", "~/elsewhere")
    assert cache_folder() == Path.home() / "elsewhere"
