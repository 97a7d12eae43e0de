"""Which of onnxruntime's operators are fastest at the sizes of `small`, on one thread?

Products in 8 bits: tokens rounded in the graph and `MatMulIntegerToFloat`, as an export has it,
beside `MatMulNBits`, which rounds them itself. Attention: product, mask, softmax, product, beside
ONNX's own `Attention`, as an export has it. Best of some runs, and how far the results lie apart.

    python bench/onnx_operators.py
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from headstart.interop.onnx.graph import MICROSOFT
from headstart.interop.onnx.linear import LEVELS, TINY, WEIGHT_LEVELS, ZERO, rounded

WIDTH, HEADS, INNER = 256, 4, 1_024
PRODUCTS = ((WIDTH, WIDTH), (WIDTH, INNER), (INNER, WIDTH))
LENGTHS = (128, 265)
REPETITIONS = 30

Feeds = dict[str, np.ndarray]
Node = tuple[str, Sequence[str], dict[str, Any]]


def session(nodes: Sequence[Node], weights: Feeds, feeds: Feeds) -> Callable[[], np.ndarray]:
    """A graph of these nodes, the last of which gives "y", ready to run on one thread."""
    made = [
        helper.make_node(kind, list(names), [f"{kind}{n}" if n < len(nodes) - 1 else "y"], **more)
        for n, (kind, names, more) in enumerate(nodes)
    ]
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(one.dtype), list(one.shape)
        )
        for name, one in feeds.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(np.asarray(one), name) for name, one in weights.items()]
    graph = helper.make_graph(made, "graph", inputs, [output], constants)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    opened = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return lambda: opened.run(["y"], feeds)[0]


def rounded_in_the_graph(weight: np.ndarray, x: np.ndarray) -> Callable[[], np.ndarray]:
    whole, scale = rounded(weight, WEIGHT_LEVELS)
    weights = {
        "last": np.array([-1]),
        "tiny": np.float32(TINY),
        "step": np.float32(1 / LEVELS),
        "zero": np.uint8(ZERO),
        "weight": np.ascontiguousarray(whole.T),
        "scale": scale[:, 0],
    }
    nodes: list[Node] = [
        ("Abs", ["x"], {}),
        ("ReduceMax", ["Abs0", "last"], {"keepdims": 1}),
        ("Max", ["ReduceMax1", "tiny"], {}),
        ("Div", ["x", "Max2"], {}),
        ("QuantizeLinear", ["Div3", "step", "zero"], {}),
        (
            "MatMulIntegerToFloat",
            ["QuantizeLinear4", "weight", "step", "scale", "zero"],
            {"domain": MICROSOFT},
        ),
        ("Mul", ["MatMulIntegerToFloat5", "Max2"], {}),
    ]
    return session(nodes, weights, {"x": x})


def matmul_n_bits(weight: np.ndarray, x: np.ndarray) -> Callable[[], np.ndarray]:
    out, width = weight.shape
    block = min(width, 256)
    whole, scale = rounded(weight.reshape(-1, block), LEVELS)
    weights = {
        "weight": (whole.astype(np.int16) + ZERO).astype(np.uint8).reshape(out, -1, block),
        "scale": scale[:, 0],
    }
    sizes = {"K": width, "N": out, "bits": 8, "block_size": block, "accuracy_level": 4}
    node: Node = ("MatMulNBits", ["x", "weight", "scale"], {**sizes, "domain": MICROSOFT})
    return session([node], weights, {"x": x})


def plain_product(weight: np.ndarray, x: np.ndarray) -> Callable[[], np.ndarray]:
    return session([("MatMul", ["x", "weight"], {})], {"weight": weight.T.copy()}, {"x": x})


def written_out(feeds: Feeds) -> Callable[[], np.ndarray]:
    weights = {"heads": np.array([0, 0, HEADS, WIDTH // HEADS]), "joined": np.array([0, 0, WIDTH])}
    nodes: list[Node] = [
        ("Reshape", ["q", "heads"], {}),
        ("Transpose", ["Reshape0"], {"perm": [0, 2, 1, 3]}),
        ("Reshape", ["k", "heads"], {}),
        ("Transpose", ["Reshape2"], {"perm": [0, 2, 3, 1]}),
        ("Reshape", ["v", "heads"], {}),
        ("Transpose", ["Reshape4"], {"perm": [0, 2, 1, 3]}),
        ("MatMul", ["Transpose1", "Transpose3"], {}),
        ("Add", ["MatMul6", "mask"], {}),
        ("Softmax", ["Add7"], {"axis": -1}),
        ("MatMul", ["Softmax8", "Transpose5"], {}),
        ("Transpose", ["MatMul9"], {"perm": [0, 2, 1, 3]}),
        ("Reshape", ["Transpose10", "joined"], {}),
    ]
    return session(nodes, weights, feeds)


def one_operator(feeds: Feeds) -> Callable[[], np.ndarray]:
    sizes = {"q_num_heads": HEADS, "kv_num_heads": HEADS, "scale": 1.0}
    return session([("Attention", ["q", "k", "v", "mask"], sizes)], {}, feeds)


def show(title: str, ways: dict[str, Callable[[], np.ndarray]]) -> None:
    """Milliseconds of each way, and its distance from the first one's result."""
    expected = next(iter(ways.values()))()
    print(title)
    for name, run in ways.items():
        apart = float(np.abs(run() - expected).max() / expected.std())
        best = min(_seconds(run) for _ in range(REPETITIONS))
        print(f"  {name:32}{1e3 * best:8.3f} ms   apart by {apart:.1e} deviations")


def _seconds(run: Callable[[], np.ndarray]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main() -> None:
    random = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32)

    for length in LENGTHS:
        for width, out in PRODUCTS:
            weight, x = 0.05 * draw(out, width), draw(length, width)
            ways = {
                "fp32": plain_product(weight, x),
                "8 bits, rounded in the graph": rounded_in_the_graph(weight, x),
                "8 bits, MatMulNBits": matmul_n_bits(weight, x),
            }
            show(f"{length} tokens, {width} to {out}", ways)
        feeds = {name: draw(1, length, WIDTH) for name in "qkv"}
        feeds["mask"] = np.zeros((1, 1, length, length), dtype=np.float32)
        ways = {"written out": written_out(feeds), "Attention": one_operator(feeds)}
        show(f"{length} tokens, attention with {HEADS} heads", ways)


if __name__ == "__main__":
    main()
