"""Write docs/reference.md: every setting of every command, from the config classes.

python -m headstart.cli.reference
"""

from pathlib import Path

from headstart.cli.options import help_text
from headstart.config import FinetuneConfig, PretrainConfig, Setting, StudyConfig
from headstart.serve.settings import ServeConfig

PAGE = Path(__file__).parents[3] / "docs" / "reference.md"
INTRODUCTION = """\
# Reference of settings

This page is generated from the config classes by `python -m headstart.cli.reference`.

Every setting is an option on the command line, a line of a TOML file (`--config FILE`; names with
underscores) and, for `finetune`, a parameter of `HeadstartClassifier`. Where no default is listed,
the value comes from the data, the preset or the machine.
"""


def reference_page() -> str:
    """Return the text of the page."""
    lines = [INTRODUCTION]
    for config in (PretrainConfig, FinetuneConfig, StudyConfig, ServeConfig):
        lines += [f"## headstart {config.command}", ""]
        settings = config.settings()
        lines += [*_table([one for one in settings if not one.advanced]), "", "Advanced:", ""]
        lines += [*_table([one for one in settings if one.advanced]), ""]
    return "\n".join(lines)


def _table(settings: list[Setting]) -> list[str]:
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for one in settings:
        name = one.name.upper() if one.argument else f"`{one.option}`"
        default = "" if one.default in (None, []) else f"`{one.default}`"
        meaning = help_text(one, default=False).replace("|", "\\|")
        rows.append(f"| {name} | {default} | {meaning} |")
    return rows


if __name__ == "__main__":
    PAGE.write_text(reference_page(), encoding="utf-8")
