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
    """Writes down the events, in their order, with what came with them."""

    def __init__(self):
        self.events = []

    def names(self):
        return [name for name, _ in self.events]

    def values(self, name):
        return [value for found, value in self.events if found == name]

    def stage(self, name):
        self.events.append(("stage", name))
        return super().stage(name)

    def on_start(self, run, step):
        self.events.append(("start", (run, step)))

    def on_step(self, state):
        self.events.append(("step", state.step))

    def on_evaluation(self, state):
        self.events.append(("evaluation", dict(state.metrics)))

    def on_warning(self, message):
        self.events.append(("warning", message))
