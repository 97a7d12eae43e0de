"""Runs for stock `transformers`: `AutoModelFor…` and `pipeline` open them, without custom code."""

import json
from pathlib import Path
from typing import Any, ClassVar

from safetensors.torch import save_file
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.files import replacing, write_text
from headstart.interop.exporters import (
    Exporter,
    ExportOptions,
    OutputDifference,
    Written,
    fitted_temperature,
)
from headstart.interop.huggingface.check import compare_with_run
from headstart.interop.huggingface.family import Family, family_of_base
from headstart.interop.huggingface.foreign_config import CONFIG
from headstart.interop.huggingface.tensors import write_tensors
from headstart.interop.huggingface.tokenizer_files import tokenizer_files
from headstart.interop.model_card import pipeline_tag
from headstart.model.checkpoint import WEIGHTS
from headstart.model.config import HeadConfig
from headstart.model.model import Model
from headstart.run_folder import Run

PROBLEM_TYPES = {
    "classification": "single_label_classification",
    "pairs": "single_label_classification",
    "multi-label": "multi_label_classification",
}


class HuggingFaceExporter(Exporter):
    """Llama, ModernBERT, BERT, RoBERTa, DistilBERT or GPT-2, whichever has the run's structure."""

    name: ClassVar[str] = "huggingface"

    def write(self, run: Run, folder: Path, options: ExportOptions) -> Written:
        if options.int8:
            raise HeadstartError(
                "transformers has no 8-bit form that opens everywhere",
                fix="leave --int8 out, or export with --to onnx --int8",
            )
        family = _family(run)
        head = run.model.head_config
        _refuse_head(family, run, head)
        temperature = fitted_temperature(run)
        kind = "" if head is None else head.kind
        config = {
            "architectures": [family.architectures[kind]],
            "model_type": family.model_types[0],
            "dtype": "float32",
            "torch_dtype": "float32",  # its name in version 4
            **family.write_base(run.model.base.config),
            **({} if head is None else family.write_head(head)),
            **_special_ids(run),
            **_labels(run),
        }
        inputs = ["input_ids", "attention_mask"]
        inputs[1:1] = ["token_type_ids"] if family.token_types else []
        files = tokenizer_files(run, inputs=inputs)
        files[CONFIG] = _json(config)
        if pipeline_tag(run) == "text-generation":
            files["generation_config.json"] = _json(_special_ids(run))
        for name, content in files.items():
            write_text(folder / name, content)
        with replacing(folder / WEIGHTS) as temporary:
            tensors = export_tensors(family, run.model, temperature)
            save_file(tensors, temporary, metadata={"format": "pt"})
        return Written(
            model=family.architectures[kind],
            library="transformers",
            usage=_usage(run, folder),
            notes=_notes(run, temperature),
        )

    def check(self, run: Run, folder: Path, options: ExportOptions) -> list[OutputDifference]:
        return compare_with_run(run, folder, fitted_temperature(run))


EXPORTER = HuggingFaceExporter()


def export_tensors(family: Family, model: Model, temperature: float = 1.0) -> dict[str, Tensor]:
    """The model's tensors under their names there; the answers are divided by the temperature."""
    head, base = model.head_config, model.base.config
    ours = {name: value.detach() for name, value in model.named_parameters()}
    if temperature != 1.0:
        for name in ("head.output.weight", "head.output.bias"):
            if name in ours:
                ours[name] = ours[name] / temperature
    rules = family.base_rules(base, family.base_prefix(head))
    rules += [] if head is None else family.head_rules(base, head)
    return write_tensors(rules, ours)


def _family(run: Run) -> Family:
    found = family_of_base(run.model.base.config)
    if found is None:
        raise HeadstartError(
            "no model of transformers has the structure of this run's network",
            where=run.folder,
            fix="export it with --to onnx; the presets small, bert and gpt2 have counterparts",
        )
    return found


def _refuse_head(family: Family, run: Run, head: HeadConfig | None) -> None:
    if head is None:
        return
    name = family.architectures.get(head.kind, f"{family.model_types[0]} for {head.kind}")
    missing = family.no_counterpart(run.model.base.config, head)
    if missing is not None:
        raise HeadstartError(
            f"this run's head has no counterpart in {name}: {missing.why}",
            where=run.folder,
            fix=missing.fix,
        )


def _special_ids(run: Run) -> dict[str, int]:
    """Every id is given: the defaults of large models lie outside of small vocabularies."""
    named = {
        "pad": ("pad_token_id",),
        "begin": ("bos_token_id", "cls_token_id"),
        "end": ("eos_token_id",),
        "separator": ("sep_token_id",),
    }
    specials = run.tokenizer.specials
    found = {name: specials[role] for role, ns in named.items() if role in specials for name in ns}
    if "pad_token_id" not in found:
        found["pad_token_id"] = specials.get("end", 0)
    return found


def _labels(run: Run) -> dict[str, Any]:
    if run.task is None or run.task.name == "spans":
        return {}
    labels = {
        "id2label": {str(number): label for number, label in enumerate(run.labels)},
        "label2id": {label: number for number, label in enumerate(run.labels)},
    }
    problem = PROBLEM_TYPES.get(run.task.name)
    return labels if problem is None else {**labels, "problem_type": problem}


def _notes(run: Run, temperature: float) -> list[str]:
    notes = []
    if temperature != 1.0:
        notes.append(
            f"scores are divided by {temperature:.4g}, the temperature that fits validation: the "
            "same labels with better calibrated probabilities"
        )
    if run.task is not None and run.long == "windows":
        notes.append(
            f"the run reads longer texts in windows of {run.length} tokens and pools them all; "
            "here they are cut (truncation=True)"
        )
    return notes


def _usage(run: Run, folder: Path) -> str:
    tag = pipeline_tag(run)
    return (
        "from transformers import pipeline\n\n"
        f'model = pipeline("{tag}", model="PATH OF THIS FOLDER")\n'
    )


def _json(values: dict[str, Any]) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"
