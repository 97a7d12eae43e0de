"""Names on the Hugging Face Hub: one request for the revision, then its files, pinned to it.

`hf:owner/name` becomes `hf:owner/name@REVISION` in a recipe, so that a run can be repeated when the
model there has changed. Files go into the cache that all tools of Hugging Face share.
"""

import re
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError

NAME = re.compile(r"(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?")
SMALL_FILES = ["config.json", "tokenizer*", "special_tokens_map.json", "vocab.*", "merges.txt"]


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
        raise _unreachable(name, error) from error


def _download(name: str, revision: str) -> Path:
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    found = _get(name, revision, ["*.safetensors", "*.safetensors.index.json"])
    if any(found.glob("*.safetensors")):
        return found
    return _get(name, revision, ["*.bin", "*.bin.index.json"])


def _get(name: str, revision: str, weights: list[str]) -> Path:
    """The files of a revision: those of the cache, which need no network, or the Hub's."""
    from huggingface_hub import snapshot_download

    wanted: dict[str, Any] = {"revision": revision, "allow_patterns": SMALL_FILES + weights}
    try:
        cached = Path(snapshot_download(name, local_files_only=True, **wanted))
        if any(cached.glob(weights[0])):
            return cached
    except Exception:  # not there yet
        pass
    try:
        return Path(snapshot_download(name, **wanted))
    except Exception as error:
        raise _unreachable(name, error) from error


def _unreachable(name: str, error: Exception) -> HeadstartError:
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
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return HeadstartError(
        f"there is no such folder, and the Hugging Face Hub cannot be reached ({first})",
        where=f"hf:{name}",
        fix="check the path or the network; a folder that was downloaded is named by its path",
    )
