"""Runs for onnxruntime: `torch.onnx` writes the graph, and the result is compared with the run.

Weights in 8 bits are our own pass over that graph (`quantize`): onnxruntime's dynamic quantization
has one scale for a whole batch, so that a prediction depends on the other texts of its batch, and
its weight-only form is half as fast and twice as large. Here every token has its own scale.
"""

import copy
import logging
import shutil
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headstart.errors import HeadstartError, need_packages
from headstart.files import installed_version
from headstart.interop import onnx_run
from headstart.interop.export import (
    Exported,
    OutputDifference,
    TrialBatch,
    pipeline_tag,
    trial_batches,
)
from headstart.model.attention import SelfAttention, take
from headstart.model.base import FeedForward
from headstart.model.config import ClassificationConfig
from headstart.model.model import Model
from headstart.run import ROWS, NetworkRun
from headstart.training.initialization import embedding_run

OPSET = 23  # the first with RMSNormalization, RotaryEmbedding and Attention
MOST_BYTES = 2**31 - 2**20  # of one protobuf file, with room for the nodes
LONGEST = 512  # computed positions have no end; the graph has this many, or more where needed
LEVELS, WEIGHT_LEVELS, ZERO, TINY = 127, 63, 128, 1e-12
USAGE = """
from headstart import load

run = load("PATH OF THIS FOLDER")  # docs/export.md reads it with onnxruntime and tokenizers alone
print(run.predict(["a text"]))
"""
EMBEDDING_USAGE = """
from headstart import HeadstartEmbedder

embedder = HeadstartEmbedder("PATH OF THIS FOLDER")
print(embedder.fit_transform(["a text"]).shape)
"""
ALLOWED = 1e-4  # of the outputs' size: rounding adds up over the layers
# In 8 bits: what it costs in accuracy is measured.
ALLOWED_INT8 = 0.25
# Padding changes the rounding of a sum, which may tip a token's rounding to 8 bits.
ALLOWED_INT8_ALONE = 0.02
TEXTS = [
    "A short one.",
    "Le café était déjà fermé — dommage, n'est-ce pas ? (Oui.) [MASK]",
    "Москва не сразу строилась. 東京は日本の首都です。 مرحبا بالعالم 🙂",
]


def export(run: NetworkRun, folder: Path, *, int8: bool = False) -> Exported:
    """Write a run as an ONNX graph, and compare it; that of a base computes vectors of texts."""
    need_packages("onnx", "onnx", "onnxruntime", "onnxscript")
    count = sum(parameter.numel() for parameter in run.model.parameters())
    size = count * (1 if int8 else 4)
    if run.task is None:
        run = embedding_run(run)
    if size > MOST_BYTES:
        raise HeadstartError(
            f"the weights take {size / 2**30:.1f} GB, and one ONNX file holds 2",
            where=run.folder,
            fix="export it with --to huggingface" + ("" if int8 else ", or with --int8"),
        )
    config = export_config(run, int8=int8)
    graph = make_graph(
        run.model,
        config["inputs"],
        length=config["max_length"],
        output=onnx_run.output_name(run.task),
        temperature=run.temperature,
    )
    graph = quantize(graph) if int8 else graph
    written = onnx_run.OnnxRun(
        folder,
        graph.SerializeToString(),
        config,
        run.tokenizer,
        run.length,
        run.long,
        task=run.task,
    )
    written.save(folder)
    if (run.folder / ROWS).is_file():  # an evaluation drops the rows that trained the run
        shutil.copyfile(run.folder / ROWS, folder / ROWS)
    opened = onnx_run.open_export(folder)
    return Exported(
        model=f"ONNX graph, {config['precision']}",
        library="onnx",
        pipeline="feature-extraction" if run.task is None else pipeline_tag(run),
        usage=EMBEDDING_USAGE if run.task is None else USAGE,
        notes=[
            f"{onnx_run.MODEL} has {len(written.graph) / 1e6:.1f} MB; the run's weights "
            f"{4 * count / 1e6:.1f} MB"
        ],
        comparisons=compare(run, opened, int8=int8),
        run=None if run.task is None else opened,
    )


