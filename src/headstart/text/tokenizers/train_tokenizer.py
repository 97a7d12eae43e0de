"""Train a tokenizer on a corpus: byte-level BPE, or a byte-level unigram model.

Both begin with the 256 bytes, so that any text in any language has ids and comes back unchanged,
and both cut a text into words first, so that no piece (and no special) reaches across them.
"""

import json
from collections.abc import Iterable, Iterator
from operator import length_hint
from typing import Literal

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from headstart.config import check_number
from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.text.tokenizers.json_tokenizer import JsonTokenizer
from headstart.text.tokenizers.tokenizer import SPECIAL_NAMES

Kind = Literal["bpe", "unigram"]

SPECIALS = [names[0] for names in SPECIAL_NAMES.values()]
SMALLEST_VOCABULARY = 256 + len(SPECIALS)


def train_tokenizer(
    corpus: Iterable[str],
    *,
    vocab_size: int,
    kind: Kind = "bpe",
    progress: ProgressCallback | None = None,
) -> JsonTokenizer:
    """Learn a vocabulary from `corpus`, which is read once and never held in memory.

    Parameters
    ----------
    corpus : iterable of str
    vocab_size : int
        The most pieces to learn. A small corpus may not have that many.
    kind : "bpe" or "unigram"
    progress : callable, optional
        Called with the documents read so far and how many there are, where the corpus knows.

    Returns
    -------
    JsonTokenizer
        Its `vocab_size` is the number of pieces that were found.
    """
    check_number("vocab_size", vocab_size)
    if vocab_size < SMALLEST_VOCABULARY:
        raise HeadstartError(
            f"a vocabulary of {vocab_size} is too small",
            fix=f"ask for at least {SMALLEST_VOCABULARY}: 256 bytes and {len(SPECIALS)} specials",
        )
    trainer: trainers.Trainer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if kind == "bpe":
        inner = tokenizers.Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=SPECIALS,
            initial_alphabet=alphabet,
            show_progress=False,
        )
    elif kind == "unigram":
        inner = tokenizers.Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(
            vocab_size=vocab_size,
            special_tokens=SPECIALS,
            initial_alphabet=alphabet,
            unk_token="[UNK]",
            show_progress=False,
        )
    else:
        raise HeadstartError(f"there is no tokenizer kind {kind!r}", fix="choose bpe or unigram")
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(_counted(corpus, progress), trainer)
    return JsonTokenizer(_settled(inner) if kind == "unigram" else inner)


def _settled(inner: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The same unigram model without what chance put into it, so that training can be repeated.

    The library sums in the order in which its threads finish, and ranks the bytes that the corpus
    hardly has in the order of a hash table. Neither says anything about the text.
    """
    settings = json.loads(inner.to_str())
    vocabulary = settings["model"]["vocab"]
    specials, pieces = vocabulary[: len(SPECIALS)], vocabulary[len(SPECIALS) :]
    rarest = min((score for piece, score in pieces if len(piece) > 1), default=0.0)
    settled = [
        [piece, round(rarest - 1 if len(piece) == 1 and score < rarest else score, 6)]
        for piece, score in pieces
    ]
    settled.sort(key=lambda entry: (-entry[1], entry[0]))
    settings["model"]["vocab"] = specials + settled
    return tokenizers.Tokenizer.from_str(json.dumps(settings))


def _counted(corpus: Iterable[str], progress: ProgressCallback | None) -> Iterator[str]:
    total = length_hint(corpus) or None
    done = 0
    for done, text in enumerate(corpus, start=1):
        yield text
        if progress is not None:
            progress(done, total)
    if done == 0:
        raise HeadstartError("the corpus has no text to train a tokenizer on")
