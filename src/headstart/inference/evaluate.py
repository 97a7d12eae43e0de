"""Evaluate a fine-tuned run on rows that chose neither its weights nor its settings."""

from typing import Any

from safetensors.numpy import load_file

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.run_folder import VALIDATION, Run
from headstart.tasks.run import run_network


def evaluate(run: Run, part: Any, *, progress: ProgressCallback | None = None) -> dict[str, Any]:
    """The full evaluation of the run's answers for these labelled rows."""
    assert run.task is not None
    examples = run.task.encode(part, run.encoding)
    outputs = run_network(run.model, examples, progress=progress)
    path = run.folder / VALIDATION
    if not path.is_file():
        raise HeadstartError(
            "the run has no predictions for validation: its first epoch was not finished",
            where=run.folder,
            fix="continue it: headstart finetune --resume",
        )
    answers = run.task.join(outputs, examples)
    return {
        "rows": len(part),
        **run.task.evaluation(answers, part, load_file(path)),
        "cut": examples.cut,
    }
