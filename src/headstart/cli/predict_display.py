"""How predictions look: classes with the words that mattered, tags and answers in their text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headstart.cli.output import styled

if TYPE_CHECKING:
    from headstart.explain import Effect, Explanation
    from headstart.tasks.task import Task

Predictions = Sequence[Mapping[str, Any]]
COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "red")
AROUND = 60  # characters of a text before and behind an answer
METHODS = {
    "occlusion": "Each word is left out in turn; the numbers say by how much the label's log-odds "
    "fall without it.",
    "contributions": "The label's log-odds are a sum; the numbers are each word's part of it.",
}
TOO_LONG = "longer than this run reads (set with finetune's --length, or --long windows)"


def show_predictions(
    console: Console,
    task: "Task[Any]",
    inputs: Sequence[Any],
    predictions: Predictions,
    explanations: "Sequence[Explanation] | None" = None,
) -> None:
    """Show predictions as their task is shown."""
    if task.name == "tagging":
        entities = bool(getattr(task, "entities", False))
        show_tags(console, predictions, task.labels, entities=entities)
    elif task.name == "spans":
        show_spans(console, inputs, predictions)
    else:
        show_classes(console, inputs, predictions, explanations)


def show_classes(
    console: Console,
    inputs: Sequence[Any],
    predictions: Predictions,
    explanations: "Sequence[Explanation] | None" = None,
) -> None:
    """One label per text; with `explanations`, the words that moved it."""
    table = _table("label", "probability", "text")
    for place, (given, found) in enumerate(zip(inputs, predictions, strict=True)):
        effects = explanations[place].effects if explanations else []
        label = found["label"] if "label" in found else ", ".join(found["labels"])
        probability = max(found["probabilities"].values())
        table.add_row(label, f"{probability:.1%}", _marked(given, effects))
        if effects:
            table.add_row("", "", Text(_strongest(effects), style="dim"))
    console.print(table)
    if explanations:
        method = explanations[0].method
        line = styled("[dim]method: {method}. {how} [/]", method=method, how=METHODS[method])
        marks = styled(
            "[green]Green[/][dim] words speak for the label, [/][red]red[/][dim] ones against it[/]"
        )
        console.print(line + marks)


def show_tags(
    console: Console, predictions: Predictions, labels: Sequence[str], *, entities: bool
) -> None:
    """Each word with its tag; below, the entities, or the words where tags make no entities."""
    kinds = sorted({_kind(tag) for tag in labels if tag != "O"})
    colours = {kind: COLOURS[place % len(COLOURS)] for place, kind in enumerate(kinds)}
    for place, answer in enumerate(predictions):
        if place:
            console.print()
        console.print(_tagged(answer, colours), soft_wrap=True)
        if unread := answer["tags"].count(None):
            _warn(console, f"{unread:,} words at the end were not read", "the text")
        if entities:
            _show_entities(console, answer, colours)
        else:
            _show_words(console, answer, colours)


def show_spans(
    console: Console, inputs: Sequence[tuple[str, str]], predictions: Predictions
) -> None:
    """The answer to each question, and where it stands in its text."""
    for place, ((question, text), found) in enumerate(zip(inputs, predictions, strict=True)):
        if place:
            console.print()
        console.print(Text(question, style="dim"), soft_wrap=True)
        if found["answer"] is None:
            line = styled("[bold]no answer[/] in this text, {p:.1%}", p=found["probability"])
            console.print(line)
        else:
            start, end = found["start"], found["end"]
            where = f", {found['probability']:.1%}, characters {start} to {end}"
            console.print(Text.assemble((found["answer"], "bold green"), where), soft_wrap=True)
            console.print(_answer_in_text(text, start, end), soft_wrap=True)
        if found["unread"]:
            _warn(console, f"the last {found['unread']:,} characters were not read", "the text")


def _warn(console: Console, what: str, longer: str) -> None:
    line = styled("[yellow]{what}[/]: {longer} is ", what=what, longer=longer)
    console.print(line + TOO_LONG)


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, header_style="dim", pad_edge=False)


def _strongest(effects: "list[Effect]", count: int = 5) -> str:
    largest = sorted(effects, key=lambda one: -abs(one.effect))[:count]
    return "  ".join(f"{one.text} {one.effect:+.2f}" for one in largest)


def _marked(given: Any, effects: "list[Effect]") -> Text:
    texts = [given] if isinstance(given, str) else given
    marked, behind = Text(" | ".join(texts)), len(texts[0]) + len(" | ")
    most = max((abs(one.effect) for one in effects), default=0.0)
    for one in effects:
        share = abs(one.effect) / most if most else 0.0
        if share >= 0.15:
            style = "green" if one.effect > 0 else "red"
            style = f"bold {style}" if share >= 0.5 else style
            shift = behind * one.part
            marked.stylize(style, one.start + shift, one.end + shift)
    return marked


def _kind(tag: str) -> str:
    """PER of B-PER and I-PER; a tag without such a beginning is its own kind."""
    return tag[2:] if tag[:2] in ("B-", "I-") else tag


def _tagged(answer: Mapping[str, Any], colours: dict[str, str]) -> Text:
    """`Marie/B-PER lives/O`, as far as the text was read."""
    words = []
    for word, tag in zip(answer["words"], answer["tags"], strict=True):
        if tag is None:
            break
        colour = colours.get(_kind(tag))
        style = f"bold {colour}" if colour else ""
        words.append(Text.assemble((word, style), (f"/{tag}", colour or "dim")))
    return Text(" ").join(words)


def _show_entities(console: Console, answer: Mapping[str, Any], colours: dict[str, str]) -> None:
    if not answer["entities"]:
        console.print("no entities", style="dim")
        return
    table = _table("entity", "kind", "probability", "characters")
    for one in answer["entities"]:
        table.add_row(
            Text(one["text"]),
            Text(one["kind"], style=colours[one["kind"]]),
            f"{one['probability']:.1%}",
            f"{one['start']} to {one['end']}",
        )
    console.print(table)


def _show_words(console: Console, answer: Mapping[str, Any], colours: dict[str, str]) -> None:
    table = _table("word", "tag", "probability")
    columns = (answer[name] for name in ("words", "tags", "probabilities"))
    for word, tag, probability in zip(*columns, strict=True):
        if tag is not None and probability is not None:
            colour = colours.get(_kind(tag), "")
            table.add_row(Text(word), Text(tag, style=colour), f"{probability:.1%}")
    console.print(table)


def _answer_in_text(text: str, start: int, end: int) -> Text:
    before, behind = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    return Text.assemble(
        ("…" if start > AROUND else "") + " ".join(before.split()),
        " " if before[-1:].isspace() else "",
        ("[" + text[start:end] + "]", "bold green"),
        " " if behind[:1].isspace() else "",
        " ".join(behind.split()) + ("…" if len(text) > end + AROUND else ""),
        style="dim",
    )
