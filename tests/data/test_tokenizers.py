"""Tokenizers are trained on any text or read as they are; no text becomes a special token."""

import copy
import json
import pickle

import pytest
import sentencepiece
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, processors

from headstart.data.tokenizers import (
    MIN_VOCAB_SIZE,
    SPECIAL_NAMES,
    Tokenizer,
    load_tokenizer,
    train_tokenizer,
)
from headstart.errors import HeadstartError

SPECIAL_WORDS = [name for names in SPECIAL_NAMES.values() for name in names]
BERT_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film", "good"]
# Characters around which GPT-2's pattern and ours could disagree.
TRICKY_CHARACTERS = "aZéßжҁ҂ñ家1²٣½'.,([-_ \n\t\r\x00\x1c\x85\xa0\u0301\u180e\u2028\u3000"
WORDS = ["don't", "we'll", "'tis", "film", "12,5", "3rd", "é", "...", "(", " ", "\n"]
TRICKY = st.text(st.sampled_from(TRICKY_CHARACTERS)) | st.lists(st.sampled_from(WORDS)).map("".join)


@given(text=st.text())
@example(text="two  spaces, a\ttab\r\nand \x85 \u2028 odd \x1c ones ")
@example(text="e\u0301 👩‍👩‍👧 \x00 \ufeff �")
def test_any_text_comes_back_unchanged(bpe, text):
    assert bpe.decode(bpe.encode([text])[0]) == text


@given(st.lists(st.sampled_from([*SPECIAL_WORDS, " ", "a"]) | st.text()).map("".join))
@example(" [MASK][PAD] [EOS]")
def test_no_text_becomes_a_special(bpe, text):
    assert bpe.specials.keys() == {"pad", "begin", "end", "mask", "separator"}
    assert set(bpe.specials.values()).isdisjoint(bpe.encode([text])[0])


@settings(max_examples=500)
@given(texts=st.lists(TRICKY | st.text(), max_size=4))
@example(texts=["He said:'twas  ''tis"])
def test_cached_ids_are_those_of_the_whole_text(bpe, texts):
    assert bpe.encode(texts) == bpe._encode_whole(texts)


def test_training_twice_gives_the_same_tokenizer_also_when_it_is_saved(sentences, tmp_path):
    first, second = (train_tokenizer(sentences, vocab_size=400) for _ in range(2))
    loaded = load_tokenizer(first.save(tmp_path))
    assert first.fingerprint == second.fingerprint == loaded.fingerprint
    assert loaded.encode(["a [MASK] film"]) == first.encode(["a [MASK] film"])
    assert loaded.mask_id == first.mask_id


def test_the_vocabulary_has_room_for_the_bytes_and_no_more_than_the_corpus_needs(sentences):
    with pytest.raises(HeadstartError, match="too small"):
        train_tokenizer(sentences, vocab_size=MIN_VOCAB_SIZE - 1)
    tokenizer = train_tokenizer(["ab"], vocab_size=1000)
    assert MIN_VOCAB_SIZE <= tokenizer.vocab_size < 1000
    assert tokenizer.decode(tokenizer.encode(["zebra"])[0]) == "zebra"


def test_a_foreign_file_keeps_its_specials_and_no_copy_reads_them_in_text(tmp_path):
    words = {word: number for number, word in enumerate(BERT_WORDS)}
    inner = tokenizers.Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.add_special_tokens(BERT_WORDS[:5])
    inner.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    inner.enable_truncation(2)
    inner.enable_padding(length=8)
    inner.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.specials == {"pad": 0, "begin": 2, "end": 3, "mask": 4, "separator": 3}
    assert (tokenizer.unknown_id, tokenizer.vocab_size) == (1, 7)
    for copied in (tokenizer, copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert copied.encode(["film [MASK] [SEP]"]) == [[5, 1, 1]]
        assert copied.fingerprint == tokenizer.fingerprint


def test_gpt2s_kind_of_json_has_an_end_and_no_pad():
    inner = tokenizers.Tokenizer(models.BPE({"a": 0, "Ġ": 1}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.add_special_tokens(["<|endoftext|>"])
    tokenizer = Tokenizer(inner)
    assert (tokenizer.specials, tokenizer.encode(["a a"])) == ({"end": 2}, [[0, 1, 0]])


def test_a_dictionary_with_a_sentencepiece_model_reads_plain_text(tmp_path, sentences, monkeypatch):
    """An unknown token, and a symbol that the dictionary lacks, are `<oov>`."""
    with (tmp_path / "some.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=file,
            vocab_size=110,
            user_defined_symbols=["<mask>"],
            minloglevel=2,
        )
    model = sentencepiece.SentencePieceProcessor(model_file=file.name)
    tokens = model.encode("The film", out_type=str)
    dictionary = "".join(f"{one} 1\n" for one in tokens)
    (tmp_path / "dict.txt").write_text(dictionary, encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path)
    ids = tokenizer.encode(["The film"])
    assert ids == tokenizer.encode([" ".join(tokens)]) == [[*range(4, 4 + len(tokens))]]
    assert 3 in tokenizer.encode(["The <mask> film 家"])[0]
    assert pickle.loads(pickle.dumps(tokenizer)).encode(["The film"]) == ids
    (tmp_path / "run").mkdir()
    tokenizer.save(tmp_path / "run")
    assert load_tokenizer(tmp_path / "run").fingerprint == tokenizer.fingerprint
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HeadstartError, match="sentencepiece is not installed") as error:
        load_tokenizer(tmp_path)
    assert "headstart[lab]" in error.value.fix


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"\xff\xfe"),
        ("dict.txt", b"one two three\n"),
        ("dict.txt", b"caf\xe9 1\n"),
        ("dict.txt", b"The 1\n"),  # with a model that is not one
        ("a.bin", b""),
    ],
)
def test_a_file_that_is_not_a_tokenizer_is_one_message(tmp_path, name, content):
    (tmp_path / "a.model").write_bytes(b"not a model")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HeadstartError) as caught:
        load_tokenizer(tmp_path / name)
    assert caught.value.where.startswith(str(tmp_path))
    assert caught.value.fix


GROWING = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 500}
ENDLESS = {"type": "Split", "pattern": {"Regex": "(a+)+(a+)+b"}}
ENDLESS |= {"behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(("part", "step"), [("pre_tokenizer", ENDLESS), ("normalizer", GROWING)])
def test_a_file_whose_steps_never_end_or_multiply_the_text_is_rejected(
    bpe, tmp_path, part, step, monkeypatch
):
    monkeypatch.setattr("headstart.data.tokenizers.CHECK_SECONDS", 3.0)
    path = bpe.save(tmp_path / "tokenizer.json")
    text = json.dumps(json.loads(path.read_text(encoding="utf-8")) | {part: step})
    path.write_text(text.replace('"Split"', '"\\u0053plit"'))  # JSON may spell a name with escapes
    with pytest.raises(HeadstartError, match="this tokenizer cannot be used"):
        load_tokenizer(path)
