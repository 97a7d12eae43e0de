"""A model's own tokenizer gives the same ids as in `transformers`, in any language."""

import json

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from headstart.interop.huggingface import read_tokenizer
from headstart.interop.huggingface_export import TEXTS
from headstart.tasks.task import TextEncoding

transformers = pytest.importorskip("transformers")
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def word_pieces():
    """BERT's."""
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=300, special_tokens=BERT))
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made, "bert"


def byte_level(special):
    """Byte-level BPE without tokens around a text."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator(TEXTS, trainer)
    made.decoder = decoders.ByteLevel()
    return made


def byte_pairs():
    """RoBERTa's, whose pairs have two separators."""
    made = byte_level(ROBERTA)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return made, "roberta"


def unigram():
    """XLM-R's and CamemBERT's SentencePiece model, in the format of the `tokenizers` library."""
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC()])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=ROBERTA, unk_token="<unk>")
    made.train_from_iterator(TEXTS, trainer)
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return made, "xlm-roberta"


def gpt2():
    """GPT-2's, which adds no tokens to a text and has only an end token."""
    return byte_level(["<|endoftext|>"]), "gpt2"


def write(folder, make):
    made, model_type = make()
    made.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return read_tokenizer(folder)


def modern():
    """ModernBERT's, which also has an end token that it does not add to texts."""
    made, _ = gpt2()
    made.add_special_tokens(BERT)
    ids = [(name, made.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ids
    )
    return made, "modernbert"


@pytest.mark.parametrize("make", [word_pieces, byte_pairs, unigram, gpt2, modern])
def test_texts_and_pairs_have_the_same_ids(make, tmp_path):
    ours = write(tmp_path, make)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text, ids in zip(TEXTS, ours.encode(TEXTS), strict=True):
        assert ids == theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    if make is gpt2:  # we end a text, it does not
        return
    encoding = TextEncoding(ours, 64)
    one, two = ours.encode(TEXTS[:2])
    assert theirs(TEXTS[0])["input_ids"] == encoding.framed(one).tolist()
    pair = [*encoding.before, *one, *encoding.between, *two, *encoding.after]
    assert theirs(*TEXTS[:2])["input_ids"] == pair


def test_the_files_of_the_first_years_give_the_same_ids(tmp_path):
    for make in (word_pieces, gpt2):
        folder = tmp_path / make.__name__
        folder.mkdir()
        ours = write(folder, make)
        tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).model.save(str(folder))
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer_config.json").unlink()
        older = read_tokenizer(folder)
        assert older.encode(TEXTS) == ours.encode(TEXTS)
        assert older.specials == ours.specials
