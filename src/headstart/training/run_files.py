"""The files that every training starts with: config, identity and plan.

They let a resume find the same things again; the plan holds every decision that depends on time.
"""

import json
from pathlib import Path
from typing import Any, TypeVar

from headstart.config import Config, MachineSettings, check_new, hf_name
from headstart.data.sources import check_outside
from headstart.data.tokenizers import hash_of
from headstart.errors import HeadstartError
from headstart.files import IDENTITY, read_object, write_text
from headstart.machine import resolve_machine
from headstart.model.checkpoint import WEIGHTS

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
        if resume:
            config = config.resumed(folder)
        else:
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


def base_fingerprint(base: str) -> str:
    """Return a fingerprint of a base's weights."""
    name = hf_name(base)
    if name is not None:
        from headstart.interop.huggingface import fingerprint

        return fingerprint(name)
    return hash_of((Path(base) / WEIGHTS).read_bytes())
