"""The lab's dictionary gives the lab's ids."""

import pytest

from headstart.data.tokenizers import load_tokenizer
from headstart.errors import HeadstartError


@pytest.fixture
def tokenizer(tmp_path):
    (tmp_path / "dict.txt").write_text("▁un 9\n▁livre 7\ns 5\n", encoding="utf-8")
    return load_tokenizer(tmp_path / "dict.txt")


def test_specials_come_first_and_pieces_follow_in_the_files_order(tokenizer):
    assert (tokenizer.begin_id, tokenizer.pad_id, tokenizer.end_id) == (0, 1, 2)
    assert tokenizer.encode(["▁un ▁livre s"]) == [[4, 5, 6]]
    assert tokenizer.vocab_size == 7


def test_an_unknown_piece_is_oov(tokenizer):
    assert tokenizer.encode(["▁un ▁chat"]) == [[4, 3]]
    assert tokenizer.encode(["<pad> <sos> ▁un"]) == [[3, 3, 4]]
    assert tokenizer.decode([0, 4, 5, 6, 2, 1]) == "un livres"


def test_it_survives_saving(tokenizer, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    tokenizer.save(folder)
    assert load_tokenizer(folder).fingerprint == tokenizer.fingerprint


def test_several_models_next_to_the_dictionary_are_rejected(tokenizer, tmp_path):
    for name in ("a.model", "b.model"):
        (tmp_path / name).touch()
    with pytest.raises(HeadstartError, match=r"a\.model, b\.model"):
        load_tokenizer(tmp_path)
