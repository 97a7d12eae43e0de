"""Our base as an ONNX graph: tokens and their mask in, hidden states out.

The modules' own weights, operator by operator. `torch.onnx` would trace them, in seconds instead of
milliseconds and with two packages more.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from headstart.errors import HeadstartError
from headstart.interop.onnx.graph import GraphWriter
from headstart.interop.onnx.linear import FloatLinear, array_of
from headstart.model.attention import SelfAttention
from headstart.model.base import Block, FeedForward, Transformer
from headstart.model.positions import LearnedPositions, RotaryPositions

FORBIDDEN = -1e9  # added to a score: its probability is 0, and a row of nothing else is not NaN


class Sight(NamedTuple):
    """What a layer's tokens see of each other."""

    mask: str  # added to the scores: (B, 1, T, T)
    rotary: tuple[str, str] | None  # cosines and sines


class Inputs(NamedTuple):
    """What is computed from the inputs once, for all layers."""

    ids: str  # (B, T)
    real: str  # (B, T): 1.0 for a token, 0.0 for padding
    positions: str  # (B, T): counted from the first real token
    mask: str  # (B, 1, T, T): what is added to the scores


def read_inputs(graph: GraphWriter, *, causal: bool) -> Inputs:
    """`input_ids` and `attention_mask`; padding may stand on either side."""
    ids = graph.input("input_ids", ["batch", "length"])
    given = graph.input("attention_mask", ["batch", "length"])
    real = graph.add("Cast", given, to=1)
    count = graph.add("CumSum", given, graph.constant(1, np.int64))
    one, zero = graph.constant(1, np.int64), graph.constant(0, np.int64)
    positions = graph.add("Max", graph.add("Sub", count, one), zero)
    padding = graph.add("Sub", graph.constant(1.0), real)
    mask = graph.add("Mul", padding, graph.constant(FORBIDDEN))
    mask = graph.add("Unsqueeze", mask, graph.ints(1, 2))
    length = graph.add("Shape", ids, start=1, end=2)
    square = graph.add("Concat", length, length, axis=0)
    full = graph.add("Expand", graph.constant(FORBIDDEN if causal else 0.0), square)
    if causal:
        full = graph.add("Trilu", full, one, upper=1)
    mask = graph.add("Add", mask, full)
    return Inputs(ids, real, positions, mask)


