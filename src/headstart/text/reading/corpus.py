"""Unlabelled text as a stream of documents: `Corpus`, made by `read_corpus`.

Memory stays flat whatever the size: documents pass one by one and are never collected.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import get_args

import xxhash

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.text.checking.checks import checked_text
from headstart.text.checking.held_out import CHECKED, HeldOutCheck, HeldOutTexts, Holding
from headstart.text.reading.documents import Documents, read_documents
from headstart.text.reading.named_sources import TEXT_BYTES, embedded_file, hub_revision
from headstart.text.reading.rows import ReadOptions, open_rows
from headstart.text.reading.sources import Source, find_parts, find_sources
from headstart.text.reading.stream import ContentHashes, changed


class Corpus:
    """An iterable of documents that starts anew at every `iter`.

    `empty` and `left_out_by` count what the last complete pass dropped: documents without text,
    and those that hold a text given to `without`, by how they hold it.
    """

    def __init__(
        self, name: str, sources: Sequence[tuple[Source, Documents]], options: ReadOptions
    ) -> None:
        self.name = name
        self.unread_files: list[str] = []
        self.empty: int | None = None
        self.left_out_by: Counter[Holding] | None = None
        self._sources = list(sources)
        self._options = options
        self._held_out: HeldOutCheck | None = None
        self._task_left_out: Counter[Holding] = Counter()
        self.task_text = TextList([])  # also in the corpus, behind everything else
        self._hashes = ContentHashes()
        self._fingerprint: str | None = None

    def __iter__(self) -> Iterator[str]:
        empty, left_out = 0, self._task_left_out.copy()
        if self._held_out:
            # What the first pass finds holds as long as the files stay as they are.
            self._fingerprint = self.fingerprint
        for text, holding in _checked(self._held_out, self._documents()):
            if holding is not None:
                left_out[holding] += 1
            elif text:
                yield text
            else:
                empty += 1
        yield from self.task_text
        self._check_unchanged()
        self.empty, self.left_out_by = empty, left_out

    def _documents(self) -> Iterator[str]:
        for source, documents in self._sources:
            yield from self._read(source, documents)

    @property
    def is_task_text(self) -> bool:
        """Whether it holds nothing but the training texts of a task."""
        return not self._sources

    @property
    def fingerprint(self) -> str:
        """A hash of the content and of how it is read.

        Computed once, at disk speed. From then on a complete pass over a corpus whose files have
        changed ends in an error.
        """
        if self._fingerprint is None:
            self._fingerprint = self._compute_fingerprint()
        return self._fingerprint

    def _compute_fingerprint(self) -> str:
        hashed = xxhash.xxh3_128()
        settings = [self._options.text_column, self._options.encoding]
        for source, documents in self._sources:
            settings += [source.kind, str(source.gzipped), documents, self._hash(source)]
        hashed.update(json.dumps(settings).encode())
        if self._held_out:
            hashed.update(CHECKED.encode())
            for key in sorted(self._held_out.texts.keys):
                hashed.update(key)
        if self.task_text:
            hashed.update(self.task_text.fingerprint.encode())
        return hashed.hexdigest()

    def _hash(self, source: Source) -> str:
        if source.kind == "hub":
            return f"{source.name}@{hub_revision(source.name)}"
        if source.kind == "embedded":
            return f"{source.name} in {self._hashes.of(embedded_file())}"
        return self._hashes.of(source.file)

    def _check_unchanged(self) -> None:
        self._hashes.check_unchanged()
        of_hub = any(source.kind == "hub" for source, _ in self._sources)
        hashed = self._fingerprint
        if of_hub and hashed is not None and hashed != self._compute_fingerprint():
            raise changed(self.name)

    @property
    def size(self) -> int | None:
        """About how many bytes of text there are, for progress; None where only reading tells."""
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
        """How the sources were understood, for the person to check."""
        words = {
            "line": "one document per line",
            "blank-line": "documents between blank lines",
            "file": "one document per file",
        }
        kinds: dict[str, int] = {}
        for source, documents in self._sources:
            if source.kind == "text":
                kind = f"plain text, {words[documents]}"
            else:
                kind = open_rows(source, self._options, labelled=False).found
            kinds[kind] = kinds.get(kind, 0) + 1
        return [
            f"{self.name}: {kind}" + (f" ({count:,} files)" if count > 1 else "")
            for kind, count in kinds.items()
        ]

    @property
    def held_out_keys(self) -> frozenset[bytes]:
        """The fingerprints (`text_key`) of the texts that `without` was given."""
        return self._held_out.texts.keys if self._held_out else frozenset()

    @property
    def left_out(self) -> int | None:
        """How many documents the last complete pass dropped because of `without`."""
        return None if self.left_out_by is None else self.left_out_by.total()

    def without(self, texts: Iterable[str]) -> "Corpus":
        """The same corpus minus the documents that hold one of `texts`, such as a test part.

        A document holds a text that it equals, contains or nearly equals (`HeldOutTexts`).
        """
        smaller = self._copy()
        earlier = self._held_out.texts.texts if self._held_out else []
        smaller._held_out = HeldOutCheck(HeldOutTexts([*earlier, *texts]))
        return smaller._with_task_text(self.task_text)

    def with_task_text(self, texts: Iterable[str]) -> "Corpus":
        """The same corpus with the training texts of a task behind it, which are read most last.

        What `without` leaves out is left out of them, too.
        """
        return self._copy()._with_task_text(texts)

    def _with_task_text(self, texts: Iterable[str]) -> "Corpus":
        checked = list(
            _checked(HeldOutCheck(self._held_out.texts) if self._held_out else None, texts)
        )
        self.task_text = TextList(text for text, holding in checked if holding is None)
        self._task_left_out = Counter(holding for _, holding in checked if holding is not None)
        return self

    def _copy(self) -> "Corpus":
        same = Corpus(self.name, self._sources, self._options)
        same.unread_files, same._hashes = self.unread_files, self._hashes
        same._held_out, same.task_text = self._held_out, self.task_text
        return same

    def _read(self, source: Source, documents: Documents) -> Iterator[str]:
        encoding = self._options.encoding
        if source.kind == "text":
            yield from read_documents(source, documents, encoding)
        else:
            opened = open_rows(source, self._options, labelled=False)
            for row in opened.rows:
                yield checked_text(row.text, partial(opened.where, row.number, encoding))


def _checked(
    check: HeldOutCheck | None, texts: Iterable[str]
) -> Iterable[tuple[str, Holding | None]]:
    """Every text with how it holds a held-out one."""
    return check.check(texts) if check else zip(texts, repeat(None))


class TextList(list[str]):
    """Texts in memory as a corpus: documents, and a name for their content."""

    @property
    def fingerprint(self) -> str:
        hashed = xxhash.xxh3_128()
        for text in self:
            hashed.update(text.encode("utf-8", "surrogatepass"))
            hashed.update(b"\0")
        return hashed.hexdigest()


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
        The column of a table, where its name does not tell.
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
        path = Path(one).expanduser()
        if parts := find_parts(one):
            # The other parts are for validation and test: they must not be pretrained on.
            found.append((parts["train"], "line"))
            continue
        files, left = find_sources(one)
        found += [(file, documents or ("file" if path.is_dir() else "line")) for file in files]
        unread += left
    corpus = Corpus(
        ", ".join(str(one) for one in given), found, ReadOptions(text_column, None, encoding)
    )
    corpus.unread_files = unread
    if next(iter(corpus), None) is None:
        raise HeadstartError("there is no text in it", where=corpus.name)
    return corpus
