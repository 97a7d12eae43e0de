"""Small studies on generated data, for tests of the runner."""

from pathlib import Path

from headstart.studies.recipe import StudyRecipe, make_study_recipe
from tests.corpora import write_corpus
from tests.labelled import TINY, dataset, write_csv


def small_recipe(folder: Path, **changes) -> StudyRecipe:
    """Two budgets, two seeds, a tiny network; the data is written into `folder`."""
    data, corpus = folder / "data.csv", folder / "corpus.txt"
    if not data.exists():
        write_csv(data, dataset(200, wrong=0.1))
        write_corpus(corpus)
    settings = {
        "dataset": [str(data)],
        "corpus": [str(corpus)],
        "labels": ["20", "all"],
        "seeds": 2,
        "epochs": 2,
        "tokens": 8 * 2048,
        "threads": 1,
        **TINY,
    }
    return make_study_recipe(**{**settings, **changes})
