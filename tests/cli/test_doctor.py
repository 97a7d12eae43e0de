"""`headstart doctor`."""


def test_json_tells_the_machine_and_the_choices(headstart_json):
    document = headstart_json("doctor", "--device", "cpu", "--threads", 1)
    assert document["machine"]["memory_bytes"] > 0
    assert document["choices"]["device"] == "cpu"
    assert document["choices"]["threads"] == 1
    assert document["choices"]["precision"]["precision"] in ("fp32", "bf16")


def test_the_page_says_why_a_precision_was_chosen(headstart):
    page = headstart("doctor").stdout
    assert "What Headstart uses" in page
    assert "times" in page


def test_a_device_that_does_not_exist_ends_with_code_2(headstart):
    result = headstart("doctor", "--device", "abacus")
    assert result.returncode == 2
    assert "fix:" in result.stderr


def test_the_cache_is_shown_with_its_size(tmp_path, monkeypatch, headstart_json):
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    (tmp_path / "stores").mkdir()
    (tmp_path / "stores" / "one.bin").write_bytes(b"12345")
    assert headstart_json("doctor")["cache"] == {"folder": str(tmp_path), "bytes": 5}
