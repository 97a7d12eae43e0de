"""Names on the Hugging Face Hub: one request for the revision, then its files, pinned to it.

`hf:owner/name` becomes `hf:owner/name@REVISION` in a recipe, so that a run can be repeated when the
model there has changed. Files go into the cache that all tools of Hugging Face share; what is there
already is not downloaded again.
"""

import re
from pathlib import Path

from headstart.errors import HeadstartError, need_packages

NAME = re.compile(r"(?P<name>\w[\w.-]*(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?")
FILES = [
    *("config.json", "tokenizer*", "special_tokens_map.json", "vocab.*", "merges.txt", "*.model"),
    *("*.safetensors", "*.safetensors.index.json"),
]


def find_folder(given: str) -> Path:
    """Return the folder that `hf:` was followed by, or the files of a model of the Hub."""
    folder = Path(given).expanduser()
    if folder.exists():
        return folder
    name, _, revision = pin(given).partition("@")
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=FILES))
    except Exception as error:
        raise _failed(name, error) from error


def pin(given: str) -> str:
    """Return what a recipe keeps: a folder as it is, a name with the revision of today."""
    if Path(given).expanduser().exists():
        return given
    found = NAME.fullmatch(given)
    if found is None:
        raise HeadstartError(
            "there is no such folder",
            where=given,
            fix="name a folder (hf:PATH) or a model of the Hub (hf:owner/name)",
        )
    need_packages("hf", "huggingface_hub", "transformers")
    if found["revision"]:
        return given
    from huggingface_hub import HfApi

    try:
        return f"{given}@{HfApi().model_info(given, timeout=10).sha}"
    except Exception as error:
        raise _failed(given, error) from error


def _failed(name: str, error: Exception) -> HeadstartError:
    """Explain an error of the Hub or of the way to it; their kinds have no common base."""
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    return HeadstartError(
        f"there is no such folder, and the Hugging Face Hub did not send this model ({reason})",
        where=f"hf:{name}",
        fix="check the name and the network, and start the same command again: what was downloaded "
        "is kept; a model with terms needs that you accept them on its page and log in with: hf "
        "auth login",
    )
