"""Checkpoints that carry everything and are whole or absent.

A checkpoint is a folder `step-00000400`: weights and optimizer state as safetensors, the rest as
JSON with the checksums of both. It is written under another name, synced and renamed; only then
is an older one removed. Two are kept, in case a disk damages the newest.
"""

import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from headstart.errors import HeadstartError
from headstart.explain_errors import explain
from headstart.files import sync
from headstart.model.checkpoint import check_weights, copy_weights, read_safetensors
from headstart.training.optimizer import restore_moments

WEIGHTS, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
AVERAGE = "average.safetensors"  # only where weights are averaged
KEPT = 2
_NAME = re.compile(r"step-\d+")


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint on disk."""

    folder: Path
    step: int


@dataclass(frozen=True)
class Saved:
    """What was read of a checkpoint; nothing of it is in a model yet."""

    weights: dict[str, Tensor]
    moments: dict[str, Tensor]
    state: dict[str, Any]

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Put it into a model that it fits, and its optimizer."""
        copy_weights(model, self.weights)
        restore_moments(optimizer, model, self.moments)


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self) -> list[Checkpoint]:
        """What is there, the oldest first."""
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        return [Checkpoint(path, int(path.name[5:])) for path in sorted(found)]

    def save(
        self,
        step: int,
        weights: dict[str, Tensor],
        moments: dict[str, Tensor],
        state: dict[str, Any],
        average: dict[str, Tensor] | None = None,
    ) -> Checkpoint:
        """Write the checkpoint of `step`; then remove all but the newest two."""
        final = self.folder / f"step-{step:08d}"
        temporary = self.folder / f".{final.name}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            sums = {
                WEIGHTS: _write(temporary / WEIGHTS, weights),
                OPTIMIZER: _write(temporary / OPTIMIZER, moments),
            }
            if average:
                sums[AVERAGE] = _write(temporary / AVERAGE, average)
            content = {"step": step, "sha256": sums, **state}
            (temporary / STATE).write_text(json.dumps(content, indent=2), encoding="utf-8")
            sync(temporary / STATE)
            sync(temporary)
            shutil.rmtree(final, ignore_errors=True)  # of a run that is repeated from before it
            temporary.replace(final)
            sync(self.folder)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise _cannot_save(error, self) from error
        for old in self.list()[:-KEPT]:
            shutil.rmtree(old.folder, ignore_errors=True)
        return Checkpoint(final, step)

    def read(self, model: nn.Module, average: dict[str, Tensor] | None = None) -> Saved:
        """The newest checkpoint, if it is whole and fits the model.

        Averaged weights are put into `average`.
        """
        found = self.list()
        if not found:
            raise HeadstartError(
                "there is no checkpoint to resume from",
                where=self.folder,
                fix="start the run anew without --resume, in another folder",
            )
        newest = found[-1]
        state = _read_state(newest, older=found[:-1])
        for name in dict.fromkeys((WEIGHTS, OPTIMIZER, *state["sha256"])):
            path = newest.folder / name
            if not path.is_file() or _sha256(path) != state["sha256"].get(name):
                raise _damaged(path, found[:-1])
        weights = read_safetensors(newest.folder / WEIGHTS)
        check_weights(model, weights, where=newest.folder / WEIGHTS)
        if average is not None and AVERAGE in state["sha256"]:
            device = next(model.parameters()).device
            for name, value in read_safetensors(newest.folder / AVERAGE).items():
                average[name] = value.clone().to(device)
        return Saved(weights, read_safetensors(newest.folder / OPTIMIZER), state)


def _write(path: Path, tensors: dict[str, Tensor]) -> str:
    save_file({name: value.contiguous() for name, value in tensors.items()}, path)
    sync(path)
    return _sha256(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_state(checkpoint: Checkpoint, *, older: list[Checkpoint]) -> dict[str, Any]:
    path = checkpoint.folder / STATE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise _damaged(path, older) from None
    whole = (
        isinstance(state, dict)
        and isinstance(state.get("sha256"), dict)
        and state.get("step") == checkpoint.step
        and isinstance(state.get("progress", {}), dict)
    )
    if not whole:
        raise _damaged(path, older)
    return state


def _damaged(path: Path, older: list[Checkpoint]) -> HeadstartError:
    if older:
        fix = f"delete {path.parent}; the run then resumes from step {older[-1].step}"
    else:
        fix = "start the run anew without --resume, in another folder"
    return HeadstartError(
        "the checkpoint is damaged: it is not what was saved", where=path, fix=fix
    )


def _cannot_save(error: Exception, checkpoints: Checkpoints) -> HeadstartError:
    told = explain(error)
    what = str(error) if told is None else told.what
    found = checkpoints.list()
    kept = f"the checkpoint of step {found[-1].step} is whole" if found else "there is none yet"
    return HeadstartError(
        f"a checkpoint could not be saved: {what}; {kept}",
        where=checkpoints.folder,
        fix="make room, then resume with --resume",
    )
