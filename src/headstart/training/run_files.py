"""What a run writes down when it starts, so that a resume finds the same things again."""

import json
import shlex
from pathlib import Path
from typing import Any, TypeVar

from headstart.base_source import hf_fingerprint, hf_name
from headstart.config import (
    Config,
    FinetuneConfig,
    MachineSettings,
    check_new,
    is_run,
    read_settings,
)
from headstart.data.sources import check_outside
from headstart.errors import HeadstartError
from headstart.files import IDENTITY, read_object, write_text
from headstart.machine import resolve_machine
from headstart.model.checkpoint import WEIGHTS
from headstart.tasks.task import Parts
from headstart.text.tokenizers.tokenizer import Tokenizer, hash_of

PLAN_FILE = "plan.json"
C = TypeVar("C", bound=MachineSettings)


def start_config(config: C, folder: Path | None, *, resume: bool, sources: list[str]) -> C:
    """Check the config and the folder, and fill in what the machine decides.

    Parameters
    ----------
    sources : the files that are read; none may lie in the folder.
    """
    config.validate()
    if folder is not None:
        check_outside(folder, sources)
    if folder is not None and resume:
        config = config.resumed(folder)
    elif folder is not None:
        check_new(folder)
    return resolve_machine(config)


def write_start(
    folder: Path, config: Config, identity: dict[str, str], plan: dict[str, Any]
) -> None:
    """Write identity, plan and, last, the config: with it, the folder is a run."""
    write_text(folder / IDENTITY, json.dumps(identity, indent=2) + "\n")
    write_text(folder / PLAN_FILE, json.dumps(plan, indent=2, ensure_ascii=False) + "\n")
    config.save(folder)


def read_plan(folder: Path) -> dict[str, Any]:
    """Read the plan that a run was started with."""
    return read_object(folder / PLAN_FILE, fix="start the run again, in another folder")


def check_identity(identity: dict[str, str], folder: Path) -> None:
    """Reject a resume with other data than the run was started with."""
    path = folder / IDENTITY
    fix = "restore the file from a copy, or start another run"
    saved = read_object(path, fix=fix) if path.is_file() else {}
    for name, fingerprint in identity.items():
        if saved.get(name) != fingerprint:
            raise HeadstartError(
                f"the {name} is not the one that the run was started with",
                where=folder,
                fix=f"restore the {name}, or start another run",
            )


def dataset_identity(
    config: FinetuneConfig, splits: Parts[Any], tokenizer: Tokenizer
) -> dict[str, str]:
    """Return fingerprints of the rows, the tokenizer and the base of a fine-tuning."""
    parts = [
        {name: value for name, value in vars(part).items() if value is not None}
        for part in (splits.train, splits.validation)
    ]
    identity = {
        "dataset": hash_of(json.dumps(parts, default=list).encode()),
        "tokenizer": tokenizer.fingerprint,
    }
    return identity if config.base is None else {**identity, "base": base_fingerprint(config.base)}


def base_fingerprint(base: str) -> str:
    """Return a fingerprint of a base's weights."""
    name = hf_name(base)
    if name is not None:
        return hf_fingerprint(name)
    return hash_of((Path(base) / WEIGHTS).read_bytes())


def overlap_note(config: FinetuneConfig) -> str | None:
    """Return a warning, if the base may have read texts that it will be evaluated on.

    A base whose pretraining was given the dataset (`task_text`) has not read its held-out texts,
    unless they are split in another way here. A base that continued another one has read that
    one's corpus, too.
    """
    default_split = not (config.validation or config.test or config.split_seed)
    datasets = {Path(one).resolve() for one in config.dataset}
    corpora: list[str] = []
    seen: set[str] = set()
    base = None if config.fresh else config.base
    while base is not None and base not in seen and is_run(Path(base)):
        seen.add(base)
        settings = read_settings(Path(base))
        task_text = str(settings.get("task_text", ""))
        removed = task_text and default_split and Path(task_text).resolve() in datasets
        if not removed:
            corpora += [str(one) for one in settings.get("corpus", []) if one not in corpora]
        base = settings.get("base")
    if not corpora:
        return None
    columns = {"--text-column": config.text_column, "--label-column": config.label_column}
    task = {} if config.task == "classification" else {"--task": config.task}
    named = [word for pair in {**task, **columns}.items() if pair[1] for word in pair]
    command = ["headstart", "inspect", *config.dataset, *named, "--corpus", corpora[0]]
    return (
        f"the base was pretrained on {', '.join(corpora)}, which may contain validation or test "
        f"texts: check with {shlex.join(map(str, command))}; headstart pretrain --task-text "
        f"{shlex.quote(config.dataset[0])} removes them"
    )
