"""Metrics, calibration and intervals from labels and scores; independent of files and networks."""


def metric_name(metric: str) -> str:
    """Write a metric's name for people.

    >>> metric_name("macro_f1"), metric_name("exact_match")
    ('macro-F1', 'exact match')
    """
    return metric.replace("_f1", "-F1").replace("f1", "F1").replace("_", " ")
