"""Our heads as the last part of an ONNX graph: hidden states in, `logits` out."""

import numpy as np
import onnx
from torch import Tensor, nn

from headstart.config import Pooling
from headstart.errors import HeadstartError
from headstart.interop.onnx.export import WINDOWS
from headstart.interop.onnx.graph import GraphWriter
from headstart.interop.onnx.linear import FloatLinear, Int8Linear
from headstart.interop.onnx.network import BaseGraph, Inputs, read_inputs
from headstart.model.heads import ClassificationHead, SpansHead, TaggingHead, Transform
from headstart.model.model import Model


def network_graph(
    model: Model, length: int, *, int8: bool = False, windows: bool = False, temperature: float = 1
) -> onnx.ModelProto:
    """A network with its head as an ONNX model.

    Parameters
    ----------
    model : a network with a head for a task.
    length : the longest row that it must be able to read.
    int8 : keep the weights of the base in 8 bits.
    windows : rows may be windows of a text; the input `overflow_to_sample_mapping` (B) says the
        text of each (0, 0, 1, …), and there is one answer per text.
    temperature : what the logits are divided by.

    Returns
    -------
    A model with the inputs `input_ids` and `attention_mask` (B, T), for bases with token types
    `token_type_ids` (all 0 where it is left out), and the output `logits`.
    """
    graph = GraphWriter()
    linear = (Int8Linear if int8 else FloatLinear)(graph)
    base = BaseGraph(graph, linear, model.base, length)
    inputs = read_inputs(graph, causal=model.base.config.attention == "causal")
    head = HeadGraph(graph, base, temperature)
    if isinstance(model.head, ClassificationHead):
        head.classify(model.head, inputs, windows=windows)
    elif isinstance(model.head, TaggingHead | SpansHead):
        head.score_tokens(model.head, inputs)
    else:
        raise HeadstartError(
            f"a head of the kind {type(model.head).__name__} has no counterpart in ONNX yet",
            fix="export a run of headstart finetune",
        )
    return graph.model()


class HeadGraph:
    """Writes a head into a graph; its few weights stay in fp32."""

    def __init__(self, graph: GraphWriter, base: BaseGraph, temperature: float) -> None:
        self.graph = graph
        self.base = base
        self.linear = FloatLinear(graph)
        self.temperature = temperature
        self._known_owners: str | None = None

    def classify(self, head: ClassificationHead, inputs: Inputs, *, windows: bool) -> None:
        """One row of scores per text."""
        pooling, real = head.config.pooling, inputs.real
        if pooling in ("first", "last"):
            place = self.graph.add(
                "ArgMax", real, axis=1, keepdims=1, select_last_index=int(pooling == "last")
            )  # (B, 1)
            hidden = self.base.hidden(inputs, place)
            vectors = self.graph.add("Squeeze", hidden, self.graph.ints(1))
            if windows:
                vectors = self._joined_mean(vectors, None)
        else:
            vectors = self._pooled(self.base.hidden(inputs), real, pooling, windows=windows)
        if head.dense is not None:
            activation = "Tanh" if head.config.dense_activation == "tanh" else "Relu"
            vectors = self.graph.add(activation, self._layer("head.dense", head.dense, vectors))
        vectors = self._transform(head.transform, vectors)
        scores = self._output(head.output, vectors)
        self.graph.output(scores, "logits", ["texts", head.output.out_features])

    def score_tokens(self, head: TaggingHead | SpansHead, inputs: Inputs) -> None:
        """Scores of every token."""
        hidden = self._transform(head.transform, self.base.hidden(inputs))
        scores = self._output(head.output, hidden)
        if isinstance(head, SpansHead):  # an answer never starts in the padding
            real = self._mask(inputs.real)
            scores = self.graph.add("Where", real, scores, self.graph.constant(-np.inf))
        self.graph.output(scores, "logits", ["batch", "length", head.output.out_features])

    def _pooled(self, hidden: str, real: str, pooling: Pooling, *, windows: bool) -> str:
        """The mean, the maximum or both of a text's real tokens."""
        graph, parts = self.graph, []
        if "mean" in pooling:
            # Padding is finite here, so that a product with 0 leaves nothing of it.
            total = graph.add("MatMul", graph.add("Unsqueeze", real, graph.ints(1)), hidden)
            total = graph.add("Squeeze", total, graph.ints(1))
            count = graph.add("ReduceSum", real, graph.ints(1), keepdims=1)  # (B, 1)
            if windows:
                parts.append(self._joined_mean(total, count))
            else:
                parts.append(graph.add("Div", total, count))
        if "max" in pooling:
            kept = graph.add("Where", self._mask(real), hidden, graph.constant(-np.inf))
            largest = graph.add("ReduceMax", kept, graph.ints(1), keepdims=0)
            parts.append(self._scatter(largest, "max") if windows else largest)
        return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=-1)

    def _joined_mean(self, totals: str, counts: str | None) -> str:
        """Sums of windows (W, d) and what they are sums of (W, 1), by default one each: (B, d)."""
        if counts is None:
            shape = self.graph.add("Concat", self._rows(totals), self.graph.ints(1), axis=0)
            counts = self.graph.add("Expand", self.graph.constant([[1.0]]), shape)
        return self.graph.add("Div", self._scatter(totals, "add"), self._scatter(counts, "add"))

    def _scatter(self, rows: str, reduction: str) -> str:
        """Join the rows of the same text: (W, d) → (B, d)."""
        graph = self.graph
        owners = self._owners(rows)
        texts = graph.add("Add", graph.add("ReduceMax", owners, keepdims=1), graph.ints(1))
        width = graph.add("Shape", rows, start=1, end=2)
        start = graph.constant(0.0 if reduction == "add" else -np.inf)
        joined = graph.add("Expand", start, graph.add("Concat", texts, width, axis=0))
        index = graph.add("Unsqueeze", owners, graph.ints(1))
        index = graph.add("Expand", index, graph.add("Shape", rows))
        return graph.add("ScatterElements", joined, index, rows, axis=0, reduction=reduction)

    def _owners(self, rows: str) -> str:
        """The text of each row (W); each its own where the input is left out."""
        graph = self.graph
        if self._known_owners is None:
            given = graph.input(WINDOWS, ["windows"], default=np.array([-1]))
            count = graph.add("Squeeze", self._rows(rows), graph.ints(0))
            zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
            each = graph.add("Range", zero, count, one)
            missing = graph.add("Less", given, zero)
            self._known_owners = graph.add("Where", missing, each, given)
        return self._known_owners

    def _rows(self, x: str) -> str:
        return self.graph.add("Shape", x, start=0, end=1)

    def _mask(self, real: str) -> str:
        """(B, T) → (B, T, 1), as true and false."""
        return self.graph.add("Cast", self.graph.add("Unsqueeze", real, self.graph.ints(2)), to=9)

    def _transform(self, module: nn.Module, x: str) -> str:
        if not isinstance(module, Transform):
            return x
        inner = self.graph.add("Gelu", self._layer("head.transform", module.dense, x))
        return self.base.norm("head.transform.norm", module.norm, inner)

    def _layer(self, name: str, layer: nn.Linear, x: str) -> str:
        return self.linear.apply(name, x, [(layer.weight, layer.bias)])[0]

    def _output(self, layer: nn.Linear, x: str) -> str:
        bias: Tensor | None = layer.bias
        bias = None if bias is None else bias / self.temperature
        return self.linear.apply("head.output", x, [(layer.weight / self.temperature, bias)])[0]
