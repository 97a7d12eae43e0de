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
from headstart.inference.predict import Predictor, predictor_of
from headstart.inference.predict.classes import ClassPredictor
from headstart.run_folder import open_task_run
from headstart.tasks.opened_run import OpenedRun

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {1: ("text",), 2: ("text", "second_text")}
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

    opened = open_task_run(Path(run).expanduser())
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
            metadata={"headstart": {"kind": kind, "task": _task(opened)}},
        )


def signature_of(run: OpenedRun) -> Any:
    """What the model reads and returns, as MLflow states it."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    predictor = predictor_of(run)
    inputs = [ColSpec("string", name) for name in _columns(predictor)]
    outputs = [ColSpec("string", ANSWER)]
    if isinstance(predictor, ClassPredictor):
        outputs = [
            ColSpec("string" if name == "label" else "double", name)
            for name in predictor.cells(None)
        ]
    return ModelSignature(Schema(inputs), Schema(outputs))


class PyfuncModel:
    """Texts in a table in, answers in a table out."""

    def __init__(self, run: OpenedRun) -> None:
        self.run = run
        self.predictor = predictor_of(run)

    def predict(
        self, model_input: "pd.DataFrame", params: dict[str, Any] | None = None
    ) -> "pd.DataFrame":
        """One row of answers per row; the columns are those of the signature."""
        import pandas as pd

        columns = _columns(self.predictor)
        if missing := [name for name in columns if name not in model_input.columns]:
            raise HeadstartError(
                f"the table has no column {' and no '.join(missing)}",
                fix=f"name its columns {', '.join(columns)}",
            )
        table = model_input[list(columns)].to_numpy(dtype=object)
        rows = self.predictor.read_texts([str(text) for row in table for text in row])
        answers = self.predictor.predict(rows)
        if isinstance(self.predictor, ClassPredictor):
            cells = [self.predictor.cells(answer) for answer in answers]
            return pd.DataFrame(cells, columns=list(self.predictor.cells(None)))
        documents = [self.predictor.document(answer) for answer in answers]
        return pd.DataFrame({ANSWER: [json.dumps(one, ensure_ascii=False) for one in documents]})


def _load_pyfunc(path: str) -> PyfuncModel:
    """What MLflow calls with the copy of the run."""
    return PyfuncModel(open_task_run(Path(path)))


def _columns(predictor: Predictor) -> tuple[str, ...]:
    task = predictor.task
    return ("question", "text") if task.name == "spans" else COLUMNS[task.texts_per_row]


def _task(run: OpenedRun) -> str:
    return "" if run.task is None else run.task.name
