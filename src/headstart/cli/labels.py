"""`headstart labels`: how many labels does an accuracy need?"""

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.output import Debug, Json, print_json, results, styled


def labels(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="What `headstart compare … --out DIR` wrote.")
    ],
    target: Annotated[
        float, typer.Option(help="The accuracy that is wanted, between 0 and 1.")
    ] = 0.85,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Say how many labels each arm of a study needs for an accuracy.

    headstart labels studies/mine --target 0.85

    A power law is fitted to the study's label budgets, with an interval over seeds and test rows.
    Where the curve or the goal allows no answer, it says why.
    """
    from headstart.studies.label_goals import labels_words, study_labels
    from headstart.studies.words import series_name

    found, answers = study_labels(study, [target])
    if json:
        arms = [answer.document() for answer in answers]
        print_json({"target": target, "budgets": found.budgets, "arms": arms})
        return
    console = results()
    console.print(f"Labels for an accuracy of {100 * target:g} %, with 95 % intervals:")
    names = {answer.series: series_name(answer.series, found) for answer in answers}
    width = max(map(len, names.values()), default=0)
    for answer in answers:
        words = labels_words(answer.needed, found.budgets[-1])
        line = styled("  {name}  {words}", name=f"{names[answer.series]:<{width}}", words=words)
        console.print(line, soft_wrap=True)
