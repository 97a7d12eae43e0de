"""The lab's files: texts as SentencePiece tokens, and their labels.

Texts are tokens separated by spaces; "▁" marks the start of a word. `data.tokenizers.LabTokenizer`
reads the vocabulary `dict.txt`.
"""

from collections.abc import Iterator
from pathlib import Path

from headstart.data.tokenizers import WORD_START
from headstart.errors import HeadstartError
from headstart.text.reading.records import read_lines
from headstart.text.reading.sources import Reader, Source

# File names of the splits.
PARTS = {"train": "train", "validation": "valid", "test": "test"}


class LabReader(Reader):
    """Reads the lab's folder and single `.spm` files."""

    description = "SentencePiece tokens"
    suffixes = (".spm",)

    def find_parts(self, folder: Path) -> dict[str, Path]:
        if not (folder / "train.label").is_file():
            return {}
        files = {part: folder / f"{name}.review.spm" for part, name in PARTS.items()}
        found = {part: file for part, file in files.items() if file.is_file()}
        return found if "train" in found else {}

    def read_texts(self, source: Source, encoding: str) -> Iterator[str]:
        return map(join_tokens, read_lines(source, encoding))

    def read_labelled(self, source: Source, encoding: str) -> Iterator[tuple[str, str]]:
        """Yield (text, label) pairs; both files must have the same number of lines."""
        labels = _label_file(source)
        texts = list(self.read_texts(source, encoding))
        values = [line.strip() for line in read_lines(labels, encoding)]
        if len(texts) != len(values):
            raise HeadstartError(
                f"{len(texts):,} texts but {len(values):,} labels",
                where=f"{source.name} and {labels.name}",
                fix="both files must have one line for each text",
            )
        return zip(texts, values, strict=True)


READER = LabReader()


def join_tokens(line: str) -> str:
    """Return the text of a line of tokens."""
    return "".join(line.split(" ")).replace(WORD_START, " ").strip()


def _label_file(source: Source) -> Source:
    stem = source.file.name.split(".")[0]
    path = source.file.with_name(f"{stem}.label")
    if not path.is_file():
        raise HeadstartError(
            f"the labels are missing: there is no {path.name} in the same folder",
            where=source.name,
            fix="unlabelled text is given with --corpus",
            code="no-labels",
        )
    return Source(str(path), "text", path)
