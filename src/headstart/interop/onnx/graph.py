"""A small writer of ONNX graphs: nodes and constants, each with a name of its own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 23  # the first with RMSNormalization and RotaryEmbedding
IR_VERSION = 11
MICROSOFT = "com.microsoft"  # operators that only onnxruntime has


class GraphWriter:
    """Collects nodes in the order in which they are computed. Values are known by their names."""

    def __init__(self) -> None:
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._known: dict[tuple[Any, ...], str] = {}

    def input(self, name: str, shape: Sequence[str], *, default: NDArray[Any] | None = None) -> str:
        """An input of whole numbers; one with a default may be left out."""
        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, shape))
        if default is not None:
            self.weight(name, default.astype(np.int64))
        return name

    def output(self, value: str, name: str, shape: Sequence[str | int]) -> None:
        """Return a computed value under this name."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def weight(self, name: str, value: NDArray[Any]) -> str:
        """A constant under its own name."""
        self._constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """A small constant; equal ones are kept once."""
        array = np.asarray(value, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self.weight(f"constant_{len(self._known)}", array)
        return self._known[key]

    def ints(self, *values: int) -> str:
        """Axes or a shape."""
        return self.constant(values, np.int64)

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Compute a value; returns its name."""
        name = f"{operator.lower()}_{len(self._nodes)}"
        node = helper.make_node(operator, inputs, [name], name, domain=domain, **attributes)
        self._nodes.append(node)
        return name

    def model(self) -> onnx.ModelProto:
        """Everything as one model."""
        graph = helper.make_graph(
            self._nodes, "headstart", self._inputs, self._outputs, self._constants
        )
        domains = {"": OPSET} | {node.domain: 1 for node in self._nodes if node.domain}
        opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="headstart"
        )
