"""Files of texts or CoNLL sentences and of their tags, as JSON Lines or CoNLL."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from headstart.inference.answer_files import Answered, FileForm, JsonLines, Rows, TextWriter
from headstart.inference.predict_tags import TaggedText, tag_words
from headstart.run_folder import Run
from headstart.text.reading.conll import LenientSentence, LenientSentences, ends_in_tags
from headstart.text.reading.lenient_rows import LenientRows
from headstart.text.reading.rows import ReadOptions
from headstart.text.reading.sources import kind_by_suffix
from headstart.text.tokenizers.words import split_words

NO_TAG = "_"  # of a word that was not read; CoNLL's own sign for what is not given


def tag_files(run: Run) -> FileForm:
    return FileForm(
        rows=partial(_rows, run.labels),
        answer=lambda rows: tag_words(run, [row.text for row in rows], [row.words for row in rows]),
        writers={".jsonl": partial(JsonLines, document=_document), ".conll": _Conll},
        unread=lambda answer: answer.unread,
    )


def _rows(tags: tuple[str, ...], source: str | Path, how: ReadOptions) -> Rows:
    """Sentences of a CoNLL file, or the texts of any other.

    Plain text is CoNLL if its lines end in tags that the run knows, else it has a text a line.
    """
    path = Path(source).expanduser()
    kind, _ = kind_by_suffix(path)
    conll = ".conll" in [suffix.lower() for suffix in path.suffixes[-2:]]
    if not conll and kind in ("text", None) and path.is_file():
        conll = ends_in_tags(path, how.encoding, tags)
    return LenientSentences(source, how.encoding) if conll else _Texts(source, how)


class _Texts(LenientRows):
    """Texts with their words."""

    def __iter__(self) -> Iterator[LenientSentence]:  # type: ignore[override]
        for row in super().__iter__():
            yield LenientSentence(*row, words=split_words(row.text))


def _document(row: LenientSentence, answer: TaggedText | None) -> dict[str, Any]:
    if answer is None:
        names = ("words", "tags", "probabilities", "entities")
        return {"text": row.text, **dict.fromkeys(names)}
    return {**vars(answer), "entities": [vars(one) for one in answer.entities]}


class _Conll(TextWriter):
    """A word and its tag a line; what could not be tagged is said in a line of comment."""

    def write(self, answered: Sequence[Answered]) -> None:
        for row, answer in answered:
            if answer is None:
                lines = [f"# row {row.number}: {row.problem}".replace("\n", " ")]
                words = [row.text[start:end] for start, end in row.words]
                lines += [f"{word}\t{NO_TAG}" for word in words if word.strip()]
            else:
                pairs = zip(answer.words, answer.tags, strict=True)
                lines = [f"{word}\t{tag or NO_TAG}" for word, tag in pairs]
            self.file.write("\n".join(lines) + "\n\n")
