"""Errors say what, where and how to fix it, have a code, and survive a trip between processes."""

import pickle

from headstart.errors import HeadstartError


def test_an_error_names_what_where_and_fix():
    error = HeadstartError("no rows", where="a.csv", fix="add some")
    assert str(error) == "no rows\n  where: a.csv\n  fix:   add some"


def test_an_error_survives_pickling_with_its_code():
    error = HeadstartError("no rows", where="a.csv", fix="add some", code="empty")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.code == "empty"


def test_an_error_as_a_document_has_its_code():
    document = {"what": "no rows", "where": None, "fix": None, "code": "invalid"}
    assert HeadstartError("no rows").document() == document
