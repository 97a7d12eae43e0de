"""Errors say what, where and how to fix it, and survive a trip between processes."""

import pickle

from headstart.errors import HeadstartError


def test_an_error_names_what_where_and_fix():
    error = HeadstartError("no rows", where="a.csv", fix="add some")
    assert str(error) == "no rows\n  where: a.csv\n  fix:   add some"


def test_an_error_survives_pickling():
    error = HeadstartError("no rows", where="a.csv", fix="add some")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
