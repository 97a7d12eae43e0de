"""Small classifiers of every kind, as runs; for tests of saving and using them."""

from pathlib import Path

import numpy as np

from headstart.baselines.linear import (
    CooccurrenceClassifier,
    NaiveBayesClassifier,
    TfidfClassifier,
)
from headstart.baselines.stack import Stack
from headstart.data.tokenizers import train_tokenizer
from headstart.run import ClassifierRun, NetworkRun
from headstart.tasks.classification import Classification
from tests.labelled import dataset

KINDS = ("tfidf", "nb", "cooc-lr", "stack")
TRAIN, HELD_OUT = dataset(60), dataset(30, 1)


def classifier_run(kind: str, network: Path | None = None) -> ClassifierRun:
    """Make a fitted run that has not been saved."""
    task = Classification(TRAIN.label_names)
    if kind in MADE:
        held_out = (HELD_OUT.texts, HELD_OUT.labels)
        classifier = MADE[kind]().fit(TRAIN.texts, TRAIN.labels, validation=held_out)
        return ClassifierRun(Path(kind), classifier, task=task)
    members = {"tfidf": classifier_run("tfidf"), "cooc-lr": classifier_run("cooc-lr")}
    if network is not None:
        members = {"tfidf": members["tfidf"], "network": NetworkRun.open(network)}
    return ClassifierRun(Path(kind), Stack([0.7, 0.4], members), task=task)


def _cooccurrence():
    tokenizer = train_tokenizer(TRAIN.texts, vocab_size=300)
    vectors = np.random.default_rng(0).normal(size=(tokenizer.vocab_size, 8))
    return CooccurrenceClassifier(vectors.astype(np.float32), tokenizer=tokenizer)


MADE = {"tfidf": TfidfClassifier, "nb": NaiveBayesClassifier, "cooc-lr": _cooccurrence}
