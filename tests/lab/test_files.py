"""The lab's files are read as they are."""

import pytest

from headstart.data.corpus import read_corpus
from headstart.data.readers import join_tokens
from headstart.data.splits import read_dataset
from headstart.errors import HeadstartError


@pytest.fixture
def lab(write):
    train = [f"▁le ▁livre ▁numéro ▁{n} ▁est ▁bon {'!' * n}" for n in range(4)]
    write("lab/train.review.spm", "\n".join(train) + "\n")
    write("lab/train.label", "0\n1\n0\n1\n")
    write("lab/valid.review.spm", "▁un ▁autre\n")
    write("lab/valid.label", "1\n")
    return write("lab/dict.txt", "▁le 10\n▁livre 3\n").parent


def test_text_comes_back_by_joining_the_pieces():
    assert join_tokens("▁C ' est ▁l ' é té .") == "C'est l'été."


def test_a_folder_gives_train_and_validation(lab):
    splits = read_dataset(lab)
    assert splits.train.texts[1] == "le livre numéro 1 est bon!"
    assert splits.train.labels == [0, 1, 0, 1]
    assert splits.validation.texts == ["un autre"]
    assert splits.test is None


def test_as_a_corpus_only_the_training_part_is_read(lab):
    assert len(list(read_corpus(lab))) == 4


def test_fewer_labels_than_texts_are_an_error(lab):
    (lab / "train.label").write_text("0\n1\n")
    with pytest.raises(HeadstartError) as error:
        read_dataset(lab)
    assert "train.label" in error.value.where


def test_missing_labels_are_an_error(lab):
    (lab / "valid.label").unlink()
    with pytest.raises(HeadstartError, match=r"no file .*valid\.label"):
        read_dataset(lab)
