"""Small studies on generated data."""

from headstart.config import StudyConfig
from headstart.study.progress import StudyCallback
from headstart.study.study import finish_study, plan_study
from tests.corpora import write_corpus
from tests.labelled import TINY, dataset, write_csv


def small_config(folder, **changes):
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
        "folds": 1,
        "threads": 1,
        "precision": "fp32",
        "jobs": 1,
        **TINY,
    }
    return StudyConfig.create(**{**settings, **changes})


def run_config(config, folder, callback=None):
    """Run a study in this process; returns it with its results."""
    callback = callback or StudyCallback()
    study = plan_study(config, folder, callback=callback)
    finish_study(study, callback, command="headstart compare")
    return study


def small_study(folder, **changes):
    return run_config(small_config(folder, **changes), folder / "out")


def results_of(study, arm, **wanted):
    """The results of an arm's trainings."""
    return [
        one
        for job, one in study.results.items()
        if job.arm == arm
        if all(getattr(job, name) == value for name, value in wanted.items())
    ]