class BaseGraph:
    """Writes a base into a graph.

    Parameters
    ----------
    graph, linear : where nodes go, and how weights are kept.
    base : the network.
    length : the longest row that it must be able to read.
    """

    def __init__(
        self, graph: GraphWriter, linear: FloatLinear, base: Transformer, length: int
    ) -> None:
        self.graph = graph
        self.linear = linear
        self.base = base
        self.length = length

    def hidden(self, inputs: Inputs, place: str | None = None) -> str:
        """Hidden states (B, T, d); with `place` (B, 1) those of one token per row: (B, 1, d)."""
        x = self._embed(inputs)
        config = self.base.config
        whole = Sight(inputs.mask, self._rotary("rotary", self.base.rotary))
        near = whole
        if config.local_window:
            mask = self._near(inputs, config.local_window)
            near = Sight(mask, self._rotary("local_rotary", self.base.local_rotary))
        for number, block in enumerate(self.base.blocks):
            assert isinstance(block, Block)
            sight = near if config.is_local(number) else whole
            one = place if number == config.layers - 1 else None
            x = self._block(f"blocks.{number}", block, x, inputs, sight, one)
        return self.norm("final_norm", self.base.final_norm, x)

    def _rotary(self, name: str, module: RotaryPositions | None) -> tuple[str, str] | None:
        if module is None:
            return None
        rows = array_of(module(self.length, None))  # (T, 2·hs)
        half = rows.shape[1] // 4  # both halves of a head turn by the same angles
        return (
            self.graph.weight(f"{name}.cosine", rows[:, :half]),
            self.graph.weight(f"{name}.sine", rows[:, 2 * half : 3 * half]),
        )

    def _near(self, inputs: Inputs, window: int) -> str:
        """The mask that also hides what stands more than `window` tokens away: (B, 1, T, T)."""
        graph = self.graph
        zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
        length = graph.add("Gather", graph.add("Shape", inputs.ids), one)
        places = graph.add("Range", zero, length, one)
        column = graph.add("Unsqueeze", places, graph.ints(1))
        distance = graph.add("Abs", graph.add("Sub", places, column))
        far = graph.add("Greater", distance, graph.constant(window, np.int64))
        hidden = graph.add("Where", far, graph.constant(FORBIDDEN), graph.constant(0.0))
        return graph.add("Add", inputs.mask, hidden)

    def norm(self, name: str, module: nn.Module, x: str) -> str:
        """A norm over the last axis, or nothing."""
        if isinstance(module, nn.Identity):
            return x
        if isinstance(module, nn.RMSNorm):
            weight = self.graph.weight(f"{name}.weight", array_of(module.weight))
            return self.graph.add("RMSNormalization", x, weight, epsilon=module.eps)
        if not isinstance(module, nn.LayerNorm):
            raise _unknown(module)
        inputs = [x, self.graph.weight(f"{name}.weight", array_of(module.weight))]
        if module.bias is not None:
            inputs.append(self.graph.weight(f"{name}.bias", array_of(module.bias)))
        return self.graph.add("LayerNormalization", *inputs, epsilon=module.eps)

    def _embed(self, inputs: Inputs) -> str:
        base, graph = self.base, self.graph
        x = self.linear.embed("embedding", base.embedding.weight * base.scale, inputs.ids)
        if base.positions is not None:
            positions = base.positions
            if isinstance(positions, LearnedPositions):
                table = positions.weight[positions.offset :]
            else:
                table = positions(self.length, None)
            rows = graph.weight("positions", array_of(table))
            x = graph.add("Add", x, graph.add("Gather", rows, inputs.positions))
        if base.token_types is not None:
            # One row of the first kind serves every token where none are given.
            kinds = graph.input("token_type_ids", ["rows", "places"], default=np.zeros((1, 1)))
            rows = graph.weight("token_types", array_of(base.token_types.weight))
            x = graph.add("Add", x, graph.add("Gather", rows, kinds))
        return self.norm("embedding_norm", base.embedding_norm, x)

    def _block(
        self, name: str, block: Block, x: str, inputs: Inputs, sight: Sight, place: str | None
    ) -> str:
        graph = self.graph
        norms = (f"{name}.attention_norm", block.attention_norm)
        seen = self.norm(*norms, x) if block.norm_before else x
        gathered = self._attention(f"{name}.attention", block.attention, seen, inputs, sight, place)
        x = graph.add("Add", gathered, x if place is None else self.take(x, place))
        if not block.norm_before:
            x = self.norm(*norms, x)
        after = (f"{name}.feed_forward_norm", block.feed_forward_norm)
        normed = self.norm(*after, x) if block.norm_before else x
        inner = self._feed_forward(f"{name}.feed_forward", block.feed_forward, normed)
        x = graph.add("Add", x, inner)
        return x if block.norm_before else self.norm(*after, x)

    def take(self, x: str, place: str) -> str:
        """One place of each row: (B, T, ·) → (B, 1, ·)."""
        found = self.graph.add("GatherND", x, place, batch_dims=1)
        return self.graph.add("Unsqueeze", found, self.graph.ints(1))

    def _attention(
        self,
        name: str,
        module: SelfAttention,
        x: str,
        inputs: Inputs,
        sight: Sight,
        place: str | None,
    ) -> str:
        graph, heads = self.graph, module.heads
        query, key, value = _split(module, self.base.config.key_value_width)
        (mask, rotary), places = sight, inputs.positions
        if place is None:
            q, k, v = self.linear.apply(name, x, [query, key, value])
        else:
            (q,) = self.linear.apply(f"{name}.query", self.take(x, place), [query])
            k, v = self.linear.apply(name, x, [key, value])
            places = graph.add("GatherND", inputs.positions, place, batch_dims=1)
            places = graph.add("Unsqueeze", places, graph.ints(1))
            lines = graph.add("Squeeze", mask, graph.ints(1))  # (B, T, T)
            mask = graph.add("Unsqueeze", self.take(lines, place), graph.ints(1))
        if rotary is not None:
            q = graph.add("RotaryEmbedding", q, *rotary, places, num_heads=heads)
            k = graph.add("RotaryEmbedding", k, *rotary, inputs.positions, num_heads=heads)
        # Queries are scaled already.
        sizes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": heads, "scale": 1.0}
        gathered = graph.add("Attention", q, k, v, mask, **sizes)  # (B, T, d)
        output = (module.output.weight, module.output.bias)
        return self.linear.apply(f"{name}.output", gathered, [output])[0]

    def _feed_forward(self, name: str, module: FeedForward, x: str) -> str:
        weight, bias = module.up.weight, module.up.bias
        if module.gated:
            biases: Sequence[Tensor | None] = (None, None) if bias is None else bias.chunk(2)
            ways = list(zip(weight.chunk(2), biases, strict=True))
            gate, up = self.linear.apply(f"{name}.up", x, ways)
            inner = self.graph.add("Mul", self._activation(module.kind, gate), up)
        else:
            inner = self.linear.apply(f"{name}.up", x, [(weight, bias)])[0]
            inner = self._activation(module.kind, inner)
        return self.linear.apply(f"{name}.down", inner, [(module.down.weight, module.down.bias)])[0]

    def _activation(self, kind: str, x: str) -> str:
        graph = self.graph
        if kind == "swiglu":
            return graph.add("Mul", x, graph.add("Sigmoid", x))
        if kind in ("relu", "reglu"):
            return graph.add("Relu", x)
        if kind in ("gelu", "geglu"):
            return graph.add("Gelu", x)
        if kind == "gelu-tanh":
            return graph.add("Gelu", x, approximate="tanh")
        raise HeadstartError(f"the activation {kind!r} has no counterpart in ONNX yet")


def _split(module: SelfAttention, key_value_width: int) -> list[tuple[Tensor, Tensor | None]]:
    """Weight and bias of queries (scaled already), keys and values, for every head its own."""
    joined = module.query_key_value
    width = joined.in_features
    sizes = [width, key_value_width, key_value_width]
    weights = joined.weight.split(sizes)
    biases: Sequence[Tensor | None] = [None] * 3
    if joined.bias is not None:
        biases = joined.bias.split(sizes)
    scale = (width // module.heads) ** -0.5
    found: list[tuple[Tensor, Tensor | None]] = []
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        parts = [weight, bias]
        if number == 0:
            parts = [None if one is None else one * scale for one in parts]
        elif module.groups > 1:
            parts = [None if one is None else _repeated(one, module) for one in parts]
        assert parts[0] is not None
        found.append((parts[0], parts[1]))
    return found


def _repeated(part: Tensor, module: SelfAttention) -> Tensor:
    """Keys or values that a group of heads shares, once for each of them."""
    heads = part.unflatten(0, (module.heads // module.groups, -1))
    return heads.repeat_interleave(module.groups, dim=0).flatten(0, 1)


def _unknown(module: nn.Module) -> HeadstartError:
    return HeadstartError(f"{type(module).__name__} has no counterpart in ONNX yet")
