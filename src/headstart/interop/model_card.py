"""The model card of an export: the Hub's YAML, what it is, how to open it, what was compared."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.files import write_text
from headstart.run_folder import SUMMARY, Run, read_summary
from headstart.training.recipe_file import FILE, read_values

if TYPE_CHECKING:
    from headstart.interop.exporters import OutputDifference, Written

CARD = "README.md"
# The Hub's names of what a model does, by the kind of its head.
PIPELINES = {
    "classification": "text-classification",
    "tagging": "token-classification",
    "spans": "question-answering",
    "masked_next_sentence": "fill-mask",
}


def pipeline_tag(run: Run) -> str:
    """The Hub's name of what the run's model does."""
    head = run.model.head_config
    if head is not None and head.kind == "language_modeling":
        return "text-generation" if run.causal else "fill-mask"
    return PIPELINES.get("" if head is None else head.kind, "feature-extraction")


def write_export_card(
    run: Run, written: "Written", comparisons: "Sequence[OutputDifference]", folder: Path
) -> None:
    """Write the `README.md` of an export."""
    notes = "".join(f"- {note}\n" for note in written.notes)
    rows = "".join(
        f"| {one.inputs} | {one.difference:.2g} | {one.allowed:.2g} |\n" for one in comparisons
    )
    usage = f"```python\n{written.usage.strip()}\n```\n\n" if written.usage else ""
    write_text(
        folder / CARD,
        f"{_front_matter(run, written)}\n# {run.folder.name}\n\n"
        f"A run of Headstart, exported as `{written.model}`.\n\n{usage}"
        + (f"What differs from the run:\n\n{notes}\n" if notes else "")
        + "The export was opened again and compared with the run before it was kept:\n\n"
        f"| inputs | largest difference | allowed |\n|---|---|---|\n{rows}",
    )


def _front_matter(run: Run, written: "Written") -> str:
    recipe = read_values(run.folder) if (run.folder / FILE).is_file() else {}
    lines = [f"library_name: {written.library}", f"pipeline_tag: {pipeline_tag(run)}"]
    lines += ["tags:", "- headstart"]
    name, pinned, _ = str(recipe.get("base", "")).removeprefix("hf:").partition("@")
    if pinned:  # a name of the Hub; a folder is nobody else's
        lines.append(f"base_model: {_quoted(name)}")
    named = [name for name in recipe.get("dataset", recipe.get("corpus", [])) if _public(name)]
    if named:
        lines += ["datasets:", *(f"- {_quoted(name.removeprefix('hub:'))}" for name in named)]
    lines += _results(run, recipe)
    return "---\n" + "\n".join(lines) + "\n---\n"


def _results(run: Run, recipe: dict[str, Any]) -> list[str]:
    """What the best epoch reached on validation, where the run has kept it."""
    if run.task is None or not (run.folder / SUMMARY).is_file():
        return []
    found = read_summary(run.folder).get("validation", {}).get(run.task.metric)
    if not isinstance(found, float):
        return []
    dataset = ", ".join(Path(name).name for name in recipe.get("dataset", [])) or "unknown"
    return [
        "model-index:",
        f"- name: {_quoted(run.folder.name)}",
        "  results:",
        f"  - task: {{type: {pipeline_tag(run)}}}",
        f"    dataset: {{name: {_quoted(dataset)}, type: {_quoted(dataset)}, split: validation}}",
        f"    metrics: [{{type: {run.task.metric}, value: {found:.4f}}}]",
    ]


def _public(name: str) -> bool:
    """Whether a dataset is known by a name; where a person keeps a file is nobody's business."""
    return name.startswith("hub:") or name in ("imdb", "rotten-tomatoes")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
