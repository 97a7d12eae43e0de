"""Runs for stock `transformers`: `AutoModelFor…` and `pipeline` open them, without custom code."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import tokenizers
import torch
from safetensors.torch import save_file
from torch import Tensor

from headstart.config import FinetuneConfig, is_run
from headstart.data.tokenizers import Tokenizer
from headstart.errors import HeadstartError
from headstart.files import replacing, write_text
from headstart.interop.exporters import (
    Exporter,
    ExportOptions,
    Written,
)
from headstart.interop.huggingface.check import ExportedNetwork, compare_with_run
from headstart.interop.huggingface.family import Family, family_of_base
from headstart.interop.huggingface.foreign_config import CONFIG
from headstart.interop.huggingface.tensors import write_tensors
from headstart.interop.huggingface.tokenizer_files import tokenizer_files
from headstart.interop.measure import OutputDifference
from headstart.interop.model_card import pipeline_tag
from headstart.model.checkpoint import WEIGHTS
from headstart.model.config import ClassificationConfig, HeadConfig
from headstart.model.model import Model, swap_head
from headstart.model.presets import stock_head
from headstart.run import NetworkRun, Run
from headstart.training.callbacks import Callback
from headstart.training.initialization import fit_head, read_splits

PADDING = "[PAD]"
PROBLEM_TYPES = {
    "classification": "single_label_classification",
    "pairs": "single_label_classification",
    "multi-label": "multi_label_classification",
}


class HuggingFaceExporter(Exporter):
    """Llama, ModernBERT, BERT, RoBERTa, DistilBERT or GPT-2, whichever has the run's structure."""

    name: ClassVar[str] = "huggingface"

    def write(self, run: NetworkRun, folder: Path, options: ExportOptions) -> Written:
        if options.int8:
            raise HeadstartError(
                "transformers has no 8-bit form that opens everywhere",
                fix="leave --int8 out, or export with --to onnx --int8",
            )
        run, padded = with_padding(run), run.tokenizer.pad_id is None
        family = _family(run)
        head = run.model.head_config
        _refuse_head(family, run, head)
        temperature = run.temperature
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
            notes=_notes(run, temperature, padded=padded and run.tokenizer.pad_id is not None),
            reads_less=run.task is not None and run.long == "windows",
        )

    def prepare(self, run: NetworkRun) -> NetworkRun:
        head = run.model.head_config
        if not isinstance(head, ClassificationConfig):
            return run
        missing = _family(run).no_counterpart(run.model.base.config, head)
        return run if missing is None else fit_stock_head(run)

    def check(
        self, run: NetworkRun, folder: Path, options: ExportOptions
    ) -> list[OutputDifference]:
        return compare_with_run(with_padding(run), folder, run.temperature)

    def open(self, run: NetworkRun, folder: Path) -> Run:
        network: Any = ExportedNetwork(folder, run.temperature)
        return replace(with_padding(run), model=network, long="truncate")


EXPORTER = HuggingFaceExporter()


def fit_stock_head(run: NetworkRun) -> NetworkRun:
    """Fit the classification head of stock transformers to the run's frozen network.

    It is a linear probe on the run's own training rows, read as stock models read them: truncated
    to one window. The temperature is fitted on its validation rows.
    """
    base, own, task = run.model.base.config, run.model.head_config, run.require_task()
    assert own is not None
    if not is_run(run.folder):
        raise HeadstartError(
            "this run's head does not exist in transformers, and the run does not know its "
            "training rows, which another head could be fitted to",
            where=run.folder,
            fix="fine-tune with --head stock, or export with --to onnx",
        )
    splits = read_splits(FinetuneConfig.load(run.folder), Callback())
    model, _ = swap_head(copy.deepcopy(run.model), stock_head(own, base), seed=0)
    stock = replace(run, model=model.eval(), long="truncate", temperature=1.0)
    train = task.encode(splits.train, stock.encoding)
    fit_head(model, train, train.weights)
    scores = stock.scores(splits.validation).values
    temperature = task.fit_temperature(task.validation_arrays(scores, splits.validation))
    return replace(stock, temperature=temperature)


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


def with_padding(run: NetworkRun) -> NetworkRun:
    """A task's run with a padding piece of its own, where its tokenizer has none (GPT-2).

    To pad with the end of text would hide a text's own end: a classifier reads its last token.
    """
    tokenizer = run.tokenizer
    if run.task is None or tokenizer.pad_id is not None:
        return run
    inner = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    inner.add_special_tokens([PADDING])
    padded = Tokenizer(inner)
    model = copy.deepcopy(run.model)
    base = model.base
    rows = max(base.config.vocab_size, padded.vocab_size)
    table = base.embedding.weight.detach()
    grown = torch.cat([table, table.new_zeros(rows - len(table), table.size(1))])
    base.embedding = torch.nn.Embedding.from_pretrained(grown, freeze=False)
    spare = rows - padded.vocab_size
    base.config = replace(base.config, vocab_size=rows, vocab_padding=spare)
    return replace(run, model=model, tokenizer=padded)


def _family(run: NetworkRun) -> Family:
    found = family_of_base(run.model.base.config)
    if found is None:
        raise HeadstartError(
            "no model of transformers has the structure of this run's network",
            where=run.folder,
            fix="export it with --to onnx; the presets small, bert and gpt2 have counterparts",
        )
    return found


def _refuse_head(family: Family, run: NetworkRun, head: HeadConfig | None) -> None:
    if head is None:
        return
    name = family.architectures.get(head.kind, f"{family.model_types[0]} for {head.kind}")
    base = run.model.base.config
    missing, what = family.no_counterpart(base, head), "head"
    if missing is None:
        missing, what = family.pad_problem(base, run.tokenizer.pad_id), "tokenizer"
    if missing is not None:
        raise HeadstartError(
            f"this run's {what} has no counterpart in {name}: {missing.why}",
            where=run.folder,
            fix=missing.fix,
        )


def _special_ids(run: NetworkRun) -> dict[str, int]:
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


def _labels(run: NetworkRun) -> dict[str, Any]:
    if run.task is None or run.task.name == "spans":
        return {}
    labels = {
        "id2label": {str(number): label for number, label in enumerate(run.labels)},
        "label2id": {label: number for number, label in enumerate(run.labels)},
    }
    problem = PROBLEM_TYPES.get(run.task.name)
    return labels if problem is None else {**labels, "problem_type": problem}


def _notes(run: NetworkRun, temperature: float, *, padded: bool) -> list[str]:
    notes = [f"the tokenizer had no padding: a piece {PADDING} was added"] if padded else []
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


def _usage(run: NetworkRun, folder: Path) -> str:
    tag = pipeline_tag(run)
    return (
        "from transformers import pipeline\n\n"
        f'model = pipeline("{tag}", model="PATH OF THIS FOLDER")\n'
    )


def _json(values: dict[str, Any]) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"
