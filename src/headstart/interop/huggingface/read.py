"""A folder in Hugging Face's form as a base: `--base hf:PATH`. No code of it is ever run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headstart.errors import HeadstartError
from headstart.interop.huggingface.family import Family, family_of_type
from headstart.interop.huggingface.foreign_config import ForeignConfig
from headstart.interop.huggingface.hub import find_folder
from headstart.interop.huggingface.hub import pin as pin
from headstart.interop.huggingface.read_tokenizer import read_tokenizer
from headstart.interop.huggingface.tensors import TensorRule, read_tensors, write_tensors
from headstart.interop.huggingface.weights import hash_weights, read_weights
from headstart.model.checkpoint import load_weights
from headstart.model.config import BaseConfig, HeadConfig
from headstart.model.model import Model, build_model
from headstart.run import NetworkRun
from headstart.tasks import find_task

LONGEST = 512  # tokens that a task reads at once
KINDS = {  # of our heads, by how the class there is called
    "ForMaskedLM": "language_modeling",
    "ForCausalLM": "language_modeling",
    "LMHeadModel": "language_modeling",
    "ForPreTraining": "masked_next_sentence",
    "ForSequenceClassification": "classification",
    "ForTokenClassification": "tagging",
    "ForQuestionAnswering": "spans",
}
TASKS = {"classification": "classification", "tagging": "tagging"}
OUTPUT_LAYER = re.compile(r"(.*\.)?(lm_head|decoder|vocab_projector)\.weight")


@dataclass(frozen=True)
class ForeignModel:
    """What `read_model` found: the model, and the tensors that have no place in it."""

    model: Model
    config: ForeignConfig
    family: Family
    dropped: list[str]


def open_base(name: str) -> NetworkRun:
    """Open `PATH` or `owner/name`, the part of a name after `hf:`."""
    folder = find_folder(name)
    found = read_model(folder)
    tokenizer = read_tokenizer(folder, found.config)
    base = found.model.base.config
    spare = base.vocab_size - tokenizer.vocab_size
    if spare < 0:
        raise HeadstartError(
            f"the tokenizer has {tokenizer.vocab_size:,} pieces, the embedding only "
            f"{base.vocab_size:,}: they do not belong together",
            where=folder,
            fix="put the model's own tokenizer.json there",
        )
    found.model.base.config = replace(base, vocab_padding=spare)
    length = min(base.max_length, LONGEST)
    return NetworkRun(folder, found.model.eval(), tokenizer, _task(found), length=length)


def fingerprint(name: str) -> str:
    """Hash the weights of a base by its name after `hf:`."""
    return hash_weights(find_folder(name))


def read_model(folder: Path) -> ForeignModel:
    """Read config and weights; names, shapes and structure are checked before anything is built."""
    config = ForeignConfig.read(folder)
    family = family_of_type(config)
    base = _read_base(family, config)
    tensors = read_weights(folder)
    old = family.aliases(set(tensors))
    tensors = {old.get(name, name): value for name, value in tensors.items()}
    head = _read_head(family, base, config)
    rules = find_rules(family, base, head, tensors)
    kept = _without_dropped(family, head, rules, tensors, folder)
    model = build_model(base, head)
    _check_shapes(rules, model, kept, folder)
    load_weights(model, read_tensors(rules, kept, where=folder), where=folder)
    return ForeignModel(model, config, family, sorted(tensors.keys() - kept.keys()))


def find_rules(
    family: Family, base: BaseConfig, head: HeadConfig | None, names: Mapping[str, Any]
) -> list[TensorRule]:
    """The rules for these names; a base's names may stand without the family's prefix."""
    for prefix in (family.base_prefix(head), family.prefix, ""):
        if prefix and any(name.startswith(prefix) for name in names):
            break
    else:
        prefix = ""
    return family.base_rules(base, prefix) + (family.head_rules(base, head) if head else [])


def _read_base(family: Family, config: ForeignConfig) -> BaseConfig:
    try:
        base = family.read_base(config)
    except HeadstartError:
        config.refuse_problems()  # which are the cause
        raise
    config.refuse_problems()
    return base


def _read_head(family: Family, base: BaseConfig, config: ForeignConfig) -> HeadConfig | None:
    """The head of the class that the weights were saved from, where ours can compute it."""
    for ending, kind in KINDS.items():
        if config.architecture.endswith(ending) and kind in family.architectures:
            head = family.read_head(kind, base, config)
            config.refuse_problems()
            return head
    return None


def _without_dropped(
    family: Family,
    head: HeadConfig | None,
    rules: list[TensorRule],
    tensors: dict[str, Tensor],
    where: Path,
) -> dict[str, Tensor]:
    """Without what the family knows to be no weight of ours, and without a head of other kinds."""
    wanted = {name for rule in rules for name in rule.theirs}
    embedding = next(rule.theirs[0] for rule in rules if rule.ours == "base.embedding.weight")
    kept = {}
    for name, tensor in tensors.items():
        if name in wanted:
            kept[name] = tensor
            continue
        known = any(re.fullmatch(pattern, name) for pattern in family.ignored)
        if known and head is not None and OUTPUT_LAYER.fullmatch(name):
            _check_tied(name, tensor, tensors.get(embedding), where)
        head_of_others = head is None and embedding.startswith(family.prefix)
        if not known and not (head_of_others and not name.startswith(family.prefix)):
            kept[name] = tensor  # and `read_tensors` says that it has no place
    return kept


def _check_tied(name: str, tensor: Tensor, embedding: Tensor | None, where: Path) -> None:
    if embedding is not None and not torch.equal(tensor, embedding):
        raise HeadstartError(
            f"{name} is not the embedding, though config.json says that they are tied", where=where
        )


def _check_shapes(
    rules: list[TensorRule], model: Model, tensors: Mapping[str, Tensor], where: Path
) -> None:
    ours = dict(model.named_parameters())
    wanted = write_tensors(rules, {name: value.detach() for name, value in ours.items()})
    problems = [
        f"{name} is {tuple(tensors[name].shape)} in the file, {tuple(value.shape)} in config.json"
        for name, value in wanted.items()
        if name in tensors and tensors[name].shape != value.shape
    ]
    if problems:
        raise HeadstartError(
            "the weights do not fit config.json:\n  " + "\n  ".join(problems),
            where=where,
            fix="put the config.json that belongs to these weights there",
        )


def _task(found: ForeignModel) -> Any:
    """The task of a classifier or tagger, so that it predicts as it is."""
    head = found.model.head_config
    if head is None or head.kind not in TASKS:
        return None
    several = found.config.values.get("problem_type") == "multi_label_classification"
    return find_task("multi-label" if several else TASKS[head.kind])(found.config.labels)