def export_config(run: NetworkRun, *, int8: bool) -> dict[str, Any]:
    """Return what a reader of the graph has to know."""
    base, head, encoding = run.model.base.config, run.model.head_config, run.encoding
    pooling = head.pooling if isinstance(head, ClassificationConfig) else None
    inputs = ["input_ids", "attention_mask"]
    inputs += ["token_type_ids"] if base.token_types > 1 else []
    inputs += [onnx_run.WINDOWS] if run.long == "windows" and pooling is not None else []
    longest = max(run.length, min(LONGEST, base.max_length))
    return {
        "export": "onnx",
        "format": onnx_run.FORMAT,
        "headstart": installed_version(),
        "precision": "int8" if int8 else "float32",
        "task": onnx_run.EMBEDDING if run.task is None else run.task.name,
        "labels": list(run.labels),
        "width": base.width * (2 if pooling == "mean+max" else 1),
        "length": run.length,
        "long": run.long,
        "max_length": base.max_length if base.positions == "learned" else longest,
        "pooling": pooling,
        "inputs": inputs,
        "temperature": run.temperature,  # the graph's logits are divided by it already
        "before": encoding.before,
        "between": encoding.between if run.task and len(run.task.input_names) == 2 else [],
        "after": encoding.after,
    }


def split_linear(layer: nn.Linear, parts: int) -> list[nn.Linear]:
    """Split a linear layer into layers with equal shares of its outputs."""
    found = []
    biases = [None] * parts if layer.bias is None else layer.bias.chunk(parts)
    for weight, bias in zip(layer.weight.chunk(parts), biases, strict=True):
        part = nn.Linear(layer.in_features, len(weight), bias=False)
        part.weight = nn.Parameter(weight)
        part.bias = None if bias is None else nn.Parameter(bias)
        found.append(part)
    return found


class ExportedAttention(nn.Module):
    """`SelfAttention` in one operator of ONNX, with the heads next to each other in (B, T, d).

    Transposing heads, and cutting queries, keys and values out of one product, takes a tenth of the
    time of a graph.
    """

    def __init__(self, attention: SelfAttention) -> None:
        super().__init__()
        self.heads, self.scale = attention.heads, attention.head_width**-0.5
        self.query, self.key, self.value = split_linear(attention.query_key_value, 3)
        self.output = attention.output

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        rotary: tuple[Tensor, Tensor] | None,
        cache: None = None,
        only_at: Tensor | None = None,
    ) -> Tensor:
        """Compute (B, T, d) → (B, T, d), or (B, 1, d) for the tokens `only_at` (B, 1)."""
        query, key = self.query(x if only_at is None else take(x, only_at)), self.key(x)
        if only_at is not None:
            mask = take(mask[:, 0], only_at).unsqueeze(1)
        if rotary is not None:
            rotate = partial(torch.onnx.ops.rotary_embedding, num_heads=self.heads)
            at = rotary if only_at is None else [take(part, only_at) for part in rotary]
            query, key = rotate(query, *at), rotate(key, *rotary)
        attended = torch.onnx.ops.attention(
            query,
            key,
            self.value(x),
            attn_mask=mask,
            q_num_heads=self.heads,
            kv_num_heads=self.heads,
            scale=self.scale,
        )
        return self.output(attended[0])


class ExportedFeedForward(nn.Module):
    """A gated `FeedForward` with two products instead of one that is cut in two."""

    def __init__(self, feed_forward: FeedForward) -> None:
        super().__init__()
        self.activation = feed_forward.activation
        self.gate, self.up = split_linear(feed_forward.up, 2)
        self.down = feed_forward.down

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.gate(x)) * self.up(x))


