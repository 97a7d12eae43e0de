"""The command line's manners, the same for every command."""


def test_version_is_printed(headstart):
    result = headstart("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("headstart 0.")


def test_unknown_command_ends_with_code_2_and_no_traceback(headstart):
    result = headstart("fly")
    assert result.returncode == 2
    assert "fly" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
