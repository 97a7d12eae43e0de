"""Write runs for other tools: written, reopened, compared with the run, and only then saved."""

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from headstart.errors import HeadstartError
from headstart.files import check_folder, sync
from headstart.interop.measure import (
    ExportMetric,
    OutputDifference,
    TestRows,
    find_test_rows,
    measure_export,
)
from headstart.interop.model_card import write_export_card
from headstart.run import NetworkRun, Run


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What the user chose for an export."""

    int8: bool = False  # weights in 8 bits
    test: str | None = None  # labelled texts; by default the test part of the run's dataset


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an exporter wrote, for the model card."""

    model: str  # what kind of model it is there: "LlamaForCausalLM"
    library: str  # the Hub's name of the library that opens it
    usage: str = ""  # a few lines of Python that open it
    notes: list[str] = field(default_factory=list)  # what differs from the run, in words
    reads_less: bool = False  # long texts are cut that the run reads: its metric may differ


class Exporter(ABC):
    """One form that runs can be given. A new one is a subclass with `write` and `check`."""

    name: ClassVar[str]

    @abstractmethod
    def write(self, run: NetworkRun, folder: Path, options: ExportOptions) -> Written:
        """Write every file into `folder`, which is empty.

        A run that has no counterpart there is a `HeadstartError` with the way to get one.
        """

    @abstractmethod
    def check(
        self, run: NetworkRun, folder: Path, options: ExportOptions
    ) -> list[OutputDifference]:
        """Open what was written and compare its outputs with the run's."""

    def prepare(self, run: NetworkRun) -> NetworkRun:
        """Return the run as it is written: with another head, if its own does not exist there."""
        return run

    def open(self, run: NetworkRun, folder: Path) -> Run | None:
        """What was written, as a run that answers; None where that is not possible."""
        return None


REFITTED = (
    "the run's head does not exist there: the stock head was fitted to the run's frozen network, "
    "on its training rows (fine-tune with --head stock to train it together with the base)"
)
EXPORTERS = {
    "huggingface": "headstart.interop.huggingface.export",
    "onnx": "headstart.interop.onnx.export",
}


def find_exporter(name: str) -> Exporter:
    """Return the exporter of that name; an unknown one is an error that lists the known ones."""
    if name not in EXPORTERS:
        known = ", ".join(EXPORTERS)
        raise HeadstartError(f"runs cannot be exported to {name!r}", fix=f"choose one of: {known}")
    found: Exporter = import_module(EXPORTERS[name]).EXPORTER
    return found


def export_run(
    folder: Path, to: str, out: Path, options: ExportOptions | None = None
) -> dict[str, Any]:
    """Write a run in another tool's form, check it, and only then give it its name.

    Parameters
    ----------
    folder : Path
        A run.
    to : str
        The name of an exporter.
    out : Path
        A folder that does not exist yet or is empty.
    options : ExportOptions, optional

    Returns
    -------
    What was written, how far its outputs lie from the run's, and its test metric.
    """
    exporter, options = find_exporter(to), options or ExportOptions()
    _check_free(out, folder)
    run = NetworkRun.open(folder)
    test = find_test_rows(run, options.test)
    prepared = exporter.prepare(run)
    with _all_or_nothing(out) as temporary:
        written = exporter.write(prepared, temporary, options)
        comparisons = exporter.check(prepared, temporary, options)
        _refuse_differences(comparisons, folder)
        largest = max((one.difference for one in comparisons), default=None)
        exported = exporter.open(prepared, temporary) if run.task is not None else None
        measured = _measure(run, exported, test, written)
        if prepared is not run:
            written.notes.append(REFITTED)
        if run.task is not None and run.long == "windows" and not isinstance(test, str):
            windows = run.task.encode(test.part, run.encoding).rows
            share = f"{(windows > 1).mean():.1%} of {test.measured_on}"
            written.notes.append(f"{share} are longer than a window of {run.length} tokens")
        if measured is not None and not written.reads_less and prepared is run:
            comparisons.append(measured.compare(int8=options.int8))
            _refuse_differences(comparisons, folder)
        write_export_card(run, written, comparisons, temporary, measured)
    return {
        "run": str(folder),
        "to": to,
        "out": str(out),
        "model": written.model,
        "comparisons": [vars(one) for one in comparisons],
        "largest_difference": largest,
        "measured": None if measured is None else measured.document(),
        "notes": written.notes + ([] if measured is None else [measured.describe()]),
    }


def _measure(
    run: NetworkRun, exported: Run | None, test: TestRows | str, written: Written
) -> ExportMetric | None:
    """The test metric of run and export; where there is none, a note says why."""
    if exported is None:
        return None
    if isinstance(test, str):
        written.notes.append(f"its test metric was not measured: {test} (--test FILE)")
        return None
    return measure_export(run, exported, test)


def _check_free(out: Path, run: Path) -> None:
    check_folder(out)
    if out.resolve().is_relative_to(Path(run).resolve()):
        raise HeadstartError(
            "this folder is in the run's own folder", where=out, fix="choose another --out"
        )
    if out.is_dir() and any(out.iterdir()):
        raise HeadstartError(
            "there is something in this folder already", where=out, fix="choose another --out"
        )


@contextmanager
def _all_or_nothing(out: Path) -> Iterator[Path]:
    """A folder beside `out` that takes its place on success and is gone otherwise."""
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{out.name[:40]}.", suffix=".part", dir=out.parent))
    try:
        yield temporary
        temporary.chmod(0o755)  # mkdtemp's 0700 would lock out everyone else
        for file in temporary.iterdir():
            sync(file)
        if out.is_dir():
            out.rmdir()  # it is empty
        temporary.rename(out)
        sync(out.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _refuse_differences(comparisons: list[OutputDifference], folder: Path) -> None:
    failed = [one for one in comparisons if not one.passed]
    if failed:
        lines = [f"{c.inputs}: {c.difference:.2g}, allowed {c.allowed:.2g}" for c in failed]
        raise HeadstartError(
            "the export does not compute what the run computes, and was removed:\n  "
            + "\n  ".join(lines),
            where=folder,
            fix="report it, with the run's config.json: this should not happen",
        )
