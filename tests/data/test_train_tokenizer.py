"""Tokenizers are learned from any stream of texts, the same way every time."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headstart.data.tokenizers import MIN_VOCAB_SIZE, SPECIAL_NAMES, load_tokenizer, train_tokenizer
from headstart.errors import HeadstartError

SPECIAL_WORDS = [name for names in SPECIAL_NAMES.values() for name in names]
texts_with_specials = st.lists(st.sampled_from([*SPECIAL_WORDS, " ", "a"]) | st.text()).map("".join)


@given(text=st.text())
@example(text="two  spaces, a\ttab\r\nand \x85 \u2028 odd \x1c ones ")
@example(text="e\u0301 👩‍👩‍👧 \x00 \ufeff �")
def test_any_text_comes_back_unchanged(bpe, text):
    assert bpe.decode(bpe.encode([text])[0]) == text


@given(text=texts_with_specials)
@example(text="[MASK]")
@example(text=" [MASK][PAD] [EOS]")
def test_no_text_becomes_a_special(bpe, text):
    assert bpe.specials.keys() == {"pad", "begin", "end", "mask", "separator"}
    assert set(bpe.specials.values()).isdisjoint(bpe.encode([text])[0])


def test_a_token_that_is_part_of_a_character_is_shown_as_one(bpe):
    assert "".join(bpe.tokenize("a🐈")) == "a����"


def test_training_twice_gives_the_same_tokenizer(sentences):
    first, second = (train_tokenizer(sentences, vocab_size=400) for _ in range(2))
    assert first.fingerprint == second.fingerprint


def test_a_saved_tokenizer_is_the_same_when_loaded(bpe, tmp_path):
    loaded = load_tokenizer(bpe.save(tmp_path))
    assert loaded.fingerprint == bpe.fingerprint
    assert loaded.encode(["a [MASK] film"]) == bpe.encode(["a [MASK] film"])
    assert loaded.mask_id == bpe.mask_id


def test_a_vocabulary_without_room_for_the_bytes_is_refused(sentences):
    with pytest.raises(HeadstartError, match="too small"):
        train_tokenizer(sentences, vocab_size=MIN_VOCAB_SIZE - 1)


def test_a_tiny_corpus_gives_a_smaller_vocabulary_than_asked_for():
    tokenizer = train_tokenizer(["ab"], vocab_size=1000)
    assert MIN_VOCAB_SIZE <= tokenizer.vocab_size < 1000
    assert tokenizer.decode(tokenizer.encode(["zebra"])[0]) == "zebra"
