"""Runs for onnxruntime: `model.onnx`, its tokenizer, and a `config.json` that says the rest."""

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

from headstart.errors import HeadstartError, need_packages
from headstart.files import installed_version, replacing, write_text
from headstart.interop.exporters import (
    Exporter,
    ExportOptions,
    Written,
)
from headstart.interop.measure import OutputDifference
from headstart.model.config import ClassificationConfig
from headstart.run import EXPORTED, ROWS, NetworkRun, Run
from headstart.tasks.examples import between_texts

MODEL, CONFIG = EXPORTED, "config.json"
WINDOWS = "overflow_to_sample_mapping"  # as Hugging Face's tokenizers call it
FORMAT = 1  # raise it when this version could no longer be read by the one before
PACKAGES = ("onnx", "onnxruntime")
MOST_BYTES = 2**31 - 2**20  # of one protobuf file, with room for the nodes
USAGE = """
from headstart import load

run = load("FOLDER")  # docs/onnx.md reads it with onnxruntime and tokenizers alone
print(run.predict(["a text"]))
"""
LONGEST = 512  # computed positions have no end; the graph has this many, or more where needed


class OnnxExporter(Exporter):
    """A graph with dynamic batch and length; every preset, head and task of ours has one."""

    name: ClassVar[str] = "onnx"

    def write(self, run: NetworkRun, folder: Path, options: ExportOptions) -> Written:
        need_packages("onnx", *PACKAGES)
        _refuse(run, options)
        from headstart.interop.onnx.heads import network_graph

        config = export_config(run, options)
        graph = network_graph(
            run.model,
            config["max_length"],
            int8=options.int8,
            windows=WINDOWS in config["inputs"],
            temperature=config["temperature"],
        )
        with replacing(folder / MODEL) as temporary:
            temporary.write_bytes(graph.SerializeToString())
        config["tokenizer"] = run.tokenizer.save(folder).name
        write_config(config, folder)
        if (run.folder / ROWS).is_file():  # an evaluation leaves out what trained the run
            shutil.copyfile(run.folder / ROWS, folder / ROWS)
        return Written(
            model=f"ONNX graph, {config['precision']}",
            library="onnx",
            usage=USAGE,
            notes=_notes(run, config, folder),
        )

    def check(
        self, run: NetworkRun, folder: Path, options: ExportOptions
    ) -> list[OutputDifference]:
        from headstart.interop.onnx.check import compare_with_run

        return compare_with_run(run, folder, int8=options.int8)

    def open(self, run: NetworkRun, folder: Path) -> Run:
        from headstart.interop.onnx.exported_run import open_export

        return open_export(folder)


EXPORTER = OnnxExporter()


def export_config(run: NetworkRun, options: ExportOptions) -> dict[str, Any]:
    """What a reader of the graph has to know beside it."""
    assert run.task is not None
    base, head = run.model.base.config, run.model.head_config
    longest = max(run.length, LONGEST)
    encoding, inputs = run.encoding, ["input_ids", "attention_mask"]
    inputs += ["token_type_ids"] if base.token_types else []
    pooling = head.pooling if isinstance(head, ClassificationConfig) else None
    inputs += [WINDOWS] if run.long == "windows" and pooling is not None else []
    return {
        "export": "onnx",
        "format": FORMAT,
        "headstart": installed_version(),
        "precision": "int8" if options.int8 else "float32",
        "task": run.task.name,
        "labels": list(run.labels),
        "length": run.length,
        "long": run.long,
        "max_length": base.max_length if base.positions == "learned" else longest,
        "pooling": pooling,
        "inputs": inputs,
        "temperature": run.temperature,  # the graph's logits are divided by it already
        "before": encoding.before,
        "between": between_texts(encoding) if run.task.texts_per_row == 2 else [],
        "after": encoding.after,
    }


def write_config(config: dict[str, Any], folder: Path) -> None:
    """Write the `config.json` of an export."""
    write_text(folder / CONFIG, json.dumps(config, indent=2, ensure_ascii=False) + "\n")


def _refuse(run: NetworkRun, options: ExportOptions) -> None:
    if run.task is None:
        raise HeadstartError(
            "this run is a base: it has no head for a task, and ONNX graphs are written of tasks",
            where=run.folder,
            fix="fine-tune it first, or export it with --to huggingface",
        )
    count = sum(parameter.numel() for parameter in run.model.parameters())
    size = count * (1 if options.int8 else 4)
    if size > MOST_BYTES:
        raise HeadstartError(
            f"the weights take {size / 2**30:.1f} GB, and one ONNX file holds 2",
            where=run.folder,
            fix="export it with --to huggingface" + ("" if options.int8 else ", or with --int8"),
        )


def _notes(run: NetworkRun, config: dict[str, Any], folder: Path) -> list[str]:
    ours = sum(one.numel() * one.element_size() for one in run.model.parameters())
    size = (folder / MODEL).stat().st_size
    notes = [f"{MODEL} has {size / 1e6:.1f} MB; the run's weights {ours / 1e6:.1f} MB"]
    if config["temperature"] != 1.0:
        notes.append(
            f"logits are divided by the temperature {config['temperature']:.3f}, fitted on "
            "validation: their softmax is calibrated"
        )
    if config["precision"] == "int8":
        notes.append("weights and tokens in 8 bits, with a scale of each token's own")
    return notes
