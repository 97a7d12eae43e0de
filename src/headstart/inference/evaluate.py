"""Judge a fine-tuned run on rows that neither weights nor settings were chosen by."""

from typing import Any

from safetensors.numpy import load_file

from headstart.errors import HeadstartError
from headstart.progress import ProgressCallback
from headstart.run_folder import VALIDATION, Run
from headstart.tasks.run import run_network


def evaluate(run: Run, part: Any, *, progress: ProgressCallback | None = None) -> dict[str, Any]:
    """All that is to be said about the run's answers for these labelled rows."""
    assert run.task is not None
    examples = run.task.encode(part, run.reading)
    outputs = run_network(run.model, examples, progress=progress)
    path = run.folder / VALIDATION
    if not path.is_file():
        raise HeadstartError(
            "the run has no answers for validation: it was not trained to its first epoch's end",
            where=run.folder,
            fix="go on with it: headstart finetune --resume",
        )
    answers = run.task.join(outputs, examples)
    return {
        "rows": len(part),
        **run.task.evaluation(answers, part, load_file(path)),
        "cut": examples.cut,
    }
