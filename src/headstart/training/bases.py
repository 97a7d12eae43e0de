"""The base that a training starts from: its fingerprint, and a copy of one of another source."""

import json
from pathlib import Path

from headstart.base_source import ORIGIN, source_of
from headstart.files import write_text
from headstart.model.checkpoint import CONFIG, WEIGHTS
from headstart.run_folder import open_run, save_run
from headstart.text.tokenizers.tokenizer import hash_of


def base_fingerprint(base: str) -> str:
    """A fingerprint of a base's weights."""
    found = source_of(base)
    if found is not None:
        return found[0].fingerprint(found[1])
    return hash_of((Path(base) / WEIGHTS).read_bytes())


def local_base(base: str, folder: Path) -> Path:
    """The folder of a base: its own, or for one of another source that of a copy.

    Parameters
    ----------
    base : str
        A run's folder, or `hf:…`.
    folder : Path
        Where the copy is kept; one that is there already is used again.
    """
    if source_of(base) is None:
        return Path(base)
    if not (folder / CONFIG).is_file():  # which is written last
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / ORIGIN, json.dumps({"base": base}) + "\n")
        save_run(open_run(Path(base)), folder)
    return folder
