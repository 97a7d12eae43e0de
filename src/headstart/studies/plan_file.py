"""`plan.json`: a study's plan, kept, read again, and adapted to where its trainings run now."""

import json
from dataclasses import asdict, fields, replace
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.studies.data import StudyData
from headstart.studies.executors import find_executor
from headstart.studies.plan import StudyPlan
from headstart.studies.recipe import StudyRecipe

FILE = "plan.json"


def write_plan(plan: StudyPlan, folder: Path) -> None:
    """Keep the plan for a study that is started again."""
    write_text(folder / FILE, json.dumps(asdict(plan), indent=2, ensure_ascii=False) + "\n")


def read_plan(folder: Path) -> StudyPlan | None:
    """The plan that was kept, if there is one."""
    path = folder / FILE
    if not path.is_file():
        return None
    return parse_plan(path, "choose another --out, or delete this folder and start anew")


def parse_plan(path: Path, fix: str) -> StudyPlan:
    """A plan from a file: a study's own, or what `--dry-run --json` printed."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        known = {one.name: values[one.name] for one in fields(StudyPlan) if one.name in values}
        known["epochs"] = {int(labels): count for labels, count in values["epochs"].items()}
        return StudyPlan(**known)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise HeadstartError("the study's plan is damaged", where=path, fix=fix) from None


def check_plan(plan: StudyPlan, path: Path, recipe: StudyRecipe, data: StudyData) -> StudyPlan:
    """The plan, if it fits the recipe and the data."""
    fits = set(plan.budgets) <= set(data.budgets) and set(plan.epochs) >= set(plan.budgets)
    if not plan.budgets or not fits or not set(plan.seeds) <= set(range(recipe.seeds)):
        raise HeadstartError(
            "this plan was made for other data or other settings",
            where=path,
            fix="make it again: headstart compare … --dry-run --json",
        )
    return plan


def adapt_plan(plan: StudyPlan, recipe: StudyRecipe) -> StudyPlan:
    """A plan that was made before, with as many trainings at a time as can run now."""
    executor = find_executor(recipe.executor)
    if not recipe.jobs and plan.executor == recipe.executor == "local":
        return plan
    jobs = executor.at_once(recipe, recipe.resources(plan.threads))
    return replace(plan, jobs=jobs, executor=recipe.executor)
