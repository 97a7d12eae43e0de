"""The base that a training starts from: fingerprint, corpus, and a copy of one from elsewhere."""

import json
from collections.abc import Sequence
from pathlib import Path

from headstart.base_source import ORIGIN, source_of
from headstart.files import write_text
from headstart.model.checkpoint import CONFIG, WEIGHTS
from headstart.run_folder import open_run, save_run
from headstart.text.tokenizers.tokenizer import hash_of
from headstart.training.recipe_file import FILE, read_values


def base_fingerprint(base: str) -> str:
    """A fingerprint of a base's weights."""
    found = source_of(base)
    if found is not None:
        return found[0].fingerprint(found[1])
    return hash_of((Path(base) / WEIGHTS).read_bytes())


def unchecked_corpus(base: str, dataset: Sequence[str]) -> str | None:
    """A sentence, if the base may have read the texts that a dataset is evaluated on.

    Pretraining that was told of the dataset (`--task-text`, or a study) left them out.
    """
    folder = Path(base)
    if source_of(base) is not None or not (folder / FILE).is_file():
        return None
    values = read_values(folder)
    corpus, told = values.get("corpus"), str(values.get("task_text", ""))
    if not corpus or (told and Path(told).resolve() in {Path(one).resolve() for one in dataset}):
        return None
    named, texts = dataset[0], ", ".join(corpus)
    return (
        f"the base's corpus ({texts}) may hold validation or test texts: headstart inspect {named} "
        f"--corpus {corpus[0]} looks; headstart pretrain --task-text {named} leaves them out"
    )


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