class ExportedBase(nn.Module):
    """A changed base for rows of `length` tokens, without operations that depend on values."""

    def __init__(self, base: Any, length: int) -> None:
        super().__init__()
        self.base, self.config, self.length = base, base.config, length
        if self.config.transformers is not None:
            return
        for block in base.blocks:
            block.attention = ExportedAttention(block.attention)
            if block.feed_forward.gated:
                block.feed_forward = ExportedFeedForward(block.feed_forward)
        for table in (base.positions, base.rotary):
            if table is not None:
                table(length, None)  # which may grow now, but not in the graph

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor,
        types: Tensor | None = None,
        only_at: Tensor | None = None,
    ) -> Tensor:
        """Compute hidden states (B, T, d), or (B, 1, d) at `only_at`; padding on either side."""
        base, length = self.base, tokens.size(1)
        if self.config.transformers is not None:
            given = {} if types is None else {"token_type_ids": types}
            if self.config.positions == "rotary":  # in every row: onnxruntime does not broadcast
                places = torch.arange(length, device=tokens.device)
                given["position_ids"] = places.expand(len(tokens), -1)
            hidden = base.inner(input_ids=tokens, attention_mask=mask, **given).last_hidden_state
            return hidden if only_at is None else take(hidden, only_at)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        seen = (mask > 0)[:, None, None].expand(-1, 1, length, -1)
        if self.config.attention == "causal":
            seen = seen & torch.ones(length, length, dtype=torch.bool).tril()
        seen = seen | torch.eye(length, dtype=torch.bool)  # a row of padding is not empty
        added = torch.where(seen, 0.0, -torch.inf)  # once, not in every layer
        x = base.embed(tokens, self.length, positions, types)
        rotary = None
        if base.rotary is not None:
            cosine, sine = base.rotary(self.length, positions).squeeze(1).chunk(2, dim=-1)
            half = cosine.size(-1) // 2  # both halves of a head turn by the same angles
            rotary = cosine[..., :half], sine[..., :half]
        for block in base.blocks[:-1]:
            x = block(x, added, rotary)
        x = base.blocks[-1](x, added, rotary, None, only_at)
        return base.final_norm(x)


class ExportedModel(nn.Module):
    """A copy of a model with a head or a pooling; outputs are divided by the temperature."""

    def __init__(self, model: Model, length: int, temperature: float) -> None:
        super().__init__()
        self.model, self.temperature = copy.deepcopy(model), temperature
        self.model.base = ExportedBase(self.model.base, length)  # type: ignore[assignment]

    def forward(
        self, tokens: Tensor, mask: Tensor, types: Tensor | None, owners: Tensor | None
    ) -> Tensor:
        """Compute logits (B, classes), or (B, T, ·) for heads that score tokens, or vectors."""
        return self.model(tokens, mask, types, owners=owners) / self.temperature


@torch.no_grad()
def make_graph(
    model: Model,
    inputs: list[str],
    *,
    length: int,
    output: str = "logits",
    temperature: float = 1.0,
) -> Any:
    """Write a model as an ONNX graph (an `onnx.ModelProto`)."""
    tokens = torch.arange(1, 7).repeat(2, 1) % model.base.config.vocab_size
    values = onnx_run.named_inputs(tokens, torch.ones_like(tokens))
    sizes = {name: {0: "batch", 1: "length"} for name in values} | {onnx_run.WINDOWS: {0: "batch"}}
    wrapper = ExportedModel(model, length, temperature).eval()
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)  # of the exporter and its libraries
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                wrapper,
                tuple(value if name in inputs else None for name, value in values.items()),
                dynamo=True,
                verbose=False,
                opset_version=OPSET,
                input_names=inputs,
                output_names=[output],
                dynamic_shapes=[sizes[name] if name in inputs else None for name in values],
            )
    except torch.onnx.errors.OnnxExporterError as error:
        first = str(error).strip().splitlines()[0]
        raise HeadstartError(
            f"torch.onnx cannot export this network: {first[:200]}",
            fix="export it with --to huggingface",
        ) from error
    finally:
        logging.disable(level)
    assert program is not None
    graph = program.model_proto
    for node in graph.graph.node:
        del node.metadata_props[:]  # where the node comes from: more bytes than small weights
    return graph


