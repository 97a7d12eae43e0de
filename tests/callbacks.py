"""Callbacks for tests of trainings."""

import os
import signal

from headstart.training.callbacks import Callback


class StopAt(Callback):
    """Asks the training to stop after a step, as the system would."""

    def __init__(self, step):
        self.step = step

    def on_step(self, state):
        if state.step == self.step:
            os.kill(os.getpid(), signal.SIGTERM)


class Recorder(Callback):
    """Writes down the events with their steps, in their order."""

    def __init__(self):
        self.events = []

    def on_start(self, run, step):
        self.events.append(("start", step))

    def on_step(self, state):
        self.events.append(("step", state.step))

    def on_evaluation(self, state):
        self.events.append(("evaluation", state.step))
