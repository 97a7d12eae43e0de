"""Every trained model comes with a card: date, versions, fingerprints, numbers and limits."""

import json
import re
import shlex

from huggingface_hub import ModelCard

from headstart.evaluation.metrics import wilson_interval
from headstart.model_card import CardScore, write_card
from headstart.training.finetune import finetune
from tests.labelled import config, splits


def test_a_fine_tuned_run_has_one_whose_command_works_wherever_it_is_moved(
    tmp_path, monkeypatch, headstart
):
    summary = finetune(config(epochs=1), tmp_path / "run", splits=splits()).summary
    card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    accuracy, rows = summary["validation"]["accuracy"], summary["validation_rows"]
    interval = wilson_interval(round(accuracy * rows), rows)
    assert f"| accuracy | {accuracy:.1%} | {interval.low:.1%} to {interval.high:.1%} |" in card
    identity = json.loads((tmp_path / "run" / "identity.json").read_text())
    assert all(digits[:16] in card for digits in identity.values())
    moved = (tmp_path / "run").rename(tmp_path / "best")
    (command,) = re.findall(r"`headstart (predict [^`]*)`", card)
    monkeypatch.chdir(moved)
    assert headstart(*shlex.split(command)).returncode == 0


def test_strings_of_the_user_are_no_markup(tmp_path):
    hostile = 'a: "b"\n---\x7f\x85\u2028🙂 #\\'
    write_card(
        tmp_path,
        title="a\n# b",
        data={"library_name": "headstart", "datasets": [hostile], "base_model": None},
        facts={"labels": "x | y\n\n<script>, [a](b)", "\x1b[31m": 1},
        scores=[CardScore("f1", 0.5, "a|b")],
        use="nothing",
        limits=["none"],
    )
    loaded = ModelCard.load(tmp_path / "README.md")
    assert loaded.data.datasets == [hostile]
    card = loaded.text
    assert "<script>" not in card
    assert "\x1b" not in card
    assert "x \\| y" in card
    assert sum(line.startswith("# ") for line in card.splitlines()) == 1
