"""Names on the Hugging Face Hub: one request for the revision, then its files, pinned to it.

`hf:owner/name` becomes `hf:owner/name@REVISION` in a recipe, so that a run can be repeated when the
model there has changed. Files go into the cache that all tools of Hugging Face share.
"""

import json
import re
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError

NAME = re.compile(r"(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?")
SMALL_FILES = ["config.json", "tokenizer*", "special_tokens_map.json", "vocab.*", "merges.txt"]
WEIGHTS = ("*.safetensors", "*.bin")  # in the order of preference


def find_folder(given: str) -> Path:
    """The folder that `hf:` was followed by, or the downloaded files of a name on the Hub."""
    folder = Path(given).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise HeadstartError("this is a file, and a folder was expected", where=folder)
    name, revision = _names(given)
    return _download(name, revision or _newest(name))


def pin(given: str) -> str:
    """What a recipe keeps: a folder as it is, a name with the revision that it has today."""
    if Path(given).expanduser().exists():
        return given
    name, revision = _names(given)
    return f"{name}@{revision or _newest(name)}"


def _names(given: str) -> tuple[str, str | None]:
    found = NAME.fullmatch(given)
    if found is None or given.startswith(("/", ".", "~")):
        raise HeadstartError(
            "there is no such folder",
            where=given,
            fix="name a folder (hf:PATH) or a model of the Hub (hf:owner/name)",
        )
    return found["name"], found["revision"]


def _newest(name: str) -> str:
    from huggingface_hub import HfApi

    try:
        return str(HfApi().model_info(name, timeout=10).sha)
    except Exception as error:  # the Hub's library passes on its transport's own errors
        raise _refused(name, error) or HeadstartError(
            "there is no such folder, and the Hugging Face Hub cannot be reached "
            f"({_first_line(error)})",
            where=f"hf:{name}",
            fix="check the path or the network; a folder that was downloaded is named by its path",
        ) from error


def _download(name: str, revision: str) -> Path:
    """The files of a revision: those of the cache, which need no network, or the Hub's.

    What an interrupted download left is kept, and completed by the next one.
    """
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    for weights in WEIGHTS:
        if (cached := _cached(name, revision, weights)) is not None:
            return cached
    for weights in WEIGHTS:
        found = _get(name, revision, weights)
        if any(found.glob(weights)):
            break
    return found


def _cached(name: str, revision: str, weights: str) -> Path | None:
    """The folder of a download that came to its end."""
    try:
        folder = _get(name, revision, weights, local_files_only=True)
    except HeadstartError:
        return None
    # Where another tool began the download, nobody noted which files belong to it.
    indexes = list(folder.glob(f"{weights}.index.json"))
    shards = {shard for index in indexes for shard in _shards(index)}
    there = {path.name for path in folder.iterdir()}
    whole = "config.json" in there and any(folder.glob(weights)) and shards <= there
    return folder if whole else None


def _shards(index: Path) -> set[str]:
    try:
        return set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError, AttributeError, TypeError):
        return set()  # its reader says what is wrong with it


def _get(name: str, revision: str, weights: str, **how: Any) -> Path:
    from huggingface_hub import snapshot_download

    wanted = [*SMALL_FILES, weights, f"{weights}.index.json"]
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=wanted, **how))
    except Exception as error:
        raise _refused(name, error) or HeadstartError(
            f"the download from the Hub did not come to its end ({_first_line(error)})",
            where=f"hf:{name}",
            fix="check the network and start the same command again: what was downloaded is kept",
        ) from error


def _refused(name: str, error: Exception) -> HeadstartError | None:
    """What the Hub itself has against a request."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if isinstance(error, GatedRepoError):
        return HeadstartError(
            "the Hub gives this model only to those who accepted its terms",
            where=f"hf:{name}",
            fix="accept them on its page, log in with: hf auth login, and try again",
        )
    if isinstance(error, RepositoryNotFoundError):
        return HeadstartError(
            "there is neither such a folder nor such a model on the Hub",
            where=f"hf:{name}",
            fix="check the name",
        )
    return None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
