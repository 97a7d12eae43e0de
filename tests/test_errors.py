"""Errors of the system and of libraries become messages with a place and a fix."""

import errno
import json
import pickle
import tomllib

import pytest
from safetensors import SafetensorError

from headstart.errors import HeadstartError, explain


def raised(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("error", "what", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full", "disk"),
        (
            SafetensorError("I/O error: No space left on device (os error 28)"),
            "the disk is full",
            "disk",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/data"),
            "no permission",
            "permission",
        ),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300), "name is too long", "path"),
        (OSError(errno.ENXIO, "No such device", "/dev/x"), "No such device", "disk"),
        (MemoryError(), "not enough memory", "memory"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
            "enough memory",
            "memory",
        ),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply", "damaged"),
        (raised("ä".encode, "ascii"), "does not fit its encoding", "encoding"),
        (raised(json.loads, "{"), "damaged", "damaged"),
        (raised(tomllib.loads, "a = "), "damaged", "damaged"),
        (RuntimeError("Could not determine home directory."), "no home folder", "invalid"),
        (Exception("data did not match any variant of untagged enum"), "did not match", "invalid"),
    ],
)
def test_an_error_from_outside_has_a_cause_a_place_a_fix_and_a_code(error, what, code):
    told = explain(error, where="here")
    assert isinstance(told, HeadstartError)
    assert what in told.what
    assert told.where is not None
    assert told.fix
    assert told.code == code


def test_the_place_is_the_one_that_the_error_names():
    error = PermissionError(errno.EACCES, "Permission denied", "/data/a.csv")
    assert explain(error, where="elsewhere").where == "/data/a.csv"


@pytest.mark.parametrize("error", [TypeError("x"), KeyError("x"), AssertionError(), IndexError()])
def test_a_bug_of_ours_is_not_explained_away(error):
    assert explain(error) is None


def test_a_reader_that_closed_its_pipe_is_no_problem_to_explain():
    assert explain(BrokenPipeError(errno.EPIPE, "Broken pipe")) is None


def test_an_error_survives_pickling_with_its_code():
    error = HeadstartError("no rows", where="a.csv", fix="add some", code="empty")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.code == "empty"
