"""Datasets of the Hugging Face Hub: `hub:owner/name` or `hub:owner/name/config`.

They are streamed: nothing stays on the disk. One quick question to the Hub comes first, because
`datasets` alone retries for half a minute where there is no network.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from headstart.errors import HeadstartError

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


def open_hub(source_name: str) -> HubDataset:
    """Ask the Hub for a dataset; every failure is one message."""
    owner_and_name, config = _names(source_name)
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        revision = HfApi().dataset_info(owner_and_name, timeout=_PATIENCE).sha
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
    return HubDataset(revision or "", splits)


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
