"""Export runs for other tools; an export is saved only if its outputs equal those of the run.

Also, the test metric of the export is measured on the same rows as that of the run.
"""

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstart.config import FinetuneConfig, is_run, read_settings
from headstart.data.readers import CREDITS
from headstart.errors import HeadstartError
from headstart.evaluation.metrics import Interval
from headstart.files import check_folder, sync
from headstart.model.config import ClassificationConfig
from headstart.model_card import CardScore, escape_markup, write_card
from headstart.run import NetworkRun, Run, drop_seen, evaluation_rows

EXPORTERS = {
    "huggingface": "headstart.interop.huggingface_export",
    "onnx": "headstart.interop.onnx_export",
}
MAX_ROWS = 2_000  # of a large test part: it is read twice
QUANTILE = 1.96  # of a normal distribution, for 95 %
# How far the metric may move: rounding turns a tie now and then, 8 bits a few predictions.
ALLOWED, ALLOWED_INT8 = 0.01, 0.1
# The Hub's names of what a model does, by the kind of its head.
PIPELINES = {
    "classification": "text-classification",
    "tagging": "token-classification",
    "spans": "question-answering",
    "masked_next_sentence": "fill-mask",
}


@dataclass(frozen=True)
class OutputDifference:
    """The largest difference between the outputs of an export and of its run."""

    inputs: str  # in words: "a batch of 3, padded on the right"
    difference: float
    allowed: float


@dataclass(frozen=True)
class TrialBatch:
    """Inputs of a run and of its export."""

    words: str
    tokens: Tensor  # (B, T)
    real: Tensor  # (B, T)
    token_types: Tensor | None = None
    owners: Tensor | None = None

    @torch.no_grad()
    def outputs(self, run: NetworkRun) -> Tensor:
        """Compute the run's outputs, divided by its temperature."""
        scores: Tensor = run.model(self.tokens, self.real, self.token_types, owners=self.owners)
        return scores.float() / run.temperature

    def compare(self, ours: Tensor, theirs: Tensor, allowed: float) -> OutputDifference:
        """Compute the largest difference where the texts are; large outputs may differ more."""
        if ours.ndim == 3:  # one row per token: what is in the padding means nothing
            ours, theirs = ours[self.real > 0], theirs[self.real > 0]
        size = max(1.0, float(ours.abs().max()))
        return OutputDifference(self.words, float((ours - theirs).abs().max()), allowed * size)


