"""Parameter accounts as one plain document: what `headstart params --json` and a report show."""

from typing import Any

from headstart.model.accounts import Accounts, Line, layer_lines
from headstart.model.costs import multiplications, training_memory
from headstart.model.presets import Preset


def account_document(accounts: Accounts, chosen: Preset) -> dict[str, Any]:
    def part(line: Line, of: str) -> dict[str, Any]:
        return {
            "name": line.name,
            "of": of,
            "formula": line.formula,
            "numbers": accounts.in_numbers(line.formula),
            "count": line.count,
            "trainable": line.trainable,
        }

    products = multiplications(chosen.base, chosen.language_modeling)
    memory = {head: training_memory(accounts.total(head)) for head in accounts.heads}
    return {
        "preset": chosen.name,
        "config": chosen.base.to_dict(),
        "base": accounts.base_count,
        "heads": {head: accounts.head_count(head) for head in accounts.heads},
        "total": {head: accounts.total(head) for head in accounts.heads},
        "layer": {line.name: line.count for line in layer_lines(chosen.base)},
        "parts": [part(line, "base") for line in accounts.base]
        + [part(line, head) for head in accounts.heads for line in accounts.heads[head]],
        "training_memory_bytes": {
            head: {**vars(costs), "total": costs.total} for head, costs in memory.items()
        },
        "multiplications_per_token": {**vars(products), "output_share": products.output_share},
    }
