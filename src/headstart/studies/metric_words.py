"""The words for what a study compares, where that is not the share of rows that are right."""

import re

from headstart.studies.results import Study


def metric_name(metric: str) -> str:
    """A metric as people write it.

    Example
    -------
    >>> metric_name("micro_f1"), metric_name("exact_match")
    ('micro-F1', 'exact match')
    """
    return metric.replace("_f1", "-F1").replace("f1", "F1").replace("_", " ")


def in_metric(words: str, study: Study) -> str:
    """Sentences that speak of accuracy, in the words of a study with another metric.

    Example
    -------
    >>> from types import SimpleNamespace
    >>> in_metric("test accuracy, 80 % of the test rows right", SimpleNamespace(metric="f1"))
    'test F1, 80 % F1 on the test rows'
    """
    if study.metric == "accuracy":
        return words
    name = metric_name(study.metric)
    words = words.replace("of the test rows right", f"{name} on the test rows")
    return re.sub(r"\b[Aa]ccuracy\b", name, words)
