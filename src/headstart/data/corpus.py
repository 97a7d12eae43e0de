"""Unlabelled text as a stream of documents: `Corpus`, made by `read_corpus`.

Memory does not grow with the size: documents are read one by one and never collected.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from headstart.data.columns import ReadOptions
from headstart.data.dataset import Text, as_text, batched
from headstart.data.overlap import CHECKED, HeldOutTexts, OverlapKind
from headstart.data.readers import TEXT_BYTES, embedded_file, hub_revision, open_rows, strict
from headstart.data.sources import Documents, Source, find_parts, find_sources, hash_content
from headstart.data.tokenizers import hash_of
from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback


class Corpus:
    """An iterable of documents that can be iterated several times."""

    def __init__(
        self,
        name: str,
        sources: Sequence[Source] = (),
        options: ReadOptions | None = None,
        unread_files: Sequence[str] = (),
    ) -> None:
        self.name, self.unread_files = name, unread_files
        # Documents that the last complete pass has dropped: without text, and due to `without`.
        self.empty = 0
        self.overlapping: Counter[OverlapKind] = Counter()
        self.task_text: list[str] = []  # comes after everything else
        self._sources = sources
        self._options = options or ReadOptions()
        self._held_out = HeldOutTexts([])
        self._task_overlapping: Counter[OverlapKind] = Counter()
        self._content: str | None = None  # hashes of the sources; copies share it

    def __iter__(self) -> Iterator[str]:
        empty, overlapping = 0, self._task_overlapping.copy()
        rows = (row for one in self._sources for row in strict(open_rows(one, self._options)))
        for batch in batched(str(row.text) for row in rows):
            for document, kind in zip(batch, self._held_out.find(batch), strict=True):
                if kind is not None:
                    overlapping[kind] += 1
                elif document:
                    yield document
                else:
                    empty += 1
        yield from self.task_text
        self._check_unchanged()
        self.empty, self.overlapping = empty, overlapping

    @property
    def is_task_text(self) -> bool:
        """Whether it holds nothing but the training texts of a task."""
        return not self._sources

    @property
    def fingerprint(self) -> str:
        """A hash of content and options; once it is known, reading changed files is an error."""
        if self._content is None:
            self._content = self._hash_sources()
        held_out = hash_of(CHECKED.encode(), *sorted(self._held_out.keys))
        task_text = hash_of(*(text.encode("utf-8", "surrogatepass") for text in self.task_text))
        return hash_of(self._content.encode(), held_out.encode(), task_text.encode())

    @property
    def size(self) -> int | None:
        """About how many bytes of text there are, for progress; None where that is not known."""
        if any(one.kind in ("hub", "parquet") or one.gzipped for one in self._sources):
            return None
        sizes = [TEXT_BYTES.get(one.name) or one.path.stat().st_size for one in self._sources]
        return sum(sizes) + sum(map(len, self.task_text))

    @property
    def found(self) -> list[str]:
        """How the sources are read, for the user to check."""
        kinds = Counter(open_rows(source, self._options).found for source in self._sources)
        return [
            f"{self.name}: {kind}" + (f" ({count:,} files)" if count > 1 else "")
            for kind, count in kinds.items()
        ]

    def without(self, texts: Iterable[Text]) -> "Corpus":
        """Return this corpus without the documents that overlap with `texts` (see `overlap.py`)."""
        smaller = copy(self)
        smaller._held_out = HeldOutTexts([*self._held_out.texts, *texts])
        return smaller.with_task_text(self.task_text)

    def with_task_text(self, texts: Iterable[str]) -> "Corpus":
        """Return this corpus followed by a task's training texts, as far as they do not overlap."""
        same, given = copy(self), list(texts)
        kinds = self._held_out.find(given)
        same.task_text = [t for t, kind in zip(given, kinds, strict=True) if kind is None]
        same._task_overlapping = Counter(kind for kind in kinds if kind is not None)
        return same

    def _hash_sources(self) -> str:
        settings: list[str | None] = [self._options.text_column, self._options.encoding]
        for source in self._sources:
            if source.kind == "hub":
                content = f"{source.name}@{hub_revision(source.name)}"
            elif source.kind == "embedded":
                content = f"{source.name} in {hash_content(embedded_file())}"
            else:
                content = hash_content(source.path)
            settings += [source.kind, str(source.gzipped), source.documents, content]
        return json.dumps(settings)

    def _check_unchanged(self) -> None:
        """Raise if a source is no longer what was hashed."""
        try:
            changed = self._content is not None and self._content != self._hash_sources()
        except OSError:  # a file is gone
            changed = True
        if changed:
            raise HeadstartError(
                "the corpus changed while it was being read",
                where=self.name,
                fix="wait until nothing writes to it any more, then run the command again",
            )


def with_progress(texts: Iterable[Any], progress: ProgressCallback | None = None) -> Iterator[Any]:
    """Yield texts; after each, report their bytes so far and, where it is known, the total."""
    done, size = 0, getattr(texts, "size", None)
    for text in texts:
        yield text
        if progress is not None:
            done += len(as_text(text).encode("utf-8", "surrogatepass"))
            progress(done, size)


def read_corpus(
    sources: str | Path | Sequence[str | Path],
    *,
    text_column: str | None = None,
    encoding: str = "utf-8",
    documents: Documents | None = None,
) -> Corpus:
    """Open files, folders or names as one corpus; nothing but the first document is read.

    A document of plain text is by default a line of a file that was named, and a whole file of a
    folder.
    """
    if documents is not None and documents not in get_args(Documents):
        raise HeadstartError(
            f"'{documents}' is not a way to separate documents",
            fix=f"--documents is one of {', '.join(get_args(Documents))}",
        )
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    found, unread = list[Source](), list[str]()
    for one in given:
        folder = Path(one).expanduser()
        if (folder / "train.label").is_file():
            # The lab's other parts are for validation and test: they must not be pretrained on.
            found += find_parts([one])[0]["train"]
            continue
        files, others = find_sources(one)
        how = documents or ("file" if folder.is_dir() else "line")
        found += [replace(file, documents=how) for file in files]
        unread += others
    options = ReadOptions(text_column, encoding=encoding)
    corpus = Corpus(", ".join(map(str, given)), found, options, unread)
    if next(iter(corpus), None) is None:
        raise HeadstartError("the corpus contains no text", where=corpus.name)
    return corpus
