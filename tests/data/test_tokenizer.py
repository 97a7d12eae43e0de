"""Tokenizers that people already have are read as they are."""

import copy
import json
import pickle

import pytest
import sentencepiece
import tokenizers
from tokenizers import models, pre_tokenizers, processors

from headstart.data.tokenizers import Tokenizer, load_tokenizer
from headstart.errors import HeadstartError

BERT_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film", "good"]


@pytest.fixture
def bert_file(tmp_path):
    inner = tokenizers.Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(BERT_WORDS)}, unk_token="[UNK]")
    )
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.add_special_tokens(BERT_WORDS[:5])
    inner.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    inner.enable_truncation(2)
    inner.enable_padding(length=8)
    path = tmp_path / "tokenizer.json"
    inner.save(str(path))
    return path


@pytest.fixture
def sentencepiece_file(tmp_path, sentences):
    with (tmp_path / "some.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=file,
            vocab_size=110,
            user_defined_symbols=["<mask>"],
            minloglevel=2,
        )
    return tmp_path / "some.model"


def test_a_foreign_json_keeps_its_specials(bert_file):
    tokenizer = load_tokenizer(bert_file)
    assert tokenizer.specials == {"pad": 0, "begin": 2, "end": 3, "mask": 4, "separator": 3}
    assert tokenizer.unknown_id == 1
    assert tokenizer.vocab_size == 7


def test_a_special_spelled_in_text_is_unknown_to_a_vocabulary_of_words(bert_file):
    assert load_tokenizer(bert_file).encode(["film [MASK] [SEP]"]) == [[5, 1, 1]]


def test_gpt2s_kind_of_json_has_an_end_and_no_pad():
    inner = tokenizers.Tokenizer(models.BPE({"a": 0, "Ġ": 1}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.add_special_tokens(["<|endoftext|>"])
    tokenizer = Tokenizer(inner)
    assert tokenizer.specials == {"end": 2}
    assert tokenizer.encode(["a a"]) == [[0, 1, 0]]


def test_without_the_extra_a_sentencepiece_model_is_one_message(sentencepiece_file, monkeypatch):
    (sentencepiece_file.parent / "dict.txt").write_text("▁a 1\n", encoding="utf-8")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HeadstartError, match="sentencepiece is not installed") as error:
        load_tokenizer(sentencepiece_file.parent)
    assert "headstart[lab]" in error.value.fix


def test_a_dictionary_with_a_sentencepiece_model_reads_plain_text(sentencepiece_file, tmp_path):
    """An unknown token, and a symbol that the dictionary lacks, are `<oov>`."""
    folder = sentencepiece_file.parent
    model = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_file))
    tokens = model.encode("The film", out_type=str)
    (folder / "dict.txt").write_text("".join(f"{one} 1\n" for one in tokens), encoding="utf-8")
    tokenizer = load_tokenizer(folder)
    ids = tokenizer.encode(["The film"])
    assert ids == tokenizer.encode([" ".join(tokens)]) == [[*range(4, 4 + len(tokens))]]
    assert 3 in tokenizer.encode(["The <mask> film 家"])[0]
    for copied in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert copied.encode(["The film"]) == ids
    saved = tmp_path / "run"
    saved.mkdir()
    tokenizer.save(saved)
    assert load_tokenizer(saved).fingerprint == tokenizer.fingerprint


def test_a_file_next_to_a_dictionary_that_is_not_a_model_gets_a_message(tmp_path):
    (tmp_path / "dict.txt").write_text("▁The 1\n", encoding="utf-8")
    (tmp_path / "a.model").write_bytes(b"not a model")
    with pytest.raises(HeadstartError, match="not a SentencePiece model") as caught:
        load_tokenizer(tmp_path)
    assert caught.value.where == str(tmp_path / "a.model")


def test_a_copy_reads_no_text_as_special_tokens(bert_file):
    tokenizer = load_tokenizer(bert_file)
    for copied in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert copied.encode(["film [MASK]"]) == [[5, 1]]
        assert copied.fingerprint == tokenizer.fingerprint


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"\xff\xfe"),
        ("dict.txt", b"one two three\n"),
        ("dict.txt", b"caf\xe9 1\n"),
        ("a.bin", b""),
    ],
)
def test_a_file_that_is_no_tokenizer_gets_a_message(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HeadstartError) as caught:
        load_tokenizer(tmp_path / name)
    assert caught.value.where == str(tmp_path / name)
    assert caught.value.fix


ENDLESS = {"type": "Split", "pattern": {"Regex": "(a+)+(a+)+b"}}
ENDLESS |= {"behavior": "Isolated", "invert": False}
GROWING = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 500}


@pytest.mark.parametrize(
    ("part", "step"),
    [
        ("pre_tokenizer", ENDLESS),
        ("normalizer", GROWING),
        ("normalizer", {"type": "Sequence", "normalizers": [GROWING]}),
    ],
)
def test_a_file_whose_steps_never_end_or_multiply_the_text_is_rejected(
    bpe, tmp_path, part, step, monkeypatch
):
    monkeypatch.setattr("headstart.data.tokenizers.CHECK_SECONDS", 3.0)
    path = bpe.save(tmp_path / "tokenizer.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps(content | {part: step})
    path.write_text(text.replace('"Split"', '"\\u0053plit"'))  # JSON may spell a name with escapes
    with pytest.raises(HeadstartError, match="this tokenizer cannot be used"):
        load_tokenizer(path)
