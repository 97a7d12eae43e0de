"""Linear layers and embeddings of a graph, with weights in fp32 or in 8 bits.

In 8 bits a product is one of whole numbers. What goes in is rounded too, with a scale of each
token's own, so that an answer does not depend on the other texts of its batch, as it does with
onnxruntime's dynamic quantization, which has one scale for the whole batch. Weights have a scale
per output and use 7 of the 8 bits: so the sums of pairs fit into the 16 bits that CPUs without
VNNI have for them, and every CPU computes the same.
"""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headstart.interop.onnx.graph import MICROSOFT, GraphWriter

TINY = 1e-12  # the scale of a token that is all zeros
ZERO = 128  # what stands for 0 in the tokens' unsigned bytes
LEVELS, WEIGHT_LEVELS = 127, 63


class FloatLinear:
    """Weights as they are."""

    def __init__(self, graph: GraphWriter) -> None:
        self.graph = graph

    def embed(self, name: str, table: Tensor, ids: str) -> str:
        """The rows of a table: (…) → (…, d)."""
        return self.graph.add("Gather", self.graph.weight(name, array_of(table)), ids)

    def apply(self, name: str, x: str, weights: "list[tuple[Tensor, Tensor | None]]") -> list[str]:
        """Several layers that read the same: (…, d) → (…, out) for each (out, d) and its bias."""
        products = [
            self.graph.add("MatMul", x, self.graph.weight(f"{name}.{n}.weight", array_of(one).T))
            for n, (one, _) in enumerate(weights)
        ]
        return self._add_biases(name, products, weights)

    def _add_biases(
        self, name: str, products: list[str], weights: "list[tuple[Tensor, Tensor | None]]"
    ) -> list[str]:
        return [
            product
            if bias is None
            else self.graph.add(
                "Add", product, self.graph.weight(f"{name}.{n}.bias", array_of(bias))
            )
            for n, (product, (_, bias)) in enumerate(zip(products, weights, strict=True))
        ]


class Int8Linear(FloatLinear):
    """Weights in 8 bits, and products of whole numbers."""

    def embed(self, name: str, table: Tensor, ids: str) -> str:
        graph = self.graph
        whole, scale = rounded(array_of(table), LEVELS)
        rows = graph.add("Gather", graph.weight(name, whole), ids)
        scales = graph.add("Gather", graph.weight(f"{name}.scale", scale), ids)
        return graph.add("Mul", graph.add("Cast", rows, to=1), scales)

    def apply(self, name: str, x: str, weights: "list[tuple[Tensor, Tensor | None]]") -> list[str]:
        graph = self.graph
        largest = graph.add("ReduceMax", graph.add("Abs", x), graph.ints(-1), keepdims=1)
        largest = graph.add("Max", largest, graph.constant(TINY))  # (…, 1)
        step, zero = graph.constant(1 / LEVELS), graph.constant(ZERO, np.uint8)
        tokens = graph.add("QuantizeLinear", graph.add("Div", x, largest), step, zero)
        products = []
        for n, (one, _) in enumerate(weights):
            whole, scale = rounded(array_of(one), WEIGHT_LEVELS)
            weight = graph.weight(f"{name}.{n}.weight", whole.T)
            scales = graph.weight(f"{name}.{n}.scale", scale[:, 0])
            product = graph.add(
                "MatMulIntegerToFloat", tokens, weight, step, scales, zero, domain=MICROSOFT
            )
            products.append(graph.add("Mul", product, largest))
        return self._add_biases(name, products, weights)


def array_of(tensor: Tensor) -> NDArray[np.float32]:
    """A weight as NumPy's array."""
    found: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return found


def rounded(rows: NDArray[np.float32], levels: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Whole numbers and the scale of each row: (rows, 1)."""
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True), TINY) / levels
    return np.rint(rows / scale).astype(np.int8), scale.astype(np.float32)
