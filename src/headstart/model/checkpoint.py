"""A model on disk: `model.safetensors` and `config.json`. Loading runs no code from them."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headstart.checksums import load_arrays, save_arrays
from headstart.errors import HeadstartError
from headstart.files import read_object, replacing, write_json
from headstart.model.config import BaseConfig
from headstart.model.heads import head_from_dict
from headstart.model.model import Model, build_model

WEIGHTS = "model.safetensors"
CONFIG = "config.json"
FORMAT = 1  # of config.json; raised when older files can no longer be read


def save_model(model: Model, folder: Path) -> None:
    """Write the weights and the config; each file is replaced atomically."""
    head = model.head_config
    config = {
        "format": FORMAT,
        "base": vars(model.base.config),
        "head": None if head is None else vars(head),
    }
    # named_parameters lists a tied weight once, under the base's name. The projection of
    # contrastive pretraining is of no use afterwards.
    weights = {
        name: one.detach().cpu().contiguous().numpy()
        for name, one in Model(model.base, model.head).named_parameters()
    }
    with replacing(folder / WEIGHTS) as temporary:
        save_arrays(weights, temporary)
    write_json(folder / CONFIG, config)


def load_model(folder: Path) -> Model:
    """Read what `save_model` wrote; shapes are checked before the model takes memory."""
    path = folder / WEIGHTS
    config = read_config(folder / CONFIG)
    base = BaseConfig.from_dict(config["base"], where=folder / CONFIG)
    head = None if config["head"] is None else head_from_dict(config["head"], where=folder / CONFIG)
    weights = read_safetensors(path)
    try:
        with torch.device("meta"):
            skeleton = build_model(base, head)
    except HeadstartError as error:  # of a config of `transformers`
        error.where = error.where or str(folder / CONFIG)
        raise
    check_weights(skeleton, weights, where=path)
    model = build_model(base, head)
    model.load_state_dict(weights, strict=False)  # a tied weight has two names, and is there once
    return model


def read_config(path: Path) -> dict[str, Any]:
    """Read a `config.json`; its `base` and `head` are not checked yet."""
    config = read_object(
        path,
        fix="if its training was interrupted, finish it with --resume; otherwise name the folder "
        "of a run (a study has its best one in its folder best)",
    )
    base, head = config.get("base"), config.get("head")
    if not isinstance(base, dict) or not isinstance(head, dict | None):
        raise HeadstartError(
            "this config.json is not Headstart's: it lacks “base” or “head”",
            where=path,
            fix=f"if it is a model of Hugging Face, name it hf:{path.parent}",
        )
    if config.get("format") != FORMAT:
        raise HeadstartError(
            f"config.json has format {str(config.get('format'))[:20]}; this version reads {FORMAT}",
            where=path,
            fix="use the version of Headstart that wrote it",
        )
    return config


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Read all tensors of a file that has the checksum of its content, by name."""
    if not path.is_file():
        raise HeadstartError(f"there is no {path.name} here", where=path.parent)
    arrays, _ = load_arrays(path, fix="copy the run again, with all of its files")
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def check_weights(model: torch.nn.Module, weights: dict[str, Tensor], *, where: object) -> None:
    """Compare names, shapes and types of `weights` with the model; reject NaN and infinity."""
    wanted = dict(model.named_parameters())
    problems = [f"{name} is missing" for name in wanted if name not in weights]
    problems += [f"{name} is not expected" for name in weights if name not in wanted]
    for name in wanted.keys() & weights.keys():
        ours, theirs = tuple(wanted[name].shape), tuple(weights[name].shape)
        if ours != theirs:
            problems.append(f"{name} is {theirs} in the file, {ours} in the config")
        if not weights[name].is_floating_point():
            problems.append(f"{name} has the type {weights[name].dtype}, which is not a float")
    if problems:
        shown = "\n  ".join(sorted(problems)[:6])
        raise HeadstartError(
            f"the weights do not fit the config, in {len(problems)} places:\n  {shown}", where=where
        )
    if broken := [name for name in wanted if not bool(torch.isfinite(weights[name]).all())]:
        raise HeadstartError(
            f"the weights hold NaN or infinite numbers: {', '.join(broken[:6])}",
            where=where,
            fix="copy the run again; if its training diverged, use a lower learning rate",
        )
