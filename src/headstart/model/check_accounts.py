"""Hold the accounts against the real module, line by line. Nothing is allocated."""

import re
from dataclasses import dataclass

import torch

from headstart.model.accounts import Accounts
from headstart.model.config import HeadConfig
from headstart.model.model import build_model


@dataclass(frozen=True)
class Difference:
    """A line whose formula and module disagree; a parameter that no line counts has no formula."""

    head: str
    line: str
    formula: int
    module: int


def check_accounts(accounts: Accounts, heads: dict[str, HeadConfig]) -> list[Difference]:
    """Build base and heads on the meta device and compare every line: empty if all agree."""
    differences = []
    for name, config in heads.items():
        with torch.device("meta"):
            model = build_model(accounts.base_config, config)
        counts = {key: value.numel() for key, value in model.named_parameters()}
        for line in [*accounts.base, *accounts.heads[name]]:
            owned = [key for key in counts if re.match(line.owns, key)]
            found = sum(counts.pop(key) for key in owned)
            if found != line.count:
                differences.append(Difference(name, line.name, line.count, found))
        differences += [Difference(name, key, 0, count) for key, count in counts.items()]
    return differences