def trial_batches(run: NetworkRun) -> Iterator[TrialBatch]:
    """Yield batches of random tokens: one, many, padded on the right, pairs, and windows."""
    config = run.model.base.config
    longest = min(config.max_length, run.length) if config.positions == "learned" else run.length
    specials = set(run.tokenizer.specials.values())
    usable = torch.tensor([i for i in range(run.tokenizer.vocab_size) if i not in specials])
    random = torch.Generator().manual_seed(0)
    for words, rows, length in (
        ("one text of one token", 1, 1),
        (f"one text of {longest} tokens", 1, longest),
        ("a batch of 4 equally long texts", 4, min(24, longest)),
    ):
        tokens = usable[torch.randint(len(usable), (rows, length), generator=random)]
        yield TrialBatch(words, tokens, torch.ones_like(tokens))
    lengths = torch.tensor([length, 5, 1, 3]).clamp(max=length)
    real = (torch.arange(length) < lengths.unsqueeze(1)).long()
    yield TrialBatch("a batch of 4, padded on the right", tokens, real)
    yield TrialBatch("a batch of 4, padded on the left", tokens, real.flip(1))
    if config.token_types > 1:
        types = (torch.arange(length) >= length // 2).long().expand(4, -1).contiguous()
        yield TrialBatch("pairs with token types", tokens, real, types)
    if run.long == "windows" and isinstance(run.model.head_config, ClassificationConfig):
        owners = torch.tensor([0, 0, 0, 1])
        yield TrialBatch("a text in three windows and one in one", tokens, real, None, owners)


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written into a folder."""

    model: str  # what it is there: "LlamaForCausalLM"
    library: str  # the Hub's name of the library that opens it
    pipeline: str  # the Hub's name of what it does
    usage: str  # a few lines of Python that open it
    comparisons: list[OutputDifference]  # with the run's outputs
    notes: list[str] = field(default_factory=list)  # what differs from the run, in words
    run: Run | None = None  # the export, opened; None where its test metric cannot be measured
    same_metric: bool = True  # whether the test metric must be that of the run


def export_run(folder: Path | str, to: str, out: Path, *, int8: bool = False) -> dict[str, Any]:
    """Export a run for another tool, and check the export before it replaces `out`."""
    if to not in EXPORTERS:
        raise HeadstartError(
            f"runs cannot be exported to {to!r}", fix=f"choose one of: {', '.join(EXPORTERS)}"
        )
    check_folder(out)
    if out.resolve().is_relative_to(Path(folder).resolve()) or any(out.glob("*")):
        raise HeadstartError(
            "the folder is not empty, or it is inside of the run",
            where=out,
            fix="choose another --out",
        )
    run = Run.open(folder)
    if not isinstance(run, NetworkRun):
        raise HeadstartError(
            f"a {run.kind!r} classifier cannot be exported to {to}, because it is not a network",
            where=folder,
            fix="use it with headstart predict and headstart serve, or fine-tune a network: "
            "headstart finetune DATASET",
        )
    with _all_or_nothing(out) as temporary:
        exported = import_module(EXPORTERS[to]).export(run, temporary, int8=int8)
        comparisons, notes = list(exported.comparisons), list(exported.notes)
        largest, measured = max(one.difference for one in comparisons), None
        if exported.run is not None:
            try:
                measured = measure_export(run, exported.run)
                notes.append(measured["note"])
            except HeadstartError as error:
                notes.append(f"its test metric was not measured: {error.what}")
        if measured is not None and exported.same_metric:
            allowed = max(ALLOWED_INT8 if int8 else ALLOWED, 1.5 / measured["rows"])
            words = f"{measured['metric']} on {measured['measured_on']}"
            difference = abs(measured["difference"]["value"])
            comparisons.append(OutputDifference(words, difference, allowed))
        failed = [one for one in comparisons if not one.difference <= one.allowed]  # or NaN
        if failed:
            lines = [f"{c.inputs}: {c.difference:.2g}, allowed {c.allowed:.2g}" for c in failed]
            raise HeadstartError(
                "the export does not compute what the run computes, and was removed:\n  "
                + "\n  ".join(lines),
                where=folder,
                fix="fine-tune with --head stock, or export with --to onnx; if you did, report it "
                "with the run's config.json",
            )
        _write_card(run, exported, comparisons, notes, measured, temporary)
    return {
        "run": str(folder),
        "to": to,
        "out": str(out),
        "model": exported.model,
        "comparisons": [vars(one) for one in comparisons],
        "largest_difference": largest,
        "measured": measured,
        "notes": notes,
    }


@contextmanager
def _all_or_nothing(out: Path) -> Iterator[Path]:
    """Make a folder next to `out` that replaces it on success and is removed otherwise."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(".part", f".{out.name[:40]}.", out.parent) as folder:
        temporary = Path(folder) / "export"
        temporary.mkdir()
        yield temporary
        for file in temporary.iterdir():
            sync(file)
        if out.is_dir():
            out.rmdir()  # it is empty
        temporary.rename(out)
        sync(out.parent)


def measure_export(run: NetworkRun, exported: Run) -> dict[str, Any]:
    """Measure the test metric of run and export on the same rows, at most `MAX_ROWS`."""
    config, task = FinetuneConfig.load(run.folder), run.require_task()
    rows, _ = drop_seen(task, evaluation_rows(config, task)[0], run.folder)
    drawn = np.random.default_rng(0).permutation(len(rows))[:MAX_ROWS]
    rows = rows.pick(sorted(drawn.tolist()))
    # Where a person keeps a file is not for a model card: names without folders.
    names = ", ".join(Path(name).name for name in config.dataset)
    measured_on = f"{len(rows):,} rows of the test part of {names}"
    ours, theirs = (task.row_scores(one.scores(rows), rows)[task.metric] for one in (run, exported))
    difference = paired_difference(ours.per_row(), theirs.per_row())
    note = (
        f"{task.metric} on {measured_on}: {theirs.value:.2%}, the run's {ours.value:.2%}; "
        f"difference {100 * difference.value:+.2f} points (95 % CI "
        f"{100 * difference.low:+.2f} to {100 * difference.high:+.2f})"
    )
    if difference.high < 0:
        note += (
            ". The export is worse than the run: fine-tune with --head stock to export it exactly"
        )
    return {
        "metric": task.metric,
        "measured_on": measured_on,
        "rows": len(rows),
        "run": asdict(ours.interval()),
        "export": asdict(theirs.interval()),
        "difference": asdict(difference),
        "note": note,
    }


def paired_difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> Interval:
    """Compute how much larger the second mean of the same rows is (Bonett and Price 2012).

    Half a row is added to each kind of disagreement, so that equal columns have an interval, too.
    """
    away, rows = second - first, len(first) + 2
    middle = away.sum() / rows
    half = QUANTILE * math.sqrt(((away @ away + 1) / rows - middle**2) / rows)
    return Interval(float(away.mean()), float(middle - half), float(middle + half))


def pipeline_tag(run: NetworkRun) -> str:
    """Return the Hub's name of what the run's model does."""
    head = run.model.head_config
    if head is not None and head.kind == "language_modeling":
        return "text-generation" if run.causal else "fill-mask"
    return PIPELINES.get("" if head is None else head.kind, "feature-extraction")


def _write_card(
    run: NetworkRun,
    exported: Exported,
    comparisons: list[OutputDifference],
    notes: list[str],
    measured: dict[str, Any] | None,
    folder: Path,
) -> None:
    """Write the `README.md` of an export, with the data that the Hub reads."""
    settings = read_settings(run.folder) if is_run(run.folder) else {}
    name, pinned, _ = str(settings.get("base", "")).removeprefix("hf:").partition("@")
    used = settings.get("dataset", settings.get("corpus", []))
    public = [one for one in used if one.startswith("hub:") or one in CREDITS]
    scores = []
    if measured is not None:
        metric, on = measured["metric"], measured["measured_on"]
        named = {metric: measured["export"], f"{metric} of the run": measured["run"]}
        scores = [
            CardScore(who, one["value"], on, one["low"], one["high"]) for who, one in named.items()
        ]
    rows = [("inputs", "largest difference", "allowed")]
    rows += [(one.inputs, f"{one.difference:.2g}", f"{one.allowed:.2g}") for one in comparisons]
    write_card(
        folder,
        title=run.folder.name,
        facts={"exported as": exported.model},
        scores=scores,
        tables={"Opened again and compared with the run": rows},
        use=f"```python\n{exported.usage.strip()}\n```",
        limits=[escape_markup(note) for note in notes],
        data={
            "library_name": exported.library,
            "pipeline_tag": exported.pipeline,
            "tags": ["headstart"],
            "base_model": name if pinned else None,  # a folder is nobody else's
            "datasets": [one.removeprefix("hub:") for one in public] or None,
        },
    )
