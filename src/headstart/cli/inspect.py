"""Look before training: `headstart inspect` (data), `params` (network), `doctor` (machine)."""

from dataclasses import asdict
from typing import Annotated, Any

from rich.table import Table

from headstart.cli import console
from headstart.cli.options import Debug, Json, from_config, option, with_task
from headstart.config import SIZES, DatasetSettings, FinetuneConfig, MachineSettings
from headstart.errors import HeadstartError

SHARES = (("5", "5 %"), ("50", "median"), ("95", "95 %"), ("max", "longest"))
MOST_LABELS = 50  # are printed; --json has all
OVERLAP_HELP = (
    "equal: the same except for case and spacing; nearly equal: most sequences of three words are "
    "the same; inside a longer text, around a shorter one: word for word"
)
COUNT_COLUMNS = {
    **{"name": "", "formula": "", "numbers": ""},
    **{"count": ",", "share": ".1%", "trained": ""},
}
HEADS = {"language_modeling": "language modelling"}  # kinds, written for people


@from_config(DatasetSettings)
def inspect(
    given: dict[str, Any],
    corpus: Annotated[
        list[str] | None,
        option(help="Unlabelled text: a file, a folder or a name; can be repeated.", panel="Data"),
    ] = None,
    documents: Annotated[
        str | None,
        option(
            help="What one document of plain text is: line, blank-line or file; by default a line "
            "of a file, a whole file of a folder.",
            panel="Data",
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Look at data before training: sizes, labels, lengths, duplicates, overlap.

    headstart inspect reviews.csv --corpus my-text.txt
    """
    DatasetSettings.from_dict(given)  # a bad value is reported before any file is read
    config = DatasetSettings.from_dict(with_task(given))
    if not config.dataset and not corpus:
        raise HeadstartError(
            "no data was given",
            fix="give labelled data, or unlabelled text with --corpus; to try it: "
            "headstart inspect rotten-tomatoes --corpus imdb",
        )
    from headstart.data.corpus import read_corpus
    from headstart.data.inspect import inspect_data
    from headstart.tasks import find_task

    splits: Any = None
    unlabelled: Any = None
    with console.Display() as display:
        show = display.stage("reading")
        if config.dataset:
            splits = find_task(config.task).read(
                config.dataset, **config.read_options(), progress=show
            )
        if corpus:
            unlabelled = read_corpus(
                corpus,
                documents=documents,  # type: ignore[arg-type]
                text_column=config.text_column,
                encoding=config.encoding,
            )
        if config.drop_overlap and splits and unlabelled:
            evaluated = [part for part in (splits.validation, splits.test) if part is not None]
            unlabelled = unlabelled.without(text for part in evaluated for text in part.groups)
        found = inspect_data(splits, unlabelled, progress=display.stage("inspecting"))
    console.print_result(asdict(found), print_inspection, json=json)


def print_inspection(found: dict[str, Any]) -> None:
    """Print the sizes, labels and overlaps that an inspection found, examples, and warnings."""
    for line in found["found"]:
        console.write("{line}", line=line)
    sizes = {
        part["name"]: {
            "texts": part["documents"],
            "words": part["words"],
            **{f"words per text, {how}": part["percentiles"].get(n, 0) for n, how in SHARES},
            "duplicates": part["duplicates"],
        }
        for part in found["parts"]
    }
    console.show(console.facts_table(sizes), "")
    labelled = [part for part in found["parts"] if part["labels"]]
    if labelled:
        console.show(label_table(labelled), "")
    examples = [
        f"{one['part']} in {one['other']}: “{console.shortened(text)}”"
        for one in found["overlaps"]
        for text in one["examples"]
    ]
    if examples:
        console.write("[dim]{help}[/]", help=OVERLAP_HELP)
    for line in examples:
        console.write("{line}", line=line)
    for warning in found["warnings"]:
        console.write("[yellow]! {warning}[/]", warning=warning)


def label_table(parts: list[dict[str, Any]]) -> Table:
    """Make a table of the most frequent labels of the first part, with their shares."""
    labels = parts[0]["labels"]
    frequent = sorted(labels, key=lambda name: -labels[name])
    columns: dict[str, dict[str, int | str]] = {}
    for part in parts:
        columns[part["name"]] = {
            console.shortened(name): f"{count:,} ({count / max(1, part['labelled']):.0%})"
            for name in frequent[:MOST_LABELS]
            for count in [part["labels"].get(name, 0)]
        }
    return console.facts_table(columns, corner=f"{len(frequent):,} labels")


@from_config(FinetuneConfig, only=("preset", "objective", *SIZES))
def params(
    given: dict[str, Any],
    classes: Annotated[
        int,
        option(
            help="Classes of the classification head. Default: 2.",
            panel="Model",
            min=1,
            max=1_000_000,
        ),
    ] = 2,
    explain: Annotated[
        bool, option("--explain", help="Show common mistakes when counting parameters.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Count a network's parameters, part by part, with the formula of each.

    --preset lab --vocab-size 100 is the exercise of the lab.
    """
    config = FinetuneConfig(**given)
    from headstart.model.counts import common_mistakes, count_parameters
    from headstart.model.presets import preset

    counts = count_parameters(
        preset(config.preset, objective=config.objective, **config.sizes()), classes
    )
    document = counts.document()
    if explain:
        document["common_mistakes"] = common_mistakes(counts)
    console.print_result(document, print_counts, json=json)


def print_counts(document: dict[str, Any]) -> None:
    """Print the parts, the totals and, if asked for, common mistakes."""
    from headstart.model.counts import SYMBOLS

    console.write(
        "[bold]{preset}[/]: vocabulary {vocab_size:,}, width {width}, {layers} layers, {heads} "
        "heads, feed-forward {feed_forward_width}, {positions} positions, {attention}",
        preset=document["preset"],
        **document["config"],
    )
    totals = {"base": document["base"], **document["total"]}
    for row in document["parts"]:
        row["trained"] = "yes" if row["trainable"] else row["note"]
    for part, total in totals.items():
        whole = totals["language_modeling"] if part == "base" else total
        own = [row for row in document["parts"] if row["of"] == part]
        rows = [{**row, "share": row["count"] / whole} for row in own]
        console.show(console.record_table(rows, COUNT_COLUMNS))
        title = "base" if part == "base" else f"base + {HEADS.get(part, part)} head"
        console.write("[bold]{title} [cyan]{total:,}[/][/]\n", title=title, total=total)
    layer = document["layer"]
    console.write(
        "one layer: {total:,} = {sizes}",
        total=sum(layer.values()),
        sizes=" + ".join(f"{name} {count:,}" for name, count in layer.items()),
    )
    formulas = "".join(row["formula"] for row in document["parts"])
    used = " · ".join(f"{symbol} {name}" for symbol, name in SYMBOLS.items() if symbol in formulas)
    console.write("[dim]{used}; shares of the base refer to language modelling[/]", used=used)
    if "common_mistakes" in document:
        console.write("\n[bold]Common mistakes[/]")
    for one in document.get("common_mistakes", []):
        off = f"{abs(one['off_by']):,} {'too many' if one['off_by'] > 0 else 'too few'}"
        console.write("  [bold]{name}[/]: {off}\n    [dim]{why}[/]", off=off, **one)


@from_config(MachineSettings, only=("device", "threads"))
def doctor(given: dict[str, Any], json: Json = False, debug: Debug = False) -> None:
    """Measure this machine and show what Headstart uses: cores, memory, number format, speed."""
    from headstart.files import cache_folder
    from headstart.machine import choose_precision, look_up, pick_device, resolve_machine

    config = resolve_machine(MachineSettings(**given, precision="fp32"))
    cached = sum(path.stat().st_size for path in cache_folder().rglob("*") if path.is_file())
    document = {
        "machine": look_up(),
        "choices": {
            "device": config.device,
            "threads": config.threads,
            "precision": choose_precision(pick_device(config.device)),
        },
        "cache": {"folder": str(cache_folder()), "bytes": cached},
    }
    console.print_result(document, print_machine, json=json)


def print_machine(document: dict[str, Any]) -> None:
    """Print the facts about a machine, and what is used of it."""
    for title, facts in document.items():
        console.write("[bold]{title}[/]", title=title)
        rows = [{"": name.replace("_", " "), " ": str(fact)} for name, fact in facts.items()]
        console.show(console.record_table(rows, {"": "", " ": ""}), "")
