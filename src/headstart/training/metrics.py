"""`metrics.jsonl`: one line a step, one more for each evaluation."""

import json
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.training.loop import Progress


class Metrics:
    """Appends lines; a resumed run first cuts off what its checkpoint does not know."""

    def __init__(self, path: Path, *, tensorboard: bool = False) -> None:
        self.path = path
        self._board = _open_board(path.parent / "tensorboard") if tensorboard else None

    def write(self, progress: Progress, *, evaluation: bool = False) -> None:
        line: dict[str, object] = {
            "step": progress.step,
            "tokens": progress.tokens,
            "seconds": round(progress.seconds, 3),
            "loss": progress.loss,
        }
        if evaluation:
            line["held_out"] = progress.evaluation
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self._board is not None:
            self._board.add_scalar("loss", progress.loss, progress.step)
            for name, value in progress.evaluation.items() if evaluation else ():
                self._board.add_scalar(f"held out/{name}", value, progress.step)

    def cut_after(self, step: int) -> None:
        """Keep the lines up to `step`; a line that a kill cut short goes too."""
        if self.path.is_file():
            kept = [line for line in read_metrics(self.path) if line["step"] <= step]
            write_text(self.path, "".join(json.dumps(line) + "\n" for line in kept))


def read_metrics(path: Path) -> list[dict[str, Any]]:
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break  # the last line of a killed run
    return lines


def _open_board(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise HeadstartError(
            "TensorBoard is not installed", fix="pip install 'headstart[tensorboard]'"
        ) from None
    return SummaryWriter(str(folder))
