"""Unlabelled text as a stream of documents: `Corpus`, made by `read_corpus`.

Memory does not grow with the size: documents are read one by one and never collected.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from hashlib import sha256
from itertools import chain, repeat
from pathlib import Path
from typing import Literal, get_args

from headstart.data.conll import SentenceRows
from headstart.data.dataset import Text, as_text, batched
from headstart.data.overlap import CHECKED, HeldOutTexts, OverlapKind
from headstart.data.readers import (
    TEXT_BYTES,
    ReadOptions,
    embedded_file,
    hub_revision,
    open_rows,
    read_document,
    strict,
)
from headstart.data.sources import (
    Source,
    find_parts,
    find_sources,
    hash_content,
)
from headstart.data.stream import LONGEST_DOCUMENT, Lines, check_text, too_long
from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback

Documents = Literal["line", "blank-line", "file"]  # what one document of a plain text file is
DOCUMENT_WORDS = {
    "line": "one document per line",
    "blank-line": "documents between blank lines",
    "file": "one document per file",
}


class TextList(list[str]):
    """Texts in memory as a corpus: documents, and a hash of their content."""

    @property
    def fingerprint(self) -> str:
        """A hash of the texts."""
        return sha256("\0".join(self).encode("utf-8", "surrogatepass")).hexdigest()


class Corpus:
    """An iterable of documents that starts anew at every `iter`.

    Parameters
    ----------
    name : what messages call it.
    sources : the files, each with what one of its documents is.
    options : how tables are read.

    Attributes
    ----------
    empty : how many documents without text the last complete pass has dropped.
    overlapping : how many it has dropped because of `without`, by kind of overlap.
    task_text : the training texts of a task, which come after everything else.
    unread_files : files of a folder that cannot be read.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[tuple[Source, Documents]] = (),
        options: ReadOptions | None = None,
    ) -> None:
        self.name = name
        self.unread_files: list[str] = []
        self.empty: int | None = None
        self.overlapping: Counter[OverlapKind] | None = None
        self.task_text = TextList([])
        self._sources = list(sources)
        self._options = options or ReadOptions()
        self._held_out: HeldOutTexts | None = None
        self._found: dict[int, OverlapKind] | None = None  # by position, from the first full pass
        self._task_overlapping: Counter[OverlapKind] = Counter()
        self._hashes: dict[Path, str] = {}  # shared by copies
        self._fingerprint: str | None = None

    def __iter__(self) -> Iterator[str]:
        empty, overlapping, place = 0, self._task_overlapping.copy(), 0
        found: dict[int, OverlapKind] = {}
        if self._held_out is not None:
            # What the first pass finds is valid as long as the files stay as they are.
            self._fingerprint = self.fingerprint
        for batch in batched(self._documents()):
            for document, kind in zip(batch, self._compare(batch, place), strict=True):
                if kind is not None:
                    overlapping[kind] += 1
                    found[place] = kind
                elif document:
                    yield as_text(document)
                else:
                    empty += 1
                place += 1
        yield from self.task_text
        self._check_unchanged()
        self.empty, self.overlapping, self._found = empty, overlapping, found

    @property
    def is_task_text(self) -> bool:
        """Whether it holds nothing but the training texts of a task."""
        return not self._sources

    @property
    def fingerprint(self) -> str:
        """A hash of the content and of how it is read.

        It is computed once. From then on a complete pass over a corpus whose files have changed
        ends in an error.
        """
        if self._fingerprint is None:
            self._fingerprint = self._compute_fingerprint()
        return self._fingerprint

    @property
    def size(self) -> int | None:
        """About how many bytes of text there are, for progress; None where that is not known."""
        sizes = []
        for source, _ in self._sources:
            if source.kind == "embedded":
                sizes.append(TEXT_BYTES[source.name])
            elif source.kind in ("hub", "parquet") or source.gzipped:
                return None
            else:
                sizes.append(source.file.stat().st_size)
        return sum(sizes) + sum(map(len, self.task_text))

    @property
    def found(self) -> list[str]:
        """How the sources are read, for the user to check."""
        kinds: Counter[str] = Counter()
        for source, documents in self._sources:
            if source.kind == "text":
                kinds[f"plain text, {DOCUMENT_WORDS[documents]}"] += 1
            elif source.kind == "conll":
                kinds["sentences of CoNLL files"] += 1
            else:
                kinds[open_rows(source, self._options).found] += 1
        return [
            f"{self.name}: {kind}" + (f" ({count:,} files)" if count > 1 else "")
            for kind, count in kinds.items()
        ]

    def without(self, texts: Iterable[Text]) -> "Corpus":
        """Return the same corpus minus the documents that overlap with `texts`.

        A document overlaps with a text that it equals, contains, is inside of or nearly equals.
        """
        earlier = self._held_out.texts if self._held_out is not None else []
        smaller = copy(self)
        smaller._held_out, smaller._found = HeldOutTexts([*earlier, *texts]), None
        return smaller.with_task_text(self.task_text)

    def with_task_text(self, texts: Iterable[str]) -> "Corpus":
        """Return the same corpus followed by the training texts of a task.

        What `without` drops is dropped from them, too.
        """
        same, given = copy(self), list(texts)
        same._fingerprint = None
        kinds = [None] * len(given) if self._held_out is None else self._held_out.find(given)
        same.task_text = TextList(t for t, kind in zip(given, kinds, strict=True) if kind is None)
        same._task_overlapping = Counter(kind for kind in kinds if kind is not None)
        return same

    def _documents(self) -> Iterator[str]:
        return (text for source, how in self._sources for text in self._read(source, how))

    def _compare(self, documents: Sequence[Text], place: int) -> Iterable[OverlapKind | None]:
        """Find how documents, the first of which is at `place`, overlap with held-out texts."""
        if self._held_out is None:
            return repeat(None, len(documents))
        if self._found is None:
            return self._held_out.find(documents)
        return map(self._found.get, range(place, place + len(documents)))

    def _read(self, source: Source, documents: Documents) -> Iterator[str]:
        """Yield every document of a source; one without text is empty."""
        encoding = self._options.encoding
        if source.kind == "conll":
            for sentence in SentenceRows(source, encoding):
                if sentence.problem is not None:
                    raise sentence.problem
                yield sentence.text
        elif source.kind == "text" and documents == "file":
            text, problem = read_document(source, encoding)
            yield _checked(text, encoding, problem, source.name)
        elif source.kind == "text" and documents == "blank-line":
            yield from self._paragraphs(source)
        else:
            for row in strict(open_rows(source, self._options)):
                yield str(row.text)

    def _paragraphs(self, source: Source) -> Iterator[str]:
        lines: list[str] = []
        first, length, encoding = 1, 0, self._options.encoding
        for number, line in enumerate(chain(Lines(source, encoding), [""]), start=1):
            if line.strip():
                first = first if lines else number
                lines.append(line)
                length += len(line)
                if length > LONGEST_DOCUMENT:
                    _checked("", encoding, too_long(), source.row(first))
            elif lines:
                yield _checked("\n".join(lines), encoding, None, source.row(first))
                lines, length = [], 0

    def _compute_fingerprint(self) -> str:
        settings: list[str | None] = [self._options.text_column, self._options.encoding]
        for source, documents in self._sources:
            settings += [source.kind, str(source.gzipped), documents, self._hash(source)]
        hashed = sha256(json.dumps(settings).encode())
        if self._held_out is not None:
            hashed.update(CHECKED.encode())
            for key in sorted(self._held_out.keys):
                hashed.update(key)
        if self.task_text:
            hashed.update(self.task_text.fingerprint.encode())
        return hashed.hexdigest()

    def _hash(self, source: Source) -> str:
        if source.kind == "hub":
            return f"{source.name}@{hub_revision(source.name)}"
        path = embedded_file() if source.kind == "embedded" else source.file
        if path not in self._hashes:
            self._hashes[path] = hash_content(path)
        digest = self._hashes[path]
        return f"{source.name} in {digest}" if source.kind == "embedded" else digest

    def _check_unchanged(self) -> None:
        """Raise if a file or a dataset of the Hub is no longer what was hashed."""
        for path, digest in self._hashes.items():
            if not path.is_file() or hash_content(path) != digest:
                raise _changed(path)
        of_hub = any(source.kind == "hub" for source, _ in self._sources)
        if of_hub and self._fingerprint not in (None, self._compute_fingerprint()):
            raise _changed(self.name)


