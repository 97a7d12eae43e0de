"""Arms for tests; worker processes import them by name."""

import contextlib
import os
import signal
from typing import ClassVar

import numpy as np

from headstart.studies.arms.arm import Arm, Colours, Fitted
from headstart.studies.arms.registry import FOREIGN, add_arm
from headstart.studies.outcomes import RunKey


class Majority(Arm):
    """Always the class that most training rows have."""

    name = "majority"
    label = "majority class"
    description = "The share of each class in the training rows, whatever the text."
    colours = Colours("#aa8800", "#ddbb33", light_text="#886600", dark_text="#ddbb33")
    stackable = True
    varies_with_seed = False
    trained: ClassVar[list[RunKey]] = []  # in this process

    def fit(self, context):
        self.trained.append(context.run)
        counts = np.bincount(context.splits.train.labels, minlength=len(context.label_names))
        shares = counts / counts.sum()
        return Fitted(lambda part: np.tile(shares, (len(context.splits.parts()[part]), 1)))


class Failing(Arm):
    """Ends in the way that its run's number of labels stands for."""

    name = "failing"
    label = "failing"
    description = "A training that goes wrong."
    is_network = True

    def fit(self, context):
        if context.run.labels == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        if context.run.labels == 1:
            raise KeyboardInterrupt
        raise ZeroDivisionError("a bug of ours")


@contextlib.contextmanager
def registered(arm):
    """The arm, known while the block runs."""
    add_arm(arm)
    try:
        yield arm
    finally:
        del FOREIGN[arm.name]
