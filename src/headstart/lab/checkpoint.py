"""The lab's checkpoints: a `torch.save` of `{"model_state_dict": …}`, with or without a head.

They are pickles, and a pickle can contain code. They are read with `weights_only=True`, which
builds tensors and plain values and rejects everything else.
"""

import pickle
import re
import warnings
from pathlib import Path

import torch
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_weights
from headstart.model.config import ClassificationConfig, HeadConfig, LanguageModelingConfig
from headstart.model.model import Model, build_model
from headstart.model.presets import preset

LAYER = r"base\.transformer_encoder\.layers\.(\d+)"
NAMES = (
    (r"base\.encoder\.", r"base.embedding."),
    (LAYER + r"\.self_attn\.in_proj_", r"base.blocks.\1.attention.query_key_value."),
    (LAYER + r"\.self_attn\.out_proj\.", r"base.blocks.\1.attention.output."),
    (LAYER + r"\.linear1\.", r"base.blocks.\1.feed_forward.up."),
    (LAYER + r"\.linear2\.", r"base.blocks.\1.feed_forward.down."),
    (LAYER + r"\.norm1\.", r"base.blocks.\1.attention_norm."),
    (LAYER + r"\.norm2\.", r"base.blocks.\1.feed_forward_norm."),
    (r"classifier\.decoder\.", r"head.output."),
)
COMPUTED = "base.pos_encoder.pe"  # the table of positions is computed, not loaded


def read_lab_checkpoint(path: Path, *, heads: int = 2) -> Model:
    """Read the lab's model; its sizes follow from the weights, except the number of heads.

    A `classifier.decoder` with as many rows as the vocabulary is a language modelling head, any
    other one a classification head. Without it, the model is a base alone.
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
    layers = {match[1] for name in weights if (match := re.match(r"base\.blocks\.(\d+)", name))}
    base = preset(
        "lab",
        vocab_size=embedding.shape[0],
        width=embedding.shape[1],
        layers=len(layers),
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
        with warnings.catch_warnings():  # PyTorch warns about files that it then rejects
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise HeadstartError(
            "this file contains more than weights (or is not a checkpoint), so it was not opened: "
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
        raise HeadstartError("the file has no weights under “model_state_dict”", where=path)
    return state


def _rename(state: dict[str, Tensor], path: Path) -> dict[str, Tensor]:
    weights, unknown = {}, []
    for name, tensor in state.items():
        name = str(name).removeprefix("module.")  # of models saved from nn.DataParallel
        matches = [
            match.expand(ours) + match[match.re.groups]
            for pattern, ours in NAMES
            if (match := re.fullmatch(pattern + "(weight|bias)", name))
        ]
        if matches:
            weights[matches[0]] = tensor
        elif name != COMPUTED:
            unknown.append(name)
    if unknown:
        more = f" (and {len(unknown) - 3} more)" if len(unknown) > 3 else ""
        raise HeadstartError(
            f"the lab's network has no weight named {', '.join(unknown[:3])}{more}", where=path
        )
    return weights


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
