"""One table for both directions: which of their tensors make up which of ours.

Ours joins queries, keys and values (and the two halves of a gated layer) in one matrix, GPT-2 keeps
its matrices transposed, and BERT's next-sentence answers stand in the other order. Nothing else
differs, so a tensor that goes in and out again comes back bit for bit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from headstart.errors import HeadstartError


@dataclass(frozen=True)
class TensorRule:
    """One of our tensors and its counterparts there."""

    ours: str
    theirs: tuple[str, ...]  # several are joined along the first dimension
    sizes: tuple[int, ...] = ()  # of each part; without them the parts are equally large
    transposed: bool = False
    reversed: bool = False  # the rows in the other order

    def read(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Our tensor, from theirs."""
        parts = [tensors[name].t() if self.transposed else tensors[name] for name in self.theirs]
        joined = parts[0] if len(parts) == 1 else torch.cat(parts)
        return joined.flip(0) if self.reversed else joined

    def write(self, ours: Tensor) -> dict[str, Tensor]:
        """Their tensors, from ours."""
        whole = ours.flip(0) if self.reversed else ours
        if len(self.theirs) == 1:
            parts: Iterable[Tensor] = [whole]
        else:
            parts = whole.split(list(self.sizes)) if self.sizes else whole.chunk(len(self.theirs))
        return {
            name: (part.t() if self.transposed else part).contiguous()
            for name, part in zip(self.theirs, parts, strict=True)
        }


def pair(
    ours: str,
    *theirs: str,
    bias: bool = True,
    sizes: tuple[int, ...] = (),
    transposed: bool = False,
) -> list[TensorRule]:
    """The rules of a layer's weight and, with `bias`, of its bias."""
    rules = [
        TensorRule(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), sizes, transposed)
    ]
    if bias:
        names = tuple(f"{name}.bias" for name in theirs)
        rules.append(TensorRule(f"{ours}.bias", names, sizes))
    return rules


def read_tensors(
    rules: Iterable[TensorRule], tensors: Mapping[str, Tensor], *, where: object
) -> dict[str, Tensor]:
    """Our tensors from theirs; what is missing and what has no place here is listed by name."""
    rules = list(rules)
    wanted = {name for rule in rules for name in rule.theirs}
    problems = [f"{name} is missing" for name in sorted(wanted - tensors.keys())]
    problems += [f"{name} has no place here" for name in sorted(tensors.keys() - wanted)]
    if problems:
        raise HeadstartError(
            "the weights are not those that config.json describes:\n  " + "\n  ".join(problems),
            where=where,
            fix="download the folder again, with all of its files",
        )
    for rule in rules:
        _check_joining(rule, tensors, where)
    return {rule.ours: rule.read(tensors) for rule in rules}


def _check_joining(rule: TensorRule, tensors: Mapping[str, Tensor], where: object) -> None:
    """Refuse parts that cannot be joined; the sizes of the whole are checked with the model's."""
    shapes = [tuple(tensors[name].shape) for name in rule.theirs]
    if len({shape[1:] for shape in shapes}) > 1 or not shapes[0]:
        found = ", ".join(f"{n}: {s}" for n, s in zip(rule.theirs, shapes, strict=True))
        raise HeadstartError(f"the weights do not fit each other: {found}", where=where)


def write_tensors(rules: Iterable[TensorRule], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their tensors from ours; every one of ours must have its rule."""
    rules = list(rules)
    without = ours.keys() - {rule.ours for rule in rules}
    assert not without, f"no rule for {sorted(without)}"
    return {name: part for rule in rules for name, part in rule.write(ours[rule.ours]).items()}
