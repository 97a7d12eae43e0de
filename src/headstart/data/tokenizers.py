"""Tokenizers: text to token ids and back, read from their files or trained on a corpus.

Text never becomes a special token: a document that spells "[MASK]" is tokenized letter by letter,
so that no input can imitate the end of a text or a token to predict.
"""

import hashlib
import json
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sentencepiece
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, pre_tokenizers, trainers

from headstart.config import check_number
from headstart.errors import HeadstartError
from headstart.files import replacing, write_text

Tokens = NDArray[np.unsignedinteger]

# The names of special tokens in existing vocabularies; ours come first. BERT's [CLS] and [SEP]
# begin and end a text; RoBERTa's </s> also separates.
SPECIAL_NAMES = {
    "pad": ("[PAD]", "<pad>", "<|pad|>", "<|padding|>"),
    "unknown": ("[UNK]", "<unk>", "<|unk|>"),
    "begin": ("[BOS]", "<s>", "<bos>", "<|begin_of_text|>", "[CLS]"),
    "end": ("[EOS]", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>", "[SEP]"),
    "mask": ("[MASK]", "<mask>", "<|mask|>"),
    "separator": ("[SEP]", "<sep>", "</s>"),
}


class Tokenizer(ABC):
    """Text to ids and back. The id of a special token that the vocabulary lacks is `None`."""

    vocab_size: int
    pad_id: int | None = None
    unknown_id: int | None = None
    begin_id: int | None = None
    end_id: int | None = None
    mask_id: int | None = None
    separator_id: int | None = None
    separators: int = 1  # between the two texts of a pair (RoBERTa: 2)

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash that is equal for tokenizers with the same ids for every text."""

    @abstractmethod
    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the ids of each text as an array of `dtype`, without special tokens."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids` without special tokens."""

    @abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text as readable strings, one for each id."""

    @abstractmethod
    def save(self, path: Path) -> Path:
        """Write the file that `load_tokenizer` reads; in a folder, under its default name."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text as a list, without special tokens."""
        return [ids.tolist() for ids in self.encode_arrays(texts)]

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The smallest type that holds every id, little-endian on every machine."""
        return np.dtype("<u2" if self.vocab_size <= 1 << 16 else "<u4")

    @property
    def specials(self) -> dict[str, int]:
        """The ids that text never becomes, by role. Text can become the unknown token."""
        roles = ("pad", "begin", "end", "mask", "separator")
        ids = {role: getattr(self, f"{role}_id") for role in roles}
        return {role: number for role, number in ids.items() if number is not None}

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        return frozenset(self.specials.values())

    def _without_specials(self, ids: list[int]) -> list[int]:
        """Replace special tokens that a text spelled by the unknown token, or drop them.

        Byte-level tokenizers never need it; vocabularies of whole words and SentencePiece's
        user-defined symbols do.
        """
        specials = self._special_ids
        if specials.isdisjoint(ids):
            return ids
        if self.unknown_id is None:
            return [number for number in ids if number not in specials]
        return [self.unknown_id if number in specials else number for number in ids]


# Byte-level tokenizers first split a text with GPT-2's pattern, then tokenize each part. So a text
# can be split wherever that pattern always splits and each part looked up in a cache: the ids are
# the same, and a lookup is much faster than tokenizing (bench/store.py measures it). These splits
# hold in every version of Unicode:
# - after Latin or Cyrillic letters, ASCII digits, or ASCII punctuation except the apostrophe
#   (which begins parts such as "'ll"), before an ASCII character of another kind;
# - before a single space between two visible characters.
# What is between such places (other scripts, line breaks, several spaces) is one part.
_LETTERS = "A-Za-zÀ-ÖØ-öø-ɏЀ-ҁ"
_MARKS = r"!-&(-/:-@\[-`{-~"
_VISIBLE = r"[!-~\w]"  # characters that no version of Unicode calls a space
_PART = re.compile(
    rf" ?[{_LETTERS}]++(?=[ -@\[-`{{-~\n]|\Z)"
    rf"| ?[{_MARKS}]++(?=[ \nA-Za-z0-9]|\Z)"
    r"| ?[0-9]++(?=[ -/:-~\n]|\Z)"
    rf"|(?s:.+?)(?:(?<={_VISIBLE})(?= {_VISIBLE})|\Z)"
)
_MAX_CACHE_BYTES = 48 << 20  # then the cache starts anew
_BYTES_PER_PART = 160  # two Python objects and an entry of the dictionary
_PARTS_AT_ONCE = 512


class WordCache:
    """Ids of the parts of texts, stored as bytes that only need joining. Threads may share it."""

    def __init__(
        self,
        encode: Callable[[list[str]], list[list[int]]],
        dtype: np.dtype[np.unsignedinteger],
    ) -> None:
        self._encode = encode
        self._dtype = dtype
        self._typecode = "H" if dtype.itemsize == 2 else "I"
        self._known: dict[str, bytes] = {}
        self._bytes = 0

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the ids of each text, equal to those of tokenizing it as a whole."""
        known = self._known  # another thread may start a new one meanwhile
        split = [_PART.findall(text) for text in texts]
        new = list(set().union(*split).difference(known))
        for part, ids in zip(new, self._encode(new), strict=True):
            known[part] = array(self._typecode, ids).tobytes()
            self._bytes += _BYTES_PER_PART + 6 * len(part)
        joined = [b"".join(map(known.__getitem__, parts)) for parts in split]
        if self._bytes > _MAX_CACHE_BYTES:
            self._known, self._bytes = {}, 0
        return [np.frombuffer(ids, self._dtype) for ids in joined]


class JsonTokenizer(Tokenizer):
    """A `tokenizers.Tokenizer` that never truncates, pads or reads text as special tokens."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        inner.no_truncation()
        inner.no_padding()
        inner.encode_special_tokens = True  # the library does not save this in its file
        self._inner = inner
        self._settings: dict[str, Any] = json.loads(inner.to_str())
        self.vocab_size = max(inner.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        names = {token["content"] for token in self._settings["added_tokens"] if token["special"]}
        for role, candidates in SPECIAL_NAMES.items():
            name = next((name for name in candidates if name in names), None)
            if role == "unknown" and name is None:
                name = self._unknown_of_model()
            setattr(self, f"{role}_id", None if name is None else inner.token_to_id(name))
        if self._settings["post_processor"] is not None:
            self._read_template({inner.token_to_id(name) for name in names})
        self._cache = WordCache(self._encode_parts, self.dtype) if self._can_split() else None

    @classmethod
    def read(cls, path: Path) -> "JsonTokenizer":
        """Read a `tokenizer.json`; one with expressions is first tried in another process."""
        try:
            inner = tokenizers.Tokenizer.from_file(str(path))
            check_tokenizer(inner, path)
            return cls(inner)
        except HeadstartError:
            raise
        except Exception as error:  # the library raises bare exceptions
            raise HeadstartError(
                f"this is not a tokenizer.json: {error}",
                where=path,
                fix="give a file that the tokenizers library wrote",
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies must not read text as special tokens, which the library's own copies do.
        return _from_json, (self._inner.to_str(),)

    @cached_property
    def fingerprint(self) -> str:
        return hash_of(b"tokenizers", self._inner.to_str().encode())

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        if self._cache is not None:
            return self._cache.encode(texts)
        return [np.array(ids, dtype=self.dtype) for ids in self._encode_whole(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        return self._inner.decode(list(ids), skip_special_tokens=True)

    def tokenize(self, text: str) -> list[str]:
        tokens = [self._inner.id_to_token(number) or "" for number in self.encode([text])[0]]
        if (self._settings["decoder"] or {}).get("type") != "ByteLevel":
            return tokens
        return [self._inner.decoder.decode([token]) for token in tokens]

    def save(self, path: Path) -> Path:
        path = path / "tokenizer.json" if path.is_dir() else path
        write_text(path, self.to_json())
        return path

    def to_json(self) -> str:
        """Return the content of its `tokenizer.json`."""
        return self._inner.to_str(pretty=True)

    def _encode_whole(self, texts: list[str]) -> list[list[int]]:
        encodings = self._inner.encode_batch_fast(texts, add_special_tokens=False)
        return [self._without_specials(encoding.ids) for encoding in encodings]

    def _encode_parts(self, parts: list[str]) -> list[list[int]]:
        """Encode very short texts, many of them as the words of one text."""
        batch = [parts[i : i + _PARTS_AT_ONCE] for i in range(0, len(parts), _PARTS_AT_ONCE)]
        encodings = self._inner.encode_batch(batch, is_pretokenized=True, add_special_tokens=False)
        result = []
        for words, encoding in zip(batch, encodings, strict=True):
            ids, start = encoding.ids, 0
            lengths = np.bincount(np.array(encoding.word_ids, np.int64), minlength=len(words))
            for end in np.cumsum(lengths).tolist():
                result.append(self._without_specials(ids[start:end]))
                start = end
        return result

    def _read_template(self, specials: set[int | None]) -> None:
        """Take the special tokens around a text from the file's template rather than by name."""
        before, *after = _special_runs(self._inner.encode("a"))
        if after and len(before) == 1 and before[0] in specials:
            self.begin_id = before[0]
        if after and len(after[0]) == 1 and after[0][0] in specials:
            self.end_id = after[0][0]
        runs = _special_runs(self._inner.encode("a", "b"))
        if len(runs) == 3 and {*runs[1]} == {self.separator_id}:
            self.separators = len(runs[1])

    def _unknown_of_model(self) -> str | None:
        model = self._settings["model"]
        if model["type"] == "Unigram":
            number = model.get("unk_id")
            return None if number is None else str(model["vocab"][number][0])
        name: str | None = model.get("unk_token")
        return name

    def _can_split(self) -> bool:
        """Return whether a text's ids are those of its parts (see `WordCache`)."""
        before = self._settings["pre_tokenizer"] or {}
        return (
            self._settings["normalizer"] is None
            and before.get("type") == "ByteLevel"
            and before.get("use_regex", True)
            and not before.get("add_prefix_space")
            and not self._settings["model"].get("dropout")
            and all(token["special"] for token in self._settings["added_tokens"])
        )


def _from_json(text: str) -> JsonTokenizer:
    return JsonTokenizer(tokenizers.Tokenizer.from_str(text))


def _special_runs(encoding: tokenizers.Encoding) -> list[list[int]]:
    """Return the ids before, between and after the texts of an encoding."""
    runs: list[list[int]] = [[]]
    before: int | None = None
    for number, text in zip(encoding.ids, encoding.sequence_ids, strict=True):
        if text is None:
            runs[-1].append(number)
        elif text != before:
            runs.append([])
            before = text
    return runs


# The regular expressions and replacements of a foreign tokenizer.json may run forever or multiply
# a text. So a file that has some tokenizes a few short texts of its own characters in another
# process first, with limits on time and memory.
CHECK_SECONDS = 20.0  # a usable tokenizer takes milliseconds
CHECK_MEMORY = 4 << 30
MAX_GROWTH = 32  # characters that a normalizer may make of one
_RISKY = {"Replace", "Split", "Precompiled"}  # steps whose behaviour the file defines
_CHECK = """
import json, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
except (ImportError, ValueError, OSError):
    pass
import tokenizers
inner = tokenizers.Tokenizer.from_str(sys.stdin.buffer.read().decode())
characters = json.loads(sys.argv[1])
texts = [c * n + end for c in characters for n in (30, 2000) for end in ("", "!", "\\0", " x")]
texts.append("".join(characters) * 20)
for text in texts:
    if inner.normalizer is not None:
        made = inner.normalizer.normalize_str(text)
        if len(made) > int(sys.argv[3]) * (len(text) + 10):
            sys.exit(f"its normalizer makes {len(made):,} characters of {len(text):,}")
    inner.encode(text, add_special_tokens=False)
"""


def check_tokenizer(inner: tokenizers.Tokenizer, where: Path) -> None:
    """Reject a tokenizer whose expressions take forever or multiply the text."""
    text = inner.to_str()
    steps = [step for key, step in json.loads(text).items() if key != "model"]
    strings = list(_strings(steps))
    if not _RISKY.isdisjoint(value for key, value in strings if key == "type"):
        patterns = {value for key, value in strings if key in ("Regex", "String", "content")}
        characters = sorted({*"".join(patterns), *"a 0.\n"})[:64]
        problem = _try_tokenizer(text, "".join(characters))
        if problem is not None:
            raise HeadstartError(
                f"this tokenizer cannot be used: {problem}",
                where=where,
                fix="use one that you trust, or train one: headstart tokenizer CORPUS",
            )


@cache
def _try_tokenizer(text: str, characters: str) -> str | None:
    """Tokenize in another process; return the problem, if there is one."""
    limits = [str(CHECK_MEMORY), str(MAX_GROWTH)]
    command = [sys.executable, "-c", _CHECK, json.dumps(characters), *limits]
    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, timeout=CHECK_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"a text of 2,000 characters takes it more than {CHECK_SECONDS:.0f} s"
    except OSError:  # no process can be started here: use it unchecked
        return None
    if not done.returncode:
        return None
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "the library failed"


def _strings(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string of a JSON value with the key that it has."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _strings(inner, name)
    elif isinstance(value, list):
        for inner in value[:1_000]:
            yield from _strings(inner, key)


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model with its normalization and special tokens."""

    def __init__(self, model: bytes, *, where: Path | None = None) -> None:
        self._model = model
        self._processor = processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.load_from_serialized_proto(model)
        except RuntimeError as error:
            raise HeadstartError(
                "this is not a SentencePiece model",
                where=where,
                fix="give the .model file that SentencePiece wrote, not its .vocab",
            ) from error
        self.vocab_size = processor.get_piece_size()
        defined = {
            "pad": processor.pad_id(),
            "unknown": processor.unk_id(),
            "begin": processor.bos_id(),
            "end": processor.eos_id(),
        }
        for role, names in SPECIAL_NAMES.items():
            ids = [defined.get(role, -1), *(self._find(name) for name in names)]
            setattr(self, f"{role}_id", next((number for number in ids if number >= 0), None))

    @cached_property
    def fingerprint(self) -> str:
        return hash_of(b"sentencepiece", self._model)

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        encoded = self._processor.encode(list(texts), out_type=int)
        return [np.array(self._without_specials(ids), dtype=self.dtype) for ids in encoded]

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._processor.decode([i for i in ids if i not in self._special_ids])
        return text

    def tokenize(self, text: str) -> list[str]:
        return [self._processor.id_to_piece(number) for number in self.encode([text])[0]]

    def save(self, path: Path) -> Path:
        path = path / "sentencepiece.model" if path.is_dir() else path
        with replacing(path) as temporary:
            temporary.write_bytes(self._model)
        return path

    def _find(self, name: str) -> int:
        """Return the id of a token, or -1."""
        number: int = self._processor.piece_to_id(name)
        return -1 if number == self._processor.unk_id() else number


LAB_SPECIALS = ["<sos>", "<pad>", "<eos>", "<oov>"]
WORD_START = "▁"


class LabTokenizer(Tokenizer):
    """The lab's `dict.txt`: a token and its count per line; an unknown token is `<oov>`.

    The special tokens have the ids 0 to 3, the others those from 4 on in the order of the file. A
    text with "▁" in it is already tokenized. Any other text is tokenized with the SentencePiece
    model in the folder of `dict.txt`; without one, its words are the tokens.
    """

    begin_id, pad_id, end_id, unknown_id = range(4)

    def __init__(self, tokens: Sequence[str], model: SentencePieceTokenizer | None = None) -> None:
        self._tokens = [*LAB_SPECIALS, *tokens]
        self._model = model
        # A special token that a text spells is not in the dictionary, hence unknown.
        self._ids = {token: i for i, token in enumerate(self._tokens) if i >= len(LAB_SPECIALS)}
        self.vocab_size = len(self._tokens)

    @classmethod
    def read(cls, path: Path) -> "LabTokenizer":
        """Read a `dict.txt`, and the SentencePiece model in its folder if there is one."""
        fix = "give the lab's dict.txt, a tokenizer.json or a SentencePiece .model"
        try:
            lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise HeadstartError(f"byte {error.start} is not UTF-8", where=path, fix=fix) from error
        tokens = []
        for number, line in enumerate(lines, start=1):
            token, _, count = line.rpartition(" ")
            if not token or not count.isdecimal():
                raise HeadstartError(
                    f"line {number} is not a token and its count: {line[:60]!r}",
                    where=path,
                    fix=fix,
                )
            tokens.append(token)
        found = sorted(path.parent.glob("*.model"))
        if len(found) > 1:
            raise HeadstartError(
                f"there are several SentencePiece models in the folder of {path.name}: "
                + ", ".join(model.name for model in found),
                where=path.parent,
                fix="keep only the one that tokenized the texts",
            )
        loaded = [SentencePieceTokenizer(model.read_bytes(), where=model) for model in found]
        return cls(tokens, *loaded)

    @cached_property
    def fingerprint(self) -> str:
        model = "" if self._model is None else self._model.fingerprint
        return hash_of(b"lab", "\n".join(self._tokens).encode(), model.encode())

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        ids, unknown = self._ids, self.unknown_id
        return [
            np.array([ids.get(token, unknown) for token in self._split(text)], dtype=self.dtype)
            for text in texts
        ]

    def decode(self, ids: Sequence[int]) -> str:
        tokens = [self._tokens[i] for i in ids if i not in self._special_ids]
        return "".join(tokens).replace(WORD_START, " ").strip()

    def tokenize(self, text: str) -> list[str]:
        return [self._tokens[number] for number in self.encode([text])[0]]

    def save(self, path: Path) -> Path:
        path = path / "dict.txt" if path.is_dir() else path
        write_text(path, "".join(f"{token} 1\n" for token in self._tokens[len(LAB_SPECIALS) :]))
        if self._model is not None:
            self._model.save(path.parent)
        return path

    def _split(self, text: str) -> list[str]:
        if self._model is None or WORD_START in text:
            return text.split()
        return self._model.tokenize(text)


def load_tokenizer(path: Path | str) -> Tokenizer:
    """Read a tokenizer from its file, or from a folder that holds one.

    Known are `tokenizer.json`, the lab's `dict.txt` and a SentencePiece `.model`.
    """
    path = Path(path)
    if path.is_dir():
        # The lab's folder has a SentencePiece model next to its dictionary.
        patterns = ("tokenizer.json", "dict.txt", "*.model")
        found = [file for pattern in patterns for file in sorted(path.glob(pattern))]
        if not found:
            raise HeadstartError(
                "the folder holds no tokenizer",
                where=path,
                fix="make one with: headstart tokenizer CORPUS --out tokenizer.json",
            )
        path = found[0]
    if not path.is_file():
        raise HeadstartError(
            "there is no such tokenizer file",
            where=path,
            fix="check the path, or make one with: headstart tokenizer CORPUS --out FILE",
        )
    if path.suffix == ".json":
        return JsonTokenizer.read(path)
    if path.suffix == ".txt":
        return LabTokenizer.read(path)
    if path.suffix == ".model":
        return SentencePieceTokenizer(path.read_bytes(), where=path)
    raise HeadstartError(
        f"{path.name} is not a tokenizer that Headstart knows",
        where=path,
        fix="give a tokenizer.json, a SentencePiece .model or a dict.txt",
    )


TRAINED_SPECIALS = [names[0] for names in SPECIAL_NAMES.values()]
MIN_VOCAB_SIZE = 256 + len(TRAINED_SPECIALS)


def train_tokenizer(
    corpus: Iterable[str],
    *,
    vocab_size: int,
    kind: Literal["bpe", "unigram"] = "bpe",
) -> JsonTokenizer:
    """Train a byte-level BPE or unigram tokenizer; the corpus is read once and never stored.

    Both kinds contain the 256 bytes, so that any text in any language has ids and is decoded
    unchanged, and both split a text into words first, so that no token reaches across them.

    Parameters
    ----------
    corpus : iterable of str
    vocab_size : int
        The largest number of tokens. A small corpus may not have that many.
    kind : "bpe" or "unigram"

    Returns
    -------
    JsonTokenizer
        Its `vocab_size` is the number of tokens that were found.
    """
    check_number("vocab_size", vocab_size)
    texts = iter(corpus)
    first = next(texts, None)
    if first is None:
        raise HeadstartError("the corpus has no text to train a tokenizer on")
    if vocab_size < MIN_VOCAB_SIZE:
        raise HeadstartError(
            f"a vocabulary of {vocab_size} is too small",
            fix=f"ask for at least {MIN_VOCAB_SIZE}: 256 bytes and "
            f"{len(TRAINED_SPECIALS)} special tokens",
        )
    settings: dict[str, Any] = {
        "vocab_size": vocab_size,
        "special_tokens": TRAINED_SPECIALS,
        "initial_alphabet": pre_tokenizers.ByteLevel.alphabet(),
        "show_progress": False,
    }
    trainer: trainers.Trainer
    if kind == "bpe":
        inner = tokenizers.Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(**settings)
    else:
        inner = tokenizers.Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(unk_token="[UNK]", **settings)
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(chain([first], texts), trainer)
    return JsonTokenizer(_reproducible(inner) if kind == "unigram" else inner)


def _reproducible(inner: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return the same unigram model without what differs from training to training.

    The library sums in the order in which its threads finish, and ranks the bytes that the corpus
    hardly has in the order of a hash table.
    """
    settings = json.loads(inner.to_str())
    vocabulary = settings["model"]["vocab"]
    specials, tokens = vocabulary[: len(TRAINED_SPECIALS)], vocabulary[len(TRAINED_SPECIALS) :]
    rarest = min((score for token, score in tokens if len(token) > 1), default=0.0)
    for entry in tokens:
        if len(entry[0]) == 1 and entry[1] < rarest:
            entry[1] = rarest - 1
        entry[1] = round(entry[1], 6)
    tokens.sort(key=lambda entry: (-entry[1], entry[0]))
    settings["model"]["vocab"] = specials + tokens
    return tokenizers.Tokenizer.from_str(json.dumps(settings))


def hash_of(*parts: bytes) -> str:
    """Return one SHA-256 of several contents; the length of each is part of it."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
