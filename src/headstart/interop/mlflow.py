"""A run, or its export to ONNX, as an MLflow `pyfunc` model: files and a loader, no pickled code.

MLflow keeps a copy of the folder, the name of this module, and the signature of inputs and answers;
`mlflow.pyfunc.load_model` calls `_load_pyfunc` with the copy.
"""

import importlib.util
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import HeadstartError
from headstart.files import installed_version
from headstart.predictions import flat_prediction
from headstart.run import Run

if TYPE_CHECKING:
    import pandas as pd

ANSWER = "answer"  # the column of answers that are no classes, as JSON


def save_model(run: str | Path, path: str | Path) -> None:
    """Write an MLflow model of a run that predicts.

    Parameters
    ----------
    run : the folder of a fine-tuned run, of a study's best, or of an export to ONNX.
    path : the new folder; `mlflow.pyfunc.load_model(path)` opens it, and
        `mlflow.pyfunc.log_model` takes the same arguments for a tracking server.
    """
    if importlib.util.find_spec("mlflow") is None:
        raise HeadstartError("MLflow is not installed", fix="pip install 'headstart[mlflow]'")
    import mlflow.pyfunc

    opened = Run.open(Path(run).expanduser())
    kind = opened.facts()["kind"]
    version = installed_version()
    package = "headstart[onnx]" if kind == "onnx" else "headstart"
    with tempfile.TemporaryDirectory() as folder:
        opened.save(Path(folder) / "run")
        mlflow.pyfunc.save_model(
            path,
            loader_module=__name__,
            data_path=str(Path(folder) / "run"),
            signature=signature_of(opened),
            pip_requirements=[package if version == "unknown" else f"{package}=={version}"],
            metadata={"headstart": {"kind": kind, "task": opened.require_task().name}},
        )


def signature_of(run: Run) -> Any:
    """What the model reads and returns, as MLflow states it."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    task = run.require_task()
    inputs = [ColSpec("string", name) for name in task.input_names]
    outputs = [ColSpec("string", ANSWER)]
    if run.explains:
        label, *probabilities = flat_prediction(task, None)
        outputs = [ColSpec("string", label), *(ColSpec("double", one) for one in probabilities)]
    return ModelSignature(Schema(inputs), Schema(outputs))


class PyfuncModel:
    """Texts in a table in, answers in a table out."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.task = run.require_task()

    def predict(
        self, model_input: "pd.DataFrame", params: dict[str, Any] | None = None
    ) -> "pd.DataFrame":
        """One row of answers per row; the columns are those of the signature."""
        import pandas as pd

        columns = self.task.input_names
        if missing := [name for name in columns if name not in model_input.columns]:
            raise HeadstartError(
                f"the table has no column {' and no '.join(missing)}",
                fix=f"name its columns {', '.join(columns)}",
            )
        table = model_input[list(columns)].to_numpy(dtype=object)
        rows = [tuple(map(str, row)) if len(columns) > 1 else str(row[0]) for row in table]
        found = self.run.predict(rows)
        if self.run.explains:
            cells = [flat_prediction(self.task, one) for one in found]
            return pd.DataFrame(cells, columns=list(flat_prediction(self.task, None)))
        return pd.DataFrame({ANSWER: [json.dumps(one, ensure_ascii=False) for one in found]})


def _load_pyfunc(path: str) -> PyfuncModel:
    """What MLflow calls with the copy of the run."""
    return PyfuncModel(Run.open(Path(path)))
