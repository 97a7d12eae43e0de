"""The model card of an export: the Hub's YAML, what it is, how to open it, what was compared."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.config import is_run, read_settings
from headstart.files import write_text
from headstart.run import NetworkRun, read_summary

if TYPE_CHECKING:
    from headstart.interop.exporters import Written
    from headstart.interop.measure import ExportMetric, OutputDifference

CARD = "README.md"
# The Hub's names of what a model does, by the kind of its head.
PIPELINES = {
    "classification": "text-classification",
    "tagging": "token-classification",
    "spans": "question-answering",
    "masked_next_sentence": "fill-mask",
}


def pipeline_tag(run: NetworkRun) -> str:
    """The Hub's name of what the run's model does."""
    head = run.model.head_config
    if head is not None and head.kind == "language_modeling":
        return "text-generation" if run.causal else "fill-mask"
    return PIPELINES.get("" if head is None else head.kind, "feature-extraction")


def write_export_card(
    run: NetworkRun,
    written: "Written",
    comparisons: "Sequence[OutputDifference]",
    folder: Path,
    measured: "ExportMetric | None" = None,
) -> None:
    """Write the `README.md` of an export."""
    notes = "".join(f"- {note}\n" for note in written.notes)
    rows = "".join(
        f"| {one.inputs} | {one.difference:.2g} | {one.allowed:.2g} |\n" for one in comparisons
    )
    usage = f"```python\n{written.usage.strip()}\n```\n\n" if written.usage else ""
    write_text(
        folder / CARD,
        f"{_front_matter(run, written, measured)}\n# {run.folder.name}\n\n"
        f"A run of Headstart, exported as `{written.model}`.\n\n{usage}"
        + (f"What differs from the run:\n\n{notes}\n" if notes else "")
        + "The export was opened again and compared with the run before it was kept:\n\n"
        f"| inputs | largest difference | allowed |\n|---|---|---|\n{rows}"
        + ("" if measured is None else _metric_table(measured)),
    )


def _metric_table(measured: "ExportMetric") -> str:
    """The test metric of the export beside the run's."""
    rows = {"export": measured.export, "run": measured.run, "difference": measured.difference}
    lines = [
        f"\n| {measured.metric} on {measured.measured_on} | | 95 % interval |",
        "|---|---|---|",
    ]
    for name, one in rows.items():
        ends = f"{one.low:.2%} to {one.high:.2%}" if one.bounded else ""
        lines.append(f"| {name} | {one.value:.2%} | {ends} |")
    return "\n".join(lines) + "\n"


def _front_matter(run: NetworkRun, written: "Written", measured: "ExportMetric | None") -> str:
    recipe = read_settings(run.folder) if is_run(run.folder) else {}
    lines = [f"library_name: {written.library}", f"pipeline_tag: {pipeline_tag(run)}"]
    lines += ["tags:", "- headstart"]
    name, pinned, _ = str(recipe.get("base", "")).removeprefix("hf:").partition("@")
    if pinned:  # a name of the Hub; a folder is nobody else's
        lines.append(f"base_model: {_quoted(name)}")
    named = [name for name in recipe.get("dataset", recipe.get("corpus", [])) if _public(name)]
    if named:
        lines += ["datasets:", *(f"- {_quoted(name.removeprefix('hub:'))}" for name in named)]
    lines += _results(run, recipe, measured)
    return "---\n" + "\n".join(lines) + "\n---\n"


def _results(run: NetworkRun, recipe: dict[str, Any], measured: "ExportMetric | None") -> list[str]:
    """The test metric of the export, or else what the best epoch reached on validation."""
    if run.task is None:
        return []
    metric, split = {"type": run.task.metric}, "test"
    dataset = ", ".join(Path(name).name for name in recipe.get("dataset", [])) or "unknown"
    if measured is not None:
        one, dataset = measured.export, measured.dataset
        metric["value"] = f"{one.value:.4f}"
        if one.bounded:
            metric["name"] = _quoted(
                f"{run.task.metric} (95 % interval {one.low:.4f} to {one.high:.4f}, "
                f"{measured.rows:,} rows)"
            )
    else:
        split = "validation"
        found = read_summary(run.folder, default={})
        value = found.get("validation", {}).get(run.task.metric)
        if not isinstance(value, float):
            return []
        metric["value"] = f"{value:.4f}"
    return [
        "model-index:",
        f"- name: {_quoted(run.folder.name)}",
        "  results:",
        f"  - task: {{type: {pipeline_tag(run)}}}",
        f"    dataset: {{name: {_quoted(dataset)}, type: {_quoted(dataset)}, split: {split}}}",
        "    metrics: [{" + ", ".join(f"{key}: {value}" for key, value in metric.items()) + "}]",
    ]


def _public(name: str) -> bool:
    """Whether a dataset is known by a name; where a person keeps a file is nobody's business."""
    return name.startswith("hub:") or name in ("imdb", "rotten-tomatoes")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
