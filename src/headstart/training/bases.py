"""The base that a training starts from: fingerprint, corpus, and a copy of one from elsewhere."""

import json
import shlex
from pathlib import Path

from headstart.base_source import ORIGIN, hf_fingerprint, hf_name
from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.model.checkpoint import CONFIG, WEIGHTS
from headstart.run import NetworkRun
from headstart.text.tokenizers.tokenizer import hash_of
from headstart.training.recipe import NONE, FinetuneRecipe
from headstart.training.recipe_file import read_values


def base_fingerprint(base: str) -> str:
    """A fingerprint of a base's weights."""
    found = hf_name(base)
    if found is not None:
        return hf_fingerprint(found)
    return hash_of((Path(base) / WEIGHTS).read_bytes())


def unchecked_corpora(recipe: FinetuneRecipe) -> list[str]:
    """What the base was pretrained on without leaving the dataset's held-out texts out.

    Those of a pretraining that was told of the dataset (`--task-text`) are the same texts only if
    its parts are cut in the usual way. A base that went on from another one has read that
    one's corpus, too.
    """
    usual_parts = not (recipe.validation or recipe.test or recipe.split_seed)
    datasets = {Path(one).resolve() for one in recipe.dataset}
    found: dict[str, None] = {}  # in this order, each once
    seen: set[Path] = set()  # a damaged recipe may name its own folder
    base = NONE if recipe.fresh else recipe.base
    while base != NONE and hf_name(base) is None and (folder := Path(base)) not in seen:
        seen.add(folder)
        try:
            values = read_values(folder)
        except HeadstartError:  # opening the base says what is wrong with it
            break
        told = str(values.get("task_text", ""))
        corpus = values.get("corpus", [])
        left_out = told and usual_parts and Path(told).resolve() in datasets
        if isinstance(corpus, list) and not left_out:
            found |= dict.fromkeys(map(str, corpus))
        base = str(values.get("base", NONE))
    return list(found)


def overlap_note(recipe: FinetuneRecipe) -> str | None:
    """A sentence, if the base may have read texts that it will be evaluated on."""
    corpora = unchecked_corpora(recipe)
    if not corpora:
        return None
    options = {
        "--task": "" if recipe.task == "classification" else recipe.task,
        "--text-column": recipe.text_column,
        "--label-column": recipe.label_column,
    }
    named = [word for option, value in options.items() if value for word in (option, value)]
    look = shlex.join(["headstart", "inspect", *recipe.dataset, *named, "--corpus", corpora[0]])
    read = ", ".join(corpora)
    note = f"the base has read {read}, which may hold validation or test texts: {look}"
    if named:  # which --task-text does not know
        return f"{note} tells"
    avoid = shlex.join(["headstart", "pretrain", "--task-text", recipe.dataset[0]])
    return f"{note} tells, and {avoid} leaves them out"


def local_base(base: str, folder: Path) -> Path:
    """The folder of a base: its own, or for one of another source that of a copy.

    Parameters
    ----------
    base : str
        A run's folder, or `hf:…`.
    folder : Path
        Where the copy is kept; one that is there already is used again.
    """
    if hf_name(base) is None:
        return Path(base)
    if not (folder / CONFIG).is_file():  # which is written last
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / ORIGIN, json.dumps({"base": base}) + "\n")
        NetworkRun.open(Path(base)).save(folder)
    return folder
