"""How output looks: styles, tables, and the time that is left."""

from types import SimpleNamespace

import pytest

from headstart.cli import console
from headstart.cli.training import TrainDisplay


def test_the_time_left_counts_only_what_was_done_since_the_bar_began(monkeypatch, capsys):
    """The second epoch begins at step 100 of 200; ten steps in 20 s leave 90 of them."""
    now = [1000.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    with console.progress_bar("training", "steps", done_before=100) as show:
        show(101, 200)
        now[0] += 20
        show(110, 200)
    assert capsys.readouterr().err.strip() == ("training: 110 of 200 steps, 20 s, about 180 s left")


def test_a_resumed_training_says_where_it_goes_on(capsys):
    plan = {"steps": 200, "tokens": 9, "epochs": 1.0, "corpus_tokens": 9}
    plan |= {"parameters": 5, "threads": 1, "precision": "fp32", "seconds": None}
    TrainDisplay().on_start(SimpleNamespace(plan=plan, task=None), 100)
    assert "resumed at step 100 of 200" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["[neg]", "[/]", "[bold]x", ":smile:", "a\\", "{b}", "\\[x]"])
def test_a_styled_message_takes_its_values_literally(value):
    shown = console.styled("[bold]{name}[/] is {share:.0%}", name=value, share=0.5)
    assert shown.plain == f"{value} is 50%"
    assert [(span.start, span.end) for span in shown.spans] == [(0, len(value))]


def test_labels_in_a_table_are_not_markup(capsys):
    console.results().print(
        console.record_table([{"label": "[/]", "share": 0.5}], {"label": "", "share": ".0%"})
    )
    assert "[/]" in capsys.readouterr().out
