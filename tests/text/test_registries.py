"""A reader and a tokenizer from outside the package are found like our own."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from headstart.errors import HeadstartError
from headstart.text.reading.corpus import read_corpus
from headstart.text.reading.read import read_dataset
from headstart.text.reading.sources import Reader, has_parts, register_reader, unregister_reader
from headstart.text.tokenizers.tokenizer import (
    Tokenizer,
    TokenizerFormat,
    Tokens,
    load_tokenizer,
    register_tokenizer,
    unregister_tokenizer,
)


class Votes(Reader):
    """Texts with a `+` or a `-` in front; a folder has train.votes and dev.votes."""

    description = "votes"
    suffixes = (".votes",)

    def find_parts(self, folder: Path) -> dict[str, Path]:
        names = {"train": "train.votes", "validation": "dev.votes"}
        found = {part: folder / name for part, name in names.items() if (folder / name).is_file()}
        return found if "train" in found else {}

    def read_texts(self, source, encoding) -> Iterator[str]:
        return (text for text, _ in self.read_labelled(source, encoding))

    def read_labelled(self, source, encoding) -> Iterator[tuple[str, str]]:
        for line in source.file.read_text(encoding).splitlines():
            yield line[1:], {"+": "for", "-": "against"}[line[0]]


class Characters(Tokenizer):
    """Every character is a token."""

    vocab_size = 256
    fingerprint = "characters"

    def encode_arrays(self, texts: Sequence[str]) -> list[Tokens]:
        return [np.array([min(ord(c), 255) for c in text], dtype=self.dtype) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))

    def pieces(self, text: str) -> list[str]:
        return list(text)

    def vocabulary(self) -> list[str]:
        return list(map(chr, range(256)))

    def save(self, path: Path) -> Path:
        path = path / "characters.chars" if path.is_dir() else path
        path.write_text("")
        return path


@pytest.fixture
def votes():
    register_reader("votes", Votes())
    yield
    unregister_reader("votes")


@pytest.fixture
def characters():
    register_tokenizer(
        "characters", TokenizerFormat(".chars", "*.chars", lambda path: Characters())
    )
    yield
    unregister_tokenizer("characters")


TRAIN = "".join(f"{'+-'[n % 2]}speech number {n}\n" for n in range(20))


def test_a_registered_reader_reads_a_labelled_file(votes, write):
    splits = read_dataset(write("speeches.votes", TRAIN))
    assert splits.train.label_names == ("against", "for")
    assert splits.found == (f"{splits.found[0].split(':')[0]}: votes with labels",)


def test_the_parts_of_its_folder_are_found(votes, write):
    write("speeches/train.votes", TRAIN)
    folder = write("speeches/dev.votes", "+one more\n-yet another\n").parent
    splits = read_dataset(folder)
    assert splits.validation.texts == ["one more", "yet another"]
    assert has_parts(str(folder))


def test_as_a_corpus_only_its_training_part_is_read(votes, write):
    write("speeches/train.votes", TRAIN)
    folder = write("speeches/dev.votes", "+one more\n").parent
    assert list(read_corpus(folder)) == [f"speech number {n}" for n in range(20)]


def test_without_the_reader_the_file_is_of_an_unknown_kind(write):
    with pytest.raises(HeadstartError, match=r"'\.votes' files cannot be read"):
        read_dataset(write("speeches.votes", TRAIN))


def test_a_registered_tokenizer_is_read_from_its_file_and_its_folder(characters, tmp_path):
    path = Characters().save(tmp_path)
    for place in (path, tmp_path):
        assert load_tokenizer(place).encode(["ab"]) == [[97, 98]]


def test_a_name_is_given_once(votes):
    with pytest.raises(HeadstartError, match="the reader 'votes' exists already"):
        register_reader("votes", Votes())
    with pytest.raises(HeadstartError, match="the reader 'lab' exists already"):
        register_reader("lab", Votes())


def test_what_is_no_reader_is_refused():
    with pytest.raises(HeadstartError, match="is not a Reader but a str"):
        register_reader("mine", "module:name")


def test_an_installed_package_brings_a_reader_and_a_tokenizer(tmp_path, write):
    write("mine.py", "from tests.text.test_registries import *\nREADER = Votes()\n"
          "FORMAT = TokenizerFormat('.chars', '*.chars', lambda path: Characters())\n")  # fmt: skip
    write("mine-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    write(
        "mine-1.0.dist-info/entry_points.txt",
        "[headstart.readers]\nvotes = mine:READER\n\n[headstart.tokenizers]\nchars = mine:FORMAT\n",
    )
    data, tokenizer = write("speeches.votes", TRAIN), write("mine.chars", "")
    program = f"""if True:
        from headstart.text.reading.read import read_dataset
        from headstart.text.tokenizers.tokenizer import load_tokenizer
        print(read_dataset({str(data)!r}).train.label_names)
        print(type(load_tokenizer({str(tokenizer)!r})).__name__)
    """
    paths = [str(tmp_path), str(Path(__file__).parents[2]), *sys.path]
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {paths!r}\n{program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split("\n")[:2] == ["('against', 'for')", "Characters"]
