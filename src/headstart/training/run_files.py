"""The files of a training that a resume needs: config, identity, plan and checkpoints.

The plan holds every decision that depends on time, so that a resume finds the same ones again.

A checkpoint is complete or absent: one safetensors file, `step-00000400.safetensors`, with the
state of the training and a checksum in its metadata. It replaces nothing until it is complete; only
then is an older one removed. Two are saved, in case a disk damages the newest.
"""

import json
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from headstart.checksums import load_arrays, save_arrays
from headstart.config import Config, MachineSettings, check_new, hf_name
from headstart.data.sources import check_outside
from headstart.data.tokenizers import hash_of
from headstart.errors import HeadstartError
from headstart.files import IDENTITY, read_object, replacing, write_json
from headstart.machine import resolve_machine
from headstart.model.checkpoint import WEIGHTS, check_weights

PLAN_FILE = "plan.json"
SAVED = 2
AGAIN = "start the run again without --resume, in another folder"
Tensors = dict[str, dict[str, Tensor]]  # of the model, the optimizer …, by name
C = TypeVar("C", bound=MachineSettings)


def start_config(config: C, folder: Path | None, *, resume: bool, sources: list[str]) -> C:
    """Check config and folder, which must hold no source, and let the machine fill in the rest."""
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
    write_json(folder / IDENTITY, identity)
    write_json(folder / PLAN_FILE, plan)
    config.save(folder)


def read_plan(folder: Path) -> dict[str, Any]:
    """Read the plan that a run was started with."""
    return read_object(folder / PLAN_FILE, fix=AGAIN)


def check_identity(identity: dict[str, str], folder: Path) -> None:
    """Reject a resume with other data than the run was started with."""
    saved = read_object(folder / IDENTITY, fix="restore it, or start another run", default={})
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


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self) -> list[Path]:
        """Return the files of the checkpoints, the oldest first."""
        return sorted(self.folder.glob("step-[0-9]*.safetensors"))

    def last_step(self) -> int:
        """Return the step of the newest checkpoint; 0 where there is none."""
        found = self.list()
        return _step(found[-1]) if found else 0

    def save(self, step: int, tensors: Tensors, state: dict[str, Any]) -> None:
        """Write the checkpoint of a step, then remove all but the newest two."""
        arrays = {
            f"{kind}/{name}": one.detach().cpu().contiguous().numpy()
            for kind, named in tensors.items()
            for name, one in named.items()
        }
        try:
            with replacing(self.folder / f"step-{step:08d}.safetensors") as temporary:
                save_arrays(arrays, temporary, json.dumps(state))
        except (OSError, SafetensorError, HeadstartError) as error:
            last = self.last_step()
            complete = f"the checkpoint of step {last} is complete" if last else "there is none yet"
            raise HeadstartError(
                f"a checkpoint could not be saved: {getattr(error, 'what', error)}; {complete}",
                where=self.folder,
                fix="make room, then resume with --resume",
                code="disk",
            ) from error
        for old in self.list()[:-SAVED]:
            old.unlink(missing_ok=True)

    def load(self, model: nn.Module) -> tuple[Tensors, dict[str, Any]]:
        """Read the newest checkpoint, if it is complete and fits the model."""
        found = self.list()
        newest, fix = found[-1], AGAIN
        if len(found) > 1:
            fix = f"delete {newest}; the run then resumes from step {_step(found[-2])}"
        try:
            arrays, about = load_arrays(newest, fix=fix)
            state = dict(json.loads(about))  # a file without a checksum has none
        except (OSError, ValueError, RecursionError, TypeError, HeadstartError):
            raise HeadstartError(
                "the checkpoint is damaged: its content has changed",
                where=newest,
                fix=fix,
                code="damaged",
            ) from None
        tensors: Tensors = {}
        for name, array in arrays.items():
            kind, _, rest = name.partition("/")
            tensors.setdefault(kind, {})[rest] = torch.from_numpy(array)
        check_weights(model, tensors.get("model", {}), where=newest)
        return tensors, state


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))
