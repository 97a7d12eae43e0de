"""`headstart doctor`."""


def test_the_machine_the_choices_and_the_cache_are_shown(
    headstart, headstart_json, tmp_path, monkeypatch
):
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    (tmp_path / "one.bin").write_bytes(b"12345")
    document = headstart_json("doctor", "--device", "cpu", "--threads", 1)
    assert document["machine"]["memory_bytes"] > 0
    assert (document["choices"]["device"], document["choices"]["threads"]) == ("cpu", 1)
    assert document["choices"]["precision"]["precision"] in ("fp32", "bf16")
    assert document["cache"]["folder"] == str(tmp_path)
    assert document["cache"]["bytes"] >= 5
    result = headstart("doctor", "--device", "abacus")
    assert (result.returncode, "fix:" in result.stderr) == (2, True)
