"""Names on the Hugging Face Hub: one request for the revision, then its files, pinned to it.

`hf:owner/name` becomes `hf:owner/name@REVISION` in a recipe, so that a run can be repeated when the
model there has changed. Files go into the cache that all tools of Hugging Face share.
"""

import json
import re
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError, need_packages

NAME = re.compile(r"(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?")
FILES = [
    *("config.json", "tokenizer*", "special_tokens_map.json", "vocab.*", "merges.txt", "*.model"),
    *("*.safetensors", "*.safetensors.index.json"),
]


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
    need_packages("hf", "huggingface_hub", "transformers")
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
    """Return the files of a revision: those of the cache, which need no network, or the Hub's.

    What an interrupted download left is kept, and completed by the next one.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    how: dict[str, Any] = {"revision": revision, "allow_patterns": FILES}
    try:
        folder = Path(snapshot_download(name, local_files_only=True, **how))
        if _complete(folder):
            return folder
    except Exception:
        pass  # not there yet
    try:
        return Path(snapshot_download(name, **how))
    except Exception as error:
        raise _refused(name, error) or HeadstartError(
            f"the download from the Hub did not come to its end ({_first_line(error)})",
            where=f"hf:{name}",
            fix="check the network and start the same command again: what was downloaded is kept",
        ) from error


def _complete(folder: Path) -> bool:
    """Whether all files are there; another tool may have downloaded some of them."""
    index = folder / "model.safetensors.index.json"
    wanted = {"config.json", "model.safetensors"}
    if index.is_file():
        content = json.loads(index.read_text(encoding="utf-8"))
        wanted = {"config.json", *content["weight_map"].values()}
    return all((folder / one).is_file() for one in wanted)


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