def _changed(where: object) -> HeadstartError:
    return HeadstartError(
        "the corpus changed while it was being read",
        where=where,
        fix="wait until nothing writes to it any more, then run the command again",
    )


def _checked(text: str, encoding: str, problem: HeadstartError | None, where: str) -> str:
    found, wrong = check_text(text, encoding)
    problem = problem or wrong
    if problem is not None and problem.code != "empty":
        problem.where = problem.where or where
        raise problem
    return found


class ProgressCorpus:
    """A corpus that reports how many bytes of text were read, and of how many.

    Parameters
    ----------
    corpus : Corpus
    progress : callable
        Called after every document with the bytes so far and `corpus.size`.
    """

    def __init__(self, corpus: Corpus, progress: ProgressCallback) -> None:
        self._corpus = corpus
        self._progress = progress

    @property
    def fingerprint(self) -> str:
        """The corpus's hash."""
        return self._corpus.fingerprint

    def __iter__(self) -> Iterator[str]:
        done, size = 0, self._corpus.size
        for text in self._corpus:
            yield text
            done += len(text.encode("utf-8", "surrogatepass"))
            self._progress(done, size)


def read_corpus(
    sources: str | Path | Sequence[str | Path],
    *,
    text_column: str | None = None,
    encoding: str = "utf-8",
    documents: Documents | None = None,
) -> Corpus:
    """Open one or several files, folders or names as one corpus, in the order given.

    Parameters
    ----------
    sources : path, name or a list of them
    text_column : str, optional
        The column of a table; by default it is found by name or guessed.
    encoding : str
    documents : "line", "blank-line" or "file", optional
        What one document of a plain text file is; by default a line of a file that was named, and
        a whole file of a folder.

    Returns
    -------
    Corpus
        A stream of documents; nothing but the first one has been read.
    """
    if documents is not None and documents not in get_args(Documents):
        raise HeadstartError(
            f"'{documents}' is not a way to tell documents apart",
            fix=f"--documents is one of {', '.join(get_args(Documents))}",
        )
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    found: list[tuple[Source, Documents]] = []
    unread: list[str] = []
    for one in given:
        folder = Path(one).expanduser()
        if (folder / "train.label").is_file():
            # The lab's other parts are for validation and test: they must not be pretrained on.
            found += [(source, "line") for source in find_parts([one]).train]
            continue
        files, others = find_sources(one)
        found += [(file, documents or ("file" if folder.is_dir() else "line")) for file in files]
        unread += others
    corpus = Corpus(
        ", ".join(str(one) for one in given), found, ReadOptions(text_column, encoding=encoding)
    )
    corpus.unread_files = unread
    if next(iter(corpus), None) is None:
        raise HeadstartError("there is no text in it", where=corpus.name)
    return corpus
