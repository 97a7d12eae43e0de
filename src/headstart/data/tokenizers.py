"""Tokenizers: text to token ids and back, read from their files or trained on a corpus.

Text never becomes a special token: a document that spells "[MASK]" is tokenized letter by letter,
so that no input can imitate the end of a text or a token to predict.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, pre_tokenizers, trainers

from headstart.errors import HeadstartError, need_packages
from headstart.files import replacing, write_text

Tokens = NDArray[np.unsignedinteger]

# The names of special tokens in existing vocabularies; ours come first. BERT's [CLS] and [SEP]
# begin and end a text; RoBERTa's </s> also separates.
SPECIAL_NAMES = {
    "pad": ("[PAD]", "<pad>", "<|pad|>", "<|padding|>"),
    "unknown": ("[UNK]", "<unk>", "<|unk|>"),
    "begin": ("[BOS]", "<s>", "<sos>", "<bos>", "<|begin_of_text|>", "[CLS]"),
    "end": ("[EOS]", "</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>", "[SEP]"),
    "mask": ("[MASK]", "<mask>", "<|mask|>"),
    "separator": ("[SEP]", "<sep>", "</s>"),
}


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
_MAX_CACHE_BYTES = 48 << 20  # then the cache is cleared
_BYTES_PER_PART = 160  # two Python objects and an entry of the dictionary


class Tokenizer:
    """A `tokenizers.Tokenizer` that never truncates, pads or reads text as special tokens.

    The id of a special token that the vocabulary lacks is `None`. `fingerprint` is equal for
    tokenizers with the same ids for every text.
    """

    separators = 1  # between the two texts of a pair (RoBERTa: 2)

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        inner.no_truncation()
        inner.no_padding()
        inner.encode_special_tokens = True  # the library does not save this in its file
        self._inner = inner
        settings: dict[str, Any] = json.loads(inner.to_str())
        self.fingerprint = hash_of(b"tokenizers", inner.to_str().encode())
        self.vocab_size = max(inner.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        names = {token["content"] for token in settings["added_tokens"] if token["special"]}
        model, before = settings["model"], settings["pre_tokenizer"] or {}
        self._can_split = (  # whether a text's ids are those of its parts (see `_PART`)
            settings["normalizer"] is None
            and before.get("type") == "ByteLevel"
            and before.get("use_regex", True)
            and not before.get("add_prefix_space")
            and not model.get("dropout")
            and all(token["special"] for token in settings["added_tokens"])
        )
        found = {
            role: next((inner.token_to_id(name) for name in candidates if name in names), None)
            for role, candidates in SPECIAL_NAMES.items()
        }
        self.pad_id, self.begin_id, self.end_id = found["pad"], found["begin"], found["end"]
        self.mask_id, self.separator_id = found["mask"], found["separator"]
        self.unknown_id: int | None = found["unknown"]
        if self.unknown_id is None:
            unknown = model.get("unk_token")
            self.unknown_id = model.get("unk_id") if unknown is None else inner.token_to_id(unknown)
        if settings["post_processor"] is not None:
            self._read_template({inner.token_to_id(name) for name in names})
        self._known: dict[str, bytes] = {}  # ids of the parts of texts
        self._known_bytes = 0

    @classmethod
    def read(cls, path: Path) -> "Tokenizer":
        """Read a `tokenizer.json`; one with expressions is first tried in another process."""
        try:
            inner = tokenizers.Tokenizer.from_file(str(path))
            problem = find_problem(inner.to_str())
            if problem is None:
                return cls(inner)
        except Exception as error:  # the library raises bare exceptions
            problem = str(error)
        raise HeadstartError(
            f"this tokenizer cannot be used: {problem}",
            where=path,
            fix="give a tokenizer.json that you trust, or omit --tokenizer",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Made again, because the library's own copies read text as special tokens.
        return Tokenizer, (self._inner,)

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the ids of each text as an array of `dtype`, without special tokens."""
        if not self._can_split:
            return [np.array(ids, dtype=self.dtype) for ids in self._encode_whole(list(texts))]
        known = self._known  # another thread may replace it
        split = [_PART.findall(text) for text in texts]
        new = list(set().union(*split).difference(known))
        for part, ids in zip(new, self._encode_whole(new), strict=True):
            known[part] = np.array(ids, dtype=self.dtype).tobytes()
            self._known_bytes += _BYTES_PER_PART + 6 * len(part)
        if self._known_bytes > _MAX_CACHE_BYTES:
            self._known, self._known_bytes = {}, 0
        joined = (b"".join(map(known.__getitem__, parts)) for parts in split)
        return [np.frombuffer(ids, self.dtype) for ids in joined]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text as a list, without special tokens."""
        return [ids.tolist() for ids in self.encode_arrays(texts)]

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The smallest type that holds every id, little-endian on every machine."""
        return np.dtype("<u2" if self.vocab_size <= 1 << 16 else "<u4")

    @cached_property
    def specials(self) -> dict[str, int]:
        """The ids that text never becomes, by role. Text can become the unknown token."""
        ids = {role: getattr(self, f"{role}_id") for role in SPECIAL_NAMES if role != "unknown"}
        return {role: number for role, number in ids.items() if number is not None}

    def _without_specials(self, ids: list[int]) -> list[int]:
        """Replace special tokens that a text spelled, which only vocabularies of words have."""
        specials = set(self.specials.values())
        if specials.isdisjoint(ids):
            return ids
        replaced = [self.unknown_id if number in specials else number for number in ids]
        return [number for number in replaced if number is not None]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids` without special tokens."""
        return self._inner.decode(list(ids), skip_special_tokens=True)

    def save(self, path: Path) -> Path:
        """Write the file that `load_tokenizer` reads; in a folder, under its default name."""
        path = path / "tokenizer.json" if path.is_dir() else path
        write_text(path, self.to_json())
        return path

    def to_json(self) -> str:
        """Return the content of its `tokenizer.json`."""
        return self._inner.to_str(pretty=True)

    def _encode_whole(self, texts: list[str]) -> list[list[int]]:
        encodings = self._inner.encode_batch_fast(texts, add_special_tokens=False)
        return [self._without_specials(encoding.ids) for encoding in encodings]

    def _read_template(self, specials: set[int | None]) -> None:
        """Take the special tokens around texts from the file's template rather than by name."""
        encoding = self._inner.encode("a", "b")
        ids, owners = encoding.ids, encoding.sequence_ids  # None in front of, between and behind
        if not {0, 1} <= set(owners):
            return
        first, second, end = owners.index(0), owners.index(1), len(ids) - owners[::-1].index(1)
        if first == 1 and ids[0] in specials:
            self.begin_id = ids[0]
        if end == len(ids) - 1 and ids[end] in specials:
            self.end_id = ids[end]
        between = ids[first + owners.count(0) : second]
        if {*between} == {self.separator_id}:
            self.separators = len(between)


# The regular expressions and replacements of a foreign tokenizer.json may run forever or multiply
# a text. So a file that has some tokenizes a few short texts of these characters in another
# process first, with limits on time and memory.
CHECK_SECONDS = 20.0  # a usable tokenizer takes milliseconds
_RISKY = re.compile(r'"type": "(Replace|Split|Precompiled)"')  # the file defines what they do
_PATTERN = re.compile(r'"(?:Regex|String|content)": ("(?:[^"\\]|\\.)*+")')
_CHECK = """
import json, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
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
        if len(made) > 32 * (len(text) + 10):
            sys.exit(f"its normalizer makes {len(made):,} characters of {len(text):,}")
    inner.encode(text, add_special_tokens=False)
"""


@cache
def find_problem(text: str) -> str | None:
    """Return why the expressions of a tokenizer.json, as the library writes it, cannot be used."""
    steps = json.dumps({key: step for key, step in json.loads(text).items() if key != "model"})
    if not _RISKY.search(steps):
        return None
    patterns = map(json.loads, _PATTERN.findall(steps))
    characters = "".join(sorted({*"".join(patterns), *"a 0.\n"})[:64])
    command = [sys.executable, "-c", _CHECK, json.dumps(characters)]
    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, timeout=CHECK_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"a text of 2,000 characters takes it more than {CHECK_SECONDS:.0f} s"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (lines or ["the library failed"])[-1] if done.returncode else None


LAB_SPECIALS = ("<sos>", "<pad>", "<eos>", "<oov>")


class LabTokenizer(Tokenizer):
    """The lab's `dict.txt`: a token and its count per line; an unknown token is `<oov>`.

    The special tokens have the ids 0 to 3, the others those from 4 on in the order of the file. A
    text with "▁" in it is already tokenized. Any other text is tokenized with the SentencePiece
    model in the folder of `dict.txt`; without one, its words are the tokens.
    """

    def __init__(self, tokens: Sequence[str], model: bytes = b"") -> None:
        words = {token: number for number, token in enumerate(tokens, start=len(LAB_SPECIALS))}
        specials = {token: number for number, token in enumerate(LAB_SPECIALS)}
        inner = tokenizers.Tokenizer(models.WordLevel(words | specials, unk_token="<oov>"))
        inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        inner.decoder = decoders.Metaspace()
        inner.add_special_tokens(list(LAB_SPECIALS[:3]))
        super().__init__(inner)
        self.fingerprint = hash_of(self.fingerprint.encode(), model)
        self._tokens, self._model = tokens, model
        if model:
            need_packages("lab", "sentencepiece")
            from sentencepiece import SentencePieceProcessor

            self._processor = SentencePieceProcessor(model_proto=model)

    @classmethod
    def read(cls, path: Path) -> "LabTokenizer":
        """Read a `dict.txt`, and the SentencePiece model in its folder if there is one."""
        tokens = []
        try:
            lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
            for number, line in enumerate(lines, start=1):
                token, _, count = line.rpartition(" ")
                if not token or not count.isdecimal():
                    raise ValueError(f"line {number} is {line[:60]!r}")
                tokens.append(token)
        except ValueError as error:  # also of bytes that are not UTF-8
            raise HeadstartError(
                f"this file does not have a token and its count in every line: {error}",
                where=path,
                fix="give the lab's dict.txt or a tokenizer.json",
            ) from error
        found = sorted(path.parent.glob("*.model"))
        try:
            return cls(tokens, *(model.read_bytes() for model in found))
        except (RuntimeError, TypeError) as error:  # not a model, or several
            names = ", ".join(model.name for model in found)
            raise HeadstartError(
                f"one SentencePiece model was expected, not {names}",
                where=path.parent,
                fix="keep only the .model file that tokenized the texts, as SentencePiece wrote it",
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return LabTokenizer, (self._tokens, self._model)

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        if self._model:  # else the words are the tokens
            tokenize = self._processor.encode
            texts = [t if "▁" in t else " ".join(tokenize(t, out_type=str)) for t in texts]
        return super().encode_arrays(texts)

    def save(self, path: Path) -> Path:
        path = path / "dict.txt" if path.is_dir() else path
        write_text(path, "".join(f"{token} 1\n" for token in self._tokens))
        if self._model:
            with replacing(path.with_name("sentencepiece.model")) as temporary:
                temporary.write_bytes(self._model)
        return path


def load_tokenizer(path: Path | str) -> Tokenizer:
    """Read a `tokenizer.json` or the lab's `dict.txt`, or a folder that holds one of them."""
    path = Path(path)
    if path.is_dir():
        lab = (path / "dict.txt").is_file() and not (path / "tokenizer.json").is_file()
        path = path / ("dict.txt" if lab else "tokenizer.json")
    if not path.is_file():
        raise HeadstartError(
            "there is no such tokenizer file",
            where=path,
            fix="check the path, or name a run of headstart pretrain",
        )
    return LabTokenizer.read(path) if path.suffix == ".txt" else Tokenizer.read(path)


TRAINED_SPECIALS = [names[0] for names in SPECIAL_NAMES.values()]
MIN_VOCAB_SIZE = 256 + len(TRAINED_SPECIALS)


def train_tokenizer(corpus: Iterable[str], *, vocab_size: int) -> Tokenizer:
    """Train a byte-level BPE tokenizer in one pass; a small corpus has fewer tokens."""
    if vocab_size < MIN_VOCAB_SIZE:
        specials = f"256 bytes and {len(TRAINED_SPECIALS)} special tokens"
        raise HeadstartError(
            f"a vocabulary of {vocab_size} is too small",
            fix=f"ask for at least {MIN_VOCAB_SIZE}: {specials}",
        )
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=TRAINED_SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(corpus, trainer)
    return Tokenizer(inner)


def hash_of(*parts: bytes) -> str:
    """Return one SHA-256 of several contents; the length of each is part of it."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
