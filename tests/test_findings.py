"""Every finding names a test that exists, and the page shows the table as it is."""

import ast

import pytest

from tests.findings import PAGE, ROOT, printed, read_tables

FINDINGS = [one for findings in read_tables().values() for one in findings]


@pytest.mark.parametrize("test", sorted({one.test for one in FINDINGS}))
def test_a_named_test_exists(test):
    file, _, name = test.partition("::")
    statements = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    assert name in {one.name for one in statements if isinstance(one, ast.FunctionDef)}


def test_the_page_has_the_table():
    assert printed() in PAGE.read_text(encoding="utf-8")


def test_no_row_is_listed_twice():
    for findings in read_tables().values():
        rows = [one.row for one in findings]
        assert len(rows) == len(set(rows))
