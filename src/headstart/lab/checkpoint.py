"""The lab's own checkpoints: a `torch.save` of `{"model_state_dict": …}`, with or without a head.

They are pickles, and a pickle can carry code. They are read with `weights_only=True`, which
builds tensors and plain values and refuses everything else.
"""

import pickle
import re
from pathlib import Path

import torch
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_weights
from headstart.model.config import ClassificationConfig, HeadConfig, LanguageModelingConfig
from headstart.model.model import Model, build_model
from headstart.model.presets import preset

NAMES = (
    (r"base\.encoder\.weight", "base.embedding.weight"),
    (r"base\.transformer_encoder\.layers\.(\d+)\.self_attn\.in_proj_(weight|bias)",
     r"base.blocks.\1.attention.query_key_value.\2"),
    (r"base\.transformer_encoder\.layers\.(\d+)\.self_attn\.out_proj\.(weight|bias)",
     r"base.blocks.\1.attention.output.\2"),
    (r"base\.transformer_encoder\.layers\.(\d+)\.linear1\.(weight|bias)",
     r"base.blocks.\1.feed_forward.up.\2"),
    (r"base\.transformer_encoder\.layers\.(\d+)\.linear2\.(weight|bias)",
     r"base.blocks.\1.feed_forward.down.\2"),
    (r"base\.transformer_encoder\.layers\.(\d+)\.norm1\.(weight|bias)",
     r"base.blocks.\1.attention_norm.\2"),
    (r"base\.transformer_encoder\.layers\.(\d+)\.norm2\.(weight|bias)",
     r"base.blocks.\1.feed_forward_norm.\2"),
    (r"classifier\.decoder\.(weight|bias)", r"head.output.\1"),
)  # fmt: skip
COMPUTED = {"base.pos_encoder.pe"}  # the table of positions is computed anew


def read_lab_checkpoint(path: Path, *, heads: int = 2) -> Model:
    """The lab's model, its sizes read off the weights; only `heads` leaves no trace in them.

    A `classifier.decoder` with as many rows as the vocabulary is the language-modelling head,
    any other one the classification head. Without it, the model is a base alone.
    """
    weights = _rename(_read_state(path), path)
    embedding = weights.get("base.embedding.weight")
    up = weights.get("base.blocks.0.feed_forward.up.weight")
    if embedding is None or up is None or embedding.ndim != 2 or up.ndim != 2:
        raise HeadstartError(
            "this is not a checkpoint of the lab: it has no base.encoder.weight or no "
            "base.transformer_encoder.layers.0",
            where=path,
        )
    layers = 1 + max(int(m[1]) for name in weights if (m := re.match(r"base\.blocks\.(\d+)", name)))
    base = preset(
        "lab",
        vocab_size=embedding.shape[0],
        width=embedding.shape[1],
        layers=layers,
        heads=heads,
        feed_forward_width=up.shape[0],
    ).base
    model = build_model(base, _head_config(weights, base.vocab_size))
    load_weights(model, weights, where=path)
    return model


def _head_config(weights: dict[str, Tensor], vocab_size: int) -> HeadConfig | None:
    output = weights.get("head.output.weight")
    if output is None:
        return None
    if output.shape[0] == vocab_size:
        return LanguageModelingConfig(tied=False, bias=True)
    return ClassificationConfig(classes=output.shape[0], pooling="last")


def _read_state(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise HeadstartError("there is no such file", where=path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise HeadstartError(
            "this file holds more than weights (or is no checkpoint at all), so it was not opened: "
            + _first_line(error),
            where=path,
            fix="save only the weights: torch.save({'model_state_dict': model.state_dict()}, path)",
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        raise HeadstartError(
            f"the file is damaged or cut short: {_first_line(error)}",
            where=path,
            fix="copy it again",
        ) from None
    state = content.get("model_state_dict", content) if isinstance(content, dict) else None
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise HeadstartError(
            "the file was read, but holds no table of weights under “model_state_dict”", where=path
        )
    return state


def _rename(state: dict[str, Tensor], path: Path) -> dict[str, Tensor]:
    weights, strange = {}, []
    for name, tensor in state.items():
        # Saved from nn.DataParallel, every name starts with "module."
        plain = str(name).removeprefix("module.")
        if plain in COMPUTED:
            continue
        for pattern, ours in NAMES:
            if match := re.fullmatch(pattern, plain):
                weights[match.expand(ours)] = tensor
                break
        else:
            strange.append(plain)
    if strange:
        raise HeadstartError(
            f"the lab's network has no weight named {', '.join(strange[:3])}"
            + (f" (and {len(strange) - 3} more)" if len(strange) > 3 else ""),
            where=path,
        )
    return weights


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
