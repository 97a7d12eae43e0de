"""The loop, the same for every objective and task.

It knows a model, how to get a step's loss, and how to evaluate; not what is learned. Everything
random is drawn from the seed and the step, so a resumed run needs no random state to continue with
the very same bits.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

import numpy as np
import torch
from torch import Tensor, nn

from headstart.errors import HeadstartError
from headstart.machine import Precision, autocast
from headstart.training.averaging import WeightAverage
from headstart.training.checkpoints import Checkpoints
from headstart.training.listener import Listener, Progress
from headstart.training.optimizer import make_optimizer, set_learning_rate
from headstart.training.processes.ranks import ONE, Ranks
from headstart.training.schedule import Schedule, Shape

EXPLODED = 3.0  # times the first step's loss


@dataclass(frozen=True)
class MicroBatch:
    """A part of a step that fits into memory: its summed loss, and what it is a sum over."""

    compute: Callable[[], Tensor]
    targets: float  # how many, or the sum of their weights
    tokens: int

    def weightless(self) -> "MicroBatch":
        """The same pass through the model, with a loss and gradients of zero."""
        return MicroBatch(lambda: 0.0 * self.compute(), 0.0, 0)


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """What the loop has to know of a recipe."""

    steps: int
    learning_rate: float
    seed: int
    warmup: float = 0.05
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = 1.0
    shape: Shape = "linear"
    exploded: float = EXPLODED
    precision: Precision = "fp32"
    evaluate_every: int = 100
    save_seconds: float = 60.0
    average: float = 0.0  # share of the epochs, from the end, whose weights are averaged
    epoch_steps: int = 1


class Interrupted(BaseException):
    """The user (or the system) stopped the training; everything is saved.

    Like `KeyboardInterrupt` it is no `Exception`: a search over settings that continues after a
    failed training (`error_score` of scikit-learn) must not continue after this.
    """

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


Evaluate = Callable[[], dict[str, float]]


def by_loss(evaluation: dict[str, float]) -> float:
    """Order evaluations by their loss."""
    return evaluation["loss"]


class Loop:
    """Train `model` for `settings.steps` steps; `run()` does it, from a checkpoint on request.

    `batches(step)` gives the step's micro-batches; their losses are divided by the targets of all
    of them together, which makes accumulation equal to the large batch. `evaluate()` returns
    numbers with a "loss" among them; `choose` makes one of them (the lower the better), which
    selects the best. `enough(progress)` ends the training early; it is called between steps, and
    must depend on the progress alone, so that a resumed run ends at the same step. Of several
    processes (`ranks`) each takes its share of a step's micro-batches, and rank 0 has the
    checkpoints; averaged weights are for one process.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: LoopSettings,
        *,
        batches: Callable[[int], list[MicroBatch]],
        evaluate: Evaluate,
        checkpoints: Checkpoints | None = None,
        choose: Callable[[dict[str, float]], float] = by_loss,
        enough: Callable[[Progress], bool] = lambda progress: False,
        scales: Mapping[str, float] | None = None,
        ranks: Ranks = ONE,
    ) -> None:
        self.model, self.ranks = model, ranks
        self.settings = settings
        self.batches, self.evaluate = batches, evaluate
        self.checkpoints = checkpoints
        self.choose, self.enough = choose, enough
        self.listener = Listener()
        self.schedule = Schedule(
            settings.learning_rate, settings.steps, settings.warmup, settings.shape
        )
        self.optimizer = make_optimizer(
            model,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            betas=settings.betas,
            scales=scales,
        )
        self.progress = Progress(settings.steps)
        self.device = next(model.parameters()).device
        self.average = WeightAverage(model, share=settings.average, every=settings.epoch_steps)
        self._began = time.monotonic()

    def set_steps(self, steps: int) -> None:
        """Change the number of steps, before the first one is taken."""
        settings = self.settings = replace(self.settings, steps=steps)
        self.schedule = Schedule(settings.learning_rate, steps, settings.warmup, settings.shape)
        self.progress = Progress(steps)

    def run(self, *, resume: bool = False, listener: Listener | None = None) -> Progress:
        """Train to the end, from the newest checkpoint if `resume`.

        `listener` receives the steps and evaluations.
        """
        self.listener = listener or self.listener
        progress = self.progress
        if resume:
            # Nothing but the call holds what is read: it is as large as model and optimizer.
            state = self.ranks.copy_training(
                self.model,
                self.optimizer,
                None
                if self.checkpoints is None
                else self.checkpoints.read(self.model, self.average.mean),
            )
            for key, value in state["progress"].items():
                setattr(progress, key, value)
        saved = time.monotonic()
        self._began = saved - progress.seconds
        with own_random_state(), stop_requests() as stop:
            while progress.step < self.settings.steps and not self.enough(progress):
                self._step()
                self.average.update(progress.step, self.settings.steps)
                progress.seconds = time.monotonic() - self._began
                self.listener.on_step(progress)
                last = progress.step == self.settings.steps
                if progress.step % self.settings.evaluate_every == 0 or last:
                    with self.average.in_place():
                        self._evaluate()
                due = time.monotonic() - saved >= self.settings.save_seconds
                stopping = self.ranks.agree_to_stop(stop.is_set())
                wanted = self.checkpoints is not None and (due or last or stopping)
                if self.ranks.placement.agree_to_save(wanted):
                    self.save()
                    saved = time.monotonic()
                if stopping and not last:
                    raise Interrupted(progress.step)
        return progress

    def save(self) -> None:
        """Write a checkpoint; processes without a folder give their parts of it."""
        weights = self.ranks.placement.weights(self.model)
        moments = self.ranks.placement.moments(self.optimizer, self.model)
        if self.checkpoints is not None:
            state = self.progress.state()
            self.checkpoints.save(self.progress.step, weights, moments, state, self.average.mean)

    def gradients(self, step: int) -> tuple[float, int]:
        """Add up the gradients of a step; its mean loss, and its tokens."""
        batches = self.batches(step)
        targets = sum(batch.targets for batch in batches)
        total = 0.0
        with self.precision():  # one context for all of them: weights are converted once per step
            for batch in self.ranks.share(batches):
                loss = batch.compute()
                (loss / targets).backward()
                total += float(loss.detach())
        total = self.ranks.sum_gradients(self.model, total)
        return total / targets, sum(batch.tokens for batch in batches)

    def precision(self) -> torch.autocast:
        return autocast(self.settings.precision, self.device)

    def _step(self) -> None:
        progress = self.progress
        self.model.train()
        self.ranks.step = progress.step + 1
        seed = step_seed(self.settings.seed, progress.step, self.ranks.rank)
        torch.manual_seed(seed)  # for dropout
        loss, tokens = self.gradients(progress.step)
        self._check(loss)
        norm = self.ranks.placement.clip_gradients(self.model, self.settings.clip)
        if not math.isfinite(norm):
            raise self._diverged(f"the gradient is {norm}")
        set_learning_rate(self.optimizer, self.schedule.at(progress.step))
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        progress.loss = loss
        progress.tokens += tokens
        progress.step += 1

    def evaluation(self) -> dict[str, float]:
        self.model.eval()
        with torch.no_grad(), self.precision():
            return self.evaluate()

    def _evaluate(self) -> None:
        self.progress.evaluation = self.evaluation()
        self.progress.evaluations += 1
        self.progress.seconds = time.monotonic() - self._began
        loss = self.progress.evaluation["loss"]
        if not math.isfinite(loss):
            raise self._diverged(f"the held-out loss is {loss}")
        score = self.choose(self.progress.evaluation)
        if score < self.progress.best:
            self.progress.best, self.progress.best_step = score, self.progress.step
            self.listener.on_best(self.progress)
        self.listener.on_evaluation(self.progress)

    def _check(self, loss: float) -> None:
        progress = self.progress
        if math.isnan(progress.first_loss):
            progress.first_loss = loss
        if not math.isfinite(loss):
            raise self._diverged(f"the loss is {loss}")
        if loss > self.settings.exploded * progress.first_loss:
            raise self._diverged(
                f"the loss is {loss:.2f}, after {progress.first_loss:.2f} at first"
            )

    def _diverged(self, what: str) -> HeadstartError:
        found = self.checkpoints.list() if self.checkpoints is not None else []
        good = (
            f"the last good checkpoint is {found[-1].folder}" if found else "nothing was saved yet"
        )
        return HeadstartError(
            f"training broke down at step {self.progress.step + 1}: {what}; {good}",
            fix=f"use a lower --learning-rate than {self.settings.learning_rate:g}, "
            "or --precision fp32",
        )


def step_seed(seed: int, step: int, rank: int = 0) -> int:
    """The seed of one step, drawn from that of the run; each process has its own."""
    key = [seed, step, rank] if rank else [seed, step]
    return int(np.random.SeedSequence(key).generate_state(1)[0])


@contextmanager
def own_random_state() -> Iterator[None]:
    """Seed and draw inside; outside, PyTorch's global generators are as they were."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        yield


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM set the event and the process continues; a second Ctrl-C ends it."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may listen to signals
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
