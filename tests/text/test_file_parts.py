"""Parts come from their files; what has none is cut from the training rows."""

import pytest

from headstart.errors import HeadstartError
from headstart.text.checking.splits import FileParts, cut_parts, given_parts
from headstart.text.reading.sources import open_file

CUT = FileParts("rest", "cut validation", "cut test")


def parts(validation=None, test=None):
    """What becomes of the training rows "whole", and whether a test part was cut."""
    asked = []

    def cut(with_test):
        asked.append(with_test)
        return CUT if with_test else FileParts("rest", "cut validation", None)

    found = given_parts(
        "whole",
        str.upper,
        validation=validation,
        test=test,
        cut=cut,
        texts=list,
        pick=lambda part, rows: part,
        drops_overlap=False,
    )
    return (found.train, found.validation, found.test), asked


def test_without_files_both_parts_are_cut():
    assert parts() == (("rest", "cut validation", "cut test"), [True])


def test_a_test_file_leaves_only_validation_to_be_cut():
    assert parts(test="t") == (("rest", "cut validation", "T"), [False])


def test_a_validation_file_leaves_the_training_rows_whole():
    assert parts(validation="v") == (("whole", "V", None), [])
    assert parts(validation="v", test="t") == (("whole", "V", "T"), [])


def test_too_few_rows_to_cut_are_named():
    with pytest.raises(HeadstartError, match="1 sentences are too few") as error:
        cut_parts("name", ["one"], list, seed=0, with_test=True, of="sentences")
    assert "--validation FILE" in error.value.fix


def test_the_cut_parts_have_no_text_in_common():
    texts = [f"text {number}" for number in range(100)]
    found = cut_parts(
        "name", texts, lambda part: part.texts, seed=0, with_test=True, of="sentences"
    )
    assert sorted(found.train + found.validation + found.test) == sorted(texts)


def test_a_missing_file_is_refused_with_what_to_name(tmp_path):
    with pytest.raises(HeadstartError, match="there is no file") as error:
        open_file(str(tmp_path / "none"), "text", fix="name a CoNLL file")
    assert error.value.fix == "name a CoNLL file"
