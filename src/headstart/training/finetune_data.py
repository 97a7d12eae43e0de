"""The labelled rows of a fine-tuning (training, validation) and of its evaluation (test)."""

from typing import Any

from headstart.errors import HeadstartError
from headstart.tasks import find_task
from headstart.tasks.task import Parts, Task
from headstart.text.reading.sources import has_parts
from headstart.training.finetune_recipe import FinetuneRecipe
from headstart.training.prepare import Stages, quiet


def read_splits(recipe: FinetuneRecipe, stages: Stages = quiet) -> Parts[Any]:
    """The parts of the recipe's dataset, the same ones every time."""
    return find_task(recipe.task).read(
        recipe.dataset,
        text_column=recipe.text_column or None,
        second_column=recipe.second_column or None,
        label_column=recipe.label_column or None,
        encoding=recipe.encoding,
        validation=recipe.validation or None,
        test=recipe.test or None,
        seed=recipe.split_seed,
        drop_overlap=recipe.drop_overlap,
        progress=stages("reading the dataset"),
    )


def judged_rows(
    recipe: FinetuneRecipe,
    task: Task[Any],
    dataset: str | None,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    stages: Stages = quiet,
) -> tuple[Any, str]:
    """The rows to evaluate a run on, and what they are in words.

    The test part of a dataset that has parts (the run's own, a built-in one, one of the Hub,
    a folder such as the lab's); every row of any other file.
    """
    how = {"encoding": recipe.encoding, "progress": stages("reading the dataset")}
    if dataset is None or [dataset] == recipe.dataset:
        splits, name = read_splits(recipe, stages), ", ".join(recipe.dataset)
    else:
        how["text_column"] = text_column or recipe.text_column or None
        how["second_column"] = recipe.second_column or None
        how["label_column"] = label_column or recipe.label_column or None
        name = dataset
        if not has_parts(dataset):
            return task.read_all(dataset, **how), f"every row of {name}"
        splits = task.read([dataset], seed=recipe.split_seed, **how)
    if splits.test is None:
        raise HeadstartError(
            "the dataset has no test part to evaluate on",
            where=name,
            fix="name a file with labelled texts that the run has not seen",
        )
    return task.fitted(splits.test, name), f"the test part of {name}"
