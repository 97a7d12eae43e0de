"""What both scikit-learn estimators share: texts in any container, and pickles that hold a run."""

import inspect
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from headstart.errors import HeadstartError
from headstart.files import installed_version
from headstart.run import Run

PICKLE_FORMAT = 1  # raise it when this version could no longer be read by the one before
MARK = "headstart_pickle"


class TextEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator over texts whose pickle holds its run and names the version that wrote it."""

    def __getstate__(self) -> dict[str, Any]:
        return packed(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(unpacked(state, type(self)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def texts_of(texts: Any) -> list[str]:
    """Texts from a list, an array, a series, or a table (NumPy, pandas, Polars) of one column."""
    if isinstance(texts, str):
        raise ValueError("a list of texts is wanted, not one text")
    columns = getattr(texts, "columns", None)
    if columns is not None and not callable(columns):
        names = list(columns)
        if len(names) != 1:
            raise ValueError(
                f"a table of one column of texts is wanted; this has {len(names)}: "
                f"{', '.join(map(str, names[:10]))}. Choose one: X[['text']], or a "
                "ColumnTransformer"
            )
        texts = texts[names[0]]
    elif getattr(texts, "ndim", 1) == 2 and texts.shape[1] == 1:
        texts = texts[:, 0]
    rows = list(texts)
    for number, text in enumerate(rows):
        if not isinstance(text, str):
            raise ValueError(f"text {number} is not a string but a {type(text).__name__}")
    return [str(text) for text in rows]  # NumPy's own strings as plain ones


def packed(state: Mapping[str, Any]) -> dict[str, Any]:
    """An estimator's state for a pickle: the run as its files, with the version that wrote it."""
    kept = {**state, MARK: {"format": PICKLE_FORMAT, "headstart": installed_version()}}
    if "run_" in kept:
        with tempfile.TemporaryDirectory() as folder:
            kept["run_"].save(Path(folder))
            files = [path for path in Path(folder).rglob("*") if path.is_file()]
            kept["run_"] = {
                path.relative_to(folder).as_posix(): path.read_bytes() for path in files
            }
    return kept


def unpacked(state: Mapping[str, Any], estimator: type) -> dict[str, Any]:
    """The state from a pickle of this version or an older one; of a newer one, an error says so.

    A parameter that the older version did not have gets its default.
    """
    kept = dict(state)
    mark = kept.pop(MARK, {"format": 0})
    if mark["format"] > PICKLE_FORMAT:
        raise HeadstartError(
            f"Headstart {mark.get('headstart')} wrote this pickle, in format {mark['format']}; "
            f"this is Headstart {installed_version()}, which reads formats up to {PICKLE_FORMAT}",
            fix="install that version or a newer one: the pickle holds a run of its format",
        )
    for parameter in inspect.signature(estimator).parameters.values():
        if parameter.default is not inspect.Parameter.empty:
            kept.setdefault(parameter.name, parameter.default)
    if isinstance(files := kept.get("run_"), dict):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                path = Path(folder) / name
                if ".." in path.parts or Path(folder) not in path.parents:
                    raise HeadstartError(f"the pickle would write outside of its run: {name}")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            kept["run_"] = Run.open(Path(folder))
    return kept
