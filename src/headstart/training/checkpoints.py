"""Checkpoints: complete or absent.

A checkpoint is one safetensors file, `step-00000400.safetensors`, with the state of the training
and a checksum in its metadata. It replaces nothing until it is complete; only then is an older one
removed. Two are saved, in case a disk damages the newest.
"""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from headstart.checksums import KEY, checksum
from headstart.errors import HeadstartError
from headstart.files import replacing
from headstart.model.checkpoint import check_weights, weight_bytes

SAVED = 2
AGAIN = "start the run again without --resume, in another folder"
Tensors = dict[str, dict[str, Tensor]]  # of the model, the optimizer …, by name


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
        flat = {
            f"{kind}/{name}": one.detach().cpu().contiguous()
            for kind, named in tensors.items()
            for name, one in named.items()
        }
        content = json.dumps(state)
        metadata = {"state": content, KEY: checksum(weight_bytes(flat), content)}
        try:
            with replacing(self.folder / f"step-{step:08d}.safetensors") as temporary:
                save_file(flat, temporary, metadata=metadata)
        except (OSError, SafetensorError, HeadstartError) as error:
            last = self.last_step()
            complete = f"the checkpoint of step {last} is complete" if last else "there is none yet"
            what = getattr(error, "what", error)
            raise HeadstartError(
                f"a checkpoint could not be saved: {what}; {complete}",
                where=self.folder,
                fix="make room, then resume with --resume",
                code="disk",
            ) from error
        for old in self.list()[:-SAVED]:
            old.unlink(missing_ok=True)

    def load(self, model: nn.Module) -> tuple[Tensors, dict[str, Any]]:
        """Read the newest checkpoint, if it is complete and fits the model."""
        found = self.list()
        if not found:
            raise HeadstartError(
                "there is no checkpoint to resume from", where=self.folder, fix=AGAIN
            )
        newest = found[-1]
        try:
            with safe_open(newest, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                metadata = file.metadata()
            complete = metadata[KEY] == checksum(weight_bytes(tensors), metadata["state"])
            state = dict(json.loads(metadata["state"]))
        except (OSError, SafetensorError, ValueError, RecursionError, KeyError, TypeError):
            complete = False
        if not complete:
            fix = AGAIN
            if len(found) > 1:
                fix = f"delete {newest}; the run then resumes from step {_step(found[-2])}"
            raise HeadstartError(
                "the checkpoint is damaged: it is not what was saved", where=newest, fix=fix,
                code="damaged",
            )  # fmt: skip
        by_kind: Tensors = {}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition("/")
            by_kind.setdefault(kind, {})[rest] = tensor
        check_weights(model, by_kind.get("model", {}), where=newest)
        return by_kind, state


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))
