"""Checkpoints: complete or absent.

A checkpoint is a folder `step-00000400` with safetensors files and a `state.json` that holds their
checksums. It is written under another name, synced and renamed; only then is an older one removed.
Two are kept, in case a disk damages the newest.
"""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from headstart.errors import HeadstartError, explain
from headstart.files import sync
from headstart.model.checkpoint import check_weights, read_safetensors

STATE = "state.json"
KEPT = 2
_NAME = re.compile(r"step-\d+")
Tensors = dict[str, dict[str, Tensor]]  # by file, then by name


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self) -> list[Path]:
        """Return the folders of the checkpoints, the oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    def last_step(self) -> int:
        """Return the step of the newest checkpoint; 0 where there is none."""
        found = self.list()
        return _step(found[-1]) if found else 0

    def save(self, step: int, tensors: Tensors, state: dict[str, Any]) -> None:
        """Write the checkpoint of a step, then remove all but the newest two."""
        final = self.folder / f"step-{step:08d}"
        temporary = self.folder / f".{final.name}.part"
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            sums = {}
            for name, named in tensors.items():
                path = temporary / f"{name}.safetensors"
                save_file({key: value.contiguous() for key, value in named.items()}, path)
                sync(path)
                sums[name] = _sha256(path)
            content = {"step": step, "sha256": sums, "state": state}
            (temporary / STATE).write_text(json.dumps(content, indent=2), encoding="utf-8")
            sync(temporary / STATE)
            sync(temporary)
            shutil.rmtree(final, ignore_errors=True)  # of a run that repeats these steps
            temporary.replace(final)
            sync(self.folder)
        except (OSError, SafetensorError) as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise self._cannot_save(error) from error
        for old in self.list()[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def load(self, model: nn.Module) -> tuple[Tensors, dict[str, Any]]:
        """Read the newest checkpoint, if it is complete and fits the model."""
        found = self.list()
        if not found:
            raise HeadstartError(
                "there is no checkpoint to resume from",
                where=self.folder,
                fix="start the run again without --resume, in another folder",
            )
        newest = found[-1]
        try:
            content = json.loads((newest / STATE).read_text(encoding="utf-8"))
            sums, state = dict(content["sha256"]), dict(content["state"])
            complete = content["step"] == _step(newest) and {"model", "optimizer"} <= sums.keys()
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            complete = False
        if not complete:
            raise self._damaged(newest / STATE)
        tensors = {}
        for name, digest in sums.items():
            path = newest / f"{Path(name).name}.safetensors"
            if not path.is_file() or _sha256(path) != digest:
                raise self._damaged(path)
            tensors[name] = read_safetensors(path)
        check_weights(model, tensors["model"], where=newest)
        return tensors, state

    def _damaged(self, path: Path) -> HeadstartError:
        older = self.list()[:-1]
        fix = "start the run again without --resume, in another folder"
        if older:
            fix = f"delete {path.parent}; the run then resumes from step {_step(older[-1])}"
        return HeadstartError(
            "the checkpoint is damaged: it is not what was saved", where=path, fix=fix,
            code="damaged",
        )  # fmt: skip

    def _cannot_save(self, error: Exception) -> HeadstartError:
        explained = explain(error)
        what = str(error) if explained is None else explained.what
        found = self.list()
        last = (
            f"the checkpoint of step {_step(found[-1])} is complete"
            if found
            else "there is none yet"
        )
        return HeadstartError(
            f"a checkpoint could not be saved: {what}; {last}",
            where=self.folder,
            fix="make room, then resume with --resume",
            code="disk",
        )


def _step(folder: Path) -> int:
    return int(folder.name.removeprefix("step-"))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
