"""Pages that are generated are current."""

from tests.pages import load_script


def test_the_reference_page_is_current():
    reference = load_script("docs/reference.py")
    written = reference.PAGE.read_text(encoding="utf-8")
    assert written == reference.reference_page(), "run: python docs/reference.py"
