"""The lab's checkpoints: a `torch.save` of `{"model_state_dict": …}`, with or without a head.

They are pickles, and a pickle can contain code. They are read with `weights_only=True`, which
builds tensors and plain values and rejects everything else.
"""

import pickle
import warnings
from pathlib import Path

import torch
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_weights
from headstart.model.config import ClassificationConfig, HeadConfig, LanguageModelingConfig
from headstart.model.model import Model, build_model
from headstart.model.presets import preset

NAMES = {  # parts of the lab's names, and ours
    "module.": "",  # of models saved from nn.DataParallel
    "base.encoder.": "base.embedding.",
    "base.transformer_encoder.layers.": "base.blocks.",
    ".self_attn.in_proj_": ".attention.query_key_value.",
    ".self_attn.out_proj.": ".attention.output.",
    ".linear1.": ".feed_forward.up.",
    ".linear2.": ".feed_forward.down.",
    ".norm1.": ".attention_norm.",
    ".norm2.": ".feed_forward_norm.",
    "classifier.decoder.": "head.output.",
}
COMPUTED = "base.pos_encoder.pe"  # the table of positions is computed, not loaded
# What `torch.load` raises; AttributeError is a list in place of a dictionary.
UNREADABLE = (
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    ValueError,
    KeyError,
    OSError,
    AttributeError,
)
FIX = "save only the weights: torch.save({'model_state_dict': model.state_dict()}, path)"


def read_lab_checkpoint(path: Path, *, heads: int = 2) -> Model:
    """Read the lab's model; its sizes follow from the weights, except the number of heads.

    A `classifier.decoder` with as many rows as the vocabulary is a language modelling head, any
    other one a classification head. Without it, the model is a base alone.
    """
    weights = {}
    for name, tensor in _read_state(path).items():
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        weights[name] = tensor
    weights.pop(COMPUTED, None)
    try:
        vocab_size, width = weights["base.embedding.weight"].shape
        feed_forward_width, _ = weights["base.blocks.0.feed_forward.up.weight"].shape
    except (KeyError, ValueError):
        raise HeadstartError(
            "this is not a checkpoint of the lab: it has no base.encoder.weight or no "
            "base.transformer_encoder.layers.0",
            where=path,
        ) from None
    base = preset(
        "lab",
        vocab_size=vocab_size,
        width=width,
        layers=len({name.split(".")[2] for name in weights if name.startswith("base.blocks.")}),
        heads=heads,
        feed_forward_width=feed_forward_width,
    ).base
    head: HeadConfig | None = None
    if "head.output.weight" in weights:
        rows = len(weights["head.output.weight"])
        head = ClassificationConfig(classes=rows, pooling="last")
        if rows == vocab_size:
            head = LanguageModelingConfig(tied=False, bias=True)
    model = build_model(base, head)
    load_weights(model, weights, where=path)
    return model


def _read_state(path: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings():  # PyTorch warns about files that it then rejects
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
        state = content.get("model_state_dict", content)
        if not all(isinstance(tensor, Tensor) for tensor in state.values()):
            raise ValueError("it holds other values than tensors")
    except UNREADABLE as error:
        why = str(error).partition("\n")[0]
        raise HeadstartError(
            f"this file was not opened, as it is damaged or holds more than weights: {why}",
            where=path,
            fix=FIX,
        ) from None
    return {str(name): tensor for name, tensor in state.items()}
