"""How output looks: styles and tables."""

import pytest

from headstart.cli import console


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