def quantize(model: Any) -> Any:
    """Rewrite products with constant matrices, and the embedding, in 8 bits.

    A product becomes one of whole numbers. Its input is rounded with a scale per token, computed
    in the graph, its weight with a scale per output. Weights use 7 of the 8 bits: so the sums of
    pairs fit into the 16 bits that CPUs without VNNI have for them, and every CPU computes the
    same.
    """
    from onnx import helper, numpy_helper

    graph = model.graph
    weights = {one.name: one for one in graph.initializer}
    nodes: list[Any] = []
    rounded_inputs: dict[str, tuple[str, str]] = {}

    def constant(name: str, value: NDArray[Any]) -> str:
        if name not in weights:
            weights[name] = numpy_helper.from_array(value, name)
        return name

    def add(operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    step = constant("int8.step", np.array(1 / LEVELS, dtype=np.float32))
    zero = constant("int8.zero", np.array(ZERO, dtype=np.uint8))
    for node in graph.node:
        name = node.input[1] if node.op_type == "MatMul" else ""
        if name in weights and len(weights[name].dims) == 2:
            x, y = node.input[0], node.output[0]
            if x not in rounded_inputs:
                axis = constant("int8.axis", np.array([-1], dtype=np.int64))
                largest = add("ReduceMax", [add("Abs", [x], f"{x}.abs"), axis], f"{x}.max")
                tiny = constant("int8.tiny", np.array(TINY, dtype=np.float32))
                largest = add("Max", [largest, tiny], f"{x}.largest")
                share = add("Div", [x, largest], f"{x}.share")
                tokens = add("QuantizeLinear", [share, step, zero], f"{x}.int8")
                rounded_inputs[x] = tokens, largest
            tokens, largest = rounded_inputs[x]
            whole, scale = _rounded(numpy_helper.to_array(weights.pop(name)).T, WEIGHT_LEVELS)
            weight = constant(f"{name}.int8", np.ascontiguousarray(whole.T))
            scales = constant(f"{name}.scale", scale[:, 0])
            given = [tokens, weight, step, scales, zero]
            product = add("MatMulIntegerToFloat", given, f"{y}.product", domain="com.microsoft")
            add("Mul", [product, largest], y)
        elif node.op_type == "Gather" and node.input[1] == "input_ids" and node.input[0] in weights:
            name, ids, y = node.input[0], node.input[1], node.output[0]
            whole, scale = _rounded(numpy_helper.to_array(weights.pop(name)), LEVELS)
            rows = add("Gather", [constant(f"{name}.int8", whole), ids], f"{y}.int8")
            scales = add("Gather", [constant(f"{name}.scale", scale), ids], f"{y}.scale")
            add("Mul", [add("Cast", [rows], f"{y}.float", to=1), scales], y)
        else:
            nodes.append(node)
    made = helper.make_graph(nodes, graph.name, graph.input, graph.output, [*weights.values()])
    opsets = [*model.opset_import, helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=model.ir_version)


def _rounded(rows: NDArray[Any], levels: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return whole numbers and the scale of each row: (rows, 1)."""
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True), TINY) / levels
    return np.rint(rows / scale).astype(np.int8), scale.astype(np.float32)


def compare(run: NetworkRun, exported: onnx_run.OnnxRun, *, int8: bool) -> list[OutputDifference]:
    """Compare over batch sizes, lengths, paddings and windows; each text also with itself alone."""
    ids = [one.tolist() for one in run.tokenizer.encode_arrays(TEXTS)]
    theirs = [one.tolist() for one in exported.tokenizer.encode_arrays(TEXTS)]
    wrong = sum(a != b for a, b in zip(ids, theirs, strict=True))
    found = [OutputDifference(f"the ids of {len(TEXTS)} texts", float(wrong), 0.0)]

    def scores(batch: TrialBatch) -> Tensor:
        values = onnx_run.named_inputs(batch.tokens, batch.real, batch.token_types, batch.owners)
        return torch.from_numpy(exported.logits(exported.one_thread, values))

    for batch in trial_batches(run):
        if "left" in batch.words and run.model.base.config.transformers is not None:
            continue
        ours, output = batch.outputs(run), scores(batch)
        found.append(batch.compare(ours, output[: len(ours)], ALLOWED_INT8 if int8 else ALLOWED))
        if "padded" in batch.words:
            alone = torch.zeros_like(output)
            for row, kept in enumerate(batch.real > 0):
                one = slice(row, row + 1)
                single = scores(TrialBatch("", batch.tokens[one, kept], batch.real[one, kept]))[0]
                alone[row, kept if output.ndim == 3 else slice(None)] = single
            words = f"{batch.words}, compared with each text alone"
            allowed = ALLOWED_INT8_ALONE if int8 else ALLOWED
            found.append(replace(batch, words=words).compare(alone, output, allowed))
    return found
