"""The trainer, the same for every objective and task.

It gets a model, the micro-batches of a step and an evaluation function. Everything random is a
function of the seed and the step, so a resumed run continues bit for bit without a random state.
"""

import math
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headstart.config import FinetuneConfig, PretrainConfig
from headstart.errors import HeadstartError
from headstart.machine import autocast
from headstart.training.callbacks import Callback
from headstart.training.optimizer import (
    clip_gradients,
    make_optimizer,
    optimizer_tensors,
    restore_optimizer,
)
from headstart.training.processes import Processes
from headstart.training.run_files import Checkpoints

CLIP = 1.0  # the largest norm of a step's gradients
TIMED_PASSES, TIMED_SECONDS = 9, 4.0  # of steps that are timed, at most


@dataclass(frozen=True)
class MicroBatch:
    """A part of a step that fits into memory."""

    compute: Callable[[], Tensor]  # the loss, summed over the targets
    targets: float  # how many there are, or the sum of their weights
    tokens: int  # that are read


@dataclass
class TrainState:
    """Where a training stands: what a display shows and a checkpoint saves."""

    steps: int = 0  # of the whole training
    step: int = 0
    loss: float = math.nan
    tokens: int = 0
    seconds: float = 0.0  # over all sessions
    best: float = math.inf
    best_step: int = 0
    loss_sum: float = 0.0  # since the last evaluation
    metrics: dict[str, float] = field(default_factory=dict)  # of the last evaluation
    history: list[dict[str, Any]] = field(default_factory=list)  # one row per evaluation


class Interrupted(BaseException):
    """A stop by user or system; no `Exception`, so that a search over settings stops, too."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


class WeightAverage:
    """The mean of the weights after each of the last epochs (Izmailov et al. 2018)."""

    def __init__(self, model: nn.Module, share: float, epoch_steps: int) -> None:
        self.model, self.share, self.epoch_steps = model, share, epoch_steps
        self.mean: dict[str, Tensor] = {}

    def count(self, steps: int) -> int:
        """Return the number of epochs that are averaged; with fewer than two, none is."""
        found = int(self.share * -(-steps // self.epoch_steps) + 1e-9)
        return found if found > 1 else 0

    @torch.no_grad()
    def update(self, step: int, steps: int) -> None:
        """Include the weights after `step`, if one of the last epochs ends there."""
        number = step // self.epoch_steps + self.count(steps) - -(-steps // self.epoch_steps)
        if step % self.epoch_steps == 0 and number >= 1:
            for name, weights in self.model.named_parameters():
                self.mean.setdefault(name, torch.zeros_like(weights)).lerp_(weights, 1 / number)

    def swap(self) -> None:
        """Exchange the model's weights and their mean, if there is one."""
        for name, parameter in self.model.named_parameters():
            if name in self.mean:
                parameter.data, self.mean[name] = self.mean[name], parameter.data


class Trainer:
    """Train a model for a number of steps.

    The losses of a step's micro-batches are divided by the targets of all of them, so that
    accumulation equals the large batch. `selection` takes the metrics and whether this is the last
    evaluation; the lowest value is the best.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Callable[[int], list[MicroBatch]],  # of a step
        evaluate: Callable[[], dict[str, float]],  # named numbers, "loss" among them
        config: PretrainConfig | FinetuneConfig,
        *,
        epoch_steps: int = 1,  # of fine-tuning; at the ends of epochs, weights are averaged
        folder: Path | None = None,  # for checkpoints; without it nothing is written
        callback: Callback | None = None,
        selection: Callable[[dict[str, float], bool], float] = lambda found, last: found["loss"],
        save_best: Callable[[], object] = lambda: None,  # called after the best one so far
        processes: Processes | None = None,  # that share the training; the first one writes
    ) -> None:
        self.processes = processes or Processes({})  # alone
        self.model, self.batches, self.evaluate = model, batches, evaluate
        self.config, self.state = config, TrainState()
        self.checkpoints = None if folder is None else Checkpoints(folder / "checkpoints")
        self.callback = callback or Callback()
        self.selection, self.save_best = selection, save_best
        self.device = next(model.parameters()).device
        if isinstance(config, PretrainConfig):
            betas, row_rate, share = (0.9, 0.98), config.embedding_learning_rate, 0.0
        else:
            betas, row_rate, share = (0.9, 0.999), None, config.average
        self.average = WeightAverage(model, share, epoch_steps)
        self.optimizer = make_optimizer(
            model,
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
            betas=betas,
            embedding_learning_rate=row_rate,
        )

    def fit(self, steps: int, *, evaluate_every: int, resume: bool = False) -> TrainState:
        """Train for `steps` steps in all, from the newest checkpoint if `resume`."""
        state = self.state
        state.steps = steps
        if resume:
            self._restore()
        saved = time.monotonic()
        began = saved - state.seconds
        with torch.random.fork_rng(range(torch.cuda.device_count())), stop_requests() as stop:
            while state.step < steps:
                self._step(state.step)
                self.average.update(state.step, steps)
                state.seconds = time.monotonic() - began
                self.callback.on_step(state)
                last = state.step == steps
                if last or state.step % evaluate_every == 0:
                    self.average.swap()
                    self._evaluate(began, last)
                    self.average.swap()
                stopping = self.processes.agree_to_stop(stop.is_set())
                if last or stopping or time.monotonic() - saved >= self.config.save_seconds:
                    self._save()
                    saved = time.monotonic()
                if stopping and not last:
                    raise Interrupted(state.step)
        return state

    def time_steps(self, steps: Sequence[int]) -> float:
        """Return the seconds of complete steps: forward, backward, clipping and update.

        One more step is taken first, to warm up. The steps are repeated and the median counts, so
        that a short pause of the machine does not shorten a training. Weights and optimizer are as
        before afterwards, so this is for a training that has not begun.
        """
        weights = deepcopy(self.model.state_dict())
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            self._step(steps[0])
            passes: list[float] = []
            while self.processes.agree(len(passes) < TIMED_PASSES and sum(passes) < TIMED_SECONDS):
                started = time.monotonic()
                for step in steps:
                    self._step(step)
                passes.append(time.monotonic() - started)
        self.model.load_state_dict(weights)
        self.optimizer.state.clear()
        self.state = TrainState()
        return statistics.median(passes)

    def time_evaluation(self) -> float:
        """Return the seconds of an evaluation."""
        started = time.monotonic()
        self._metrics()
        return time.monotonic() - started

    def gradients(self, step: int) -> tuple[float, int]:
        """Add up the gradients of a step; returns its mean loss and its tokens."""
        batches = self.batches(step)
        targets = sum(batch.targets for batch in batches)
        total = 0.0
        # Weights are converted once per step.
        with autocast(self.config.precision or "fp32", self.device):
            for batch in batches[self.processes.rank :: self.processes.count]:
                loss = batch.compute()
                (loss / targets).backward()
                total += float(loss.detach())
        total = self.processes.sum_gradients(self.model.parameters(), total)
        return total / targets, sum(batch.tokens for batch in batches)

    def _step(self, step: int) -> None:
        state = self.state
        self.model.train()
        key = [self.config.seed, step, self.processes.rank]
        seed = np.random.SeedSequence(key).generate_state(1)[0]
        # For dropout. torch.manual_seed formats a stack trace for CUDA: 5 % of a short step.
        torch.default_generator.manual_seed(int(seed))
        if self.device.type == "cuda":
            torch.cuda.manual_seed(int(seed))
        loss, tokens = self.gradients(step)
        norm = clip_gradients(self.model.parameters(), CLIP)
        if not math.isfinite(loss + norm):
            raise self._diverged(f"the loss is {loss}, the norm of its gradient {norm}")
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(step) * group["scale"]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        state.loss = loss
        state.loss_sum += loss
        state.tokens += tokens
        state.step += 1

    def learning_rate(self, step: int) -> float:
        """Return a step's rate: linear up and down to zero, or constant (the lab's)."""
        highest, steps = self.config.learning_rate, self.state.steps
        if getattr(self.config, "schedule", "linear") == "constant":
            return highest
        warm = max(1, round(self.config.warmup * steps))
        if step < warm:
            return highest * (step + 1) / warm
        return highest * max(0, steps - step) / max(1, steps - warm)

    def _metrics(self) -> dict[str, float]:
        self.model.eval()
        with torch.no_grad(), autocast(self.config.precision or "fp32", self.device):
            return self.evaluate()

    def _evaluate(self, began: float, last: bool) -> None:
        state = self.state
        state.metrics = self._metrics()
        state.seconds = time.monotonic() - began
        if not math.isfinite(state.metrics["loss"]):
            raise self._diverged(f"the held-out loss is {state.metrics['loss']}")
        before = state.history[-1] if state.history else {"step": 0, "total_seconds": 0.0}
        state.history.append(
            {
                "step": state.step,
                "train_loss": state.loss_sum / (state.step - before["step"]),
                **state.metrics,
                "seconds": round(state.seconds - before["total_seconds"], 3),
                "total_seconds": round(state.seconds, 3),
            }
        )
        state.loss_sum = 0.0
        score = self.selection(state.metrics, last)
        if score < state.best:
            state.best, state.best_step = score, state.step
            if self.processes.first:
                self.save_best()
        self.callback.on_evaluation(state)

    def _save(self) -> None:
        if self.checkpoints is None or not self.processes.first:
            return
        tensors = {
            "model": {name: one.detach() for name, one in self.model.named_parameters()},
            "optimizer": optimizer_tensors(self.optimizer, self.model),
            "average": self.average.mean,
        }
        state = {name: value for name, value in vars(self.state).items() if name != "steps"}
        self.checkpoints.save(self.state.step, tensors, state)

    def _restore(self) -> None:
        assert self.checkpoints is not None
        tensors, state = self.checkpoints.load(self.model)
        self.model.load_state_dict(tensors["model"], strict=False)  # tied weights are there once
        restore_optimizer(self.optimizer, self.model, tensors.get("optimizer", {}))
        means = tensors.get("average", {})
        self.average.mean = {name: one.clone().to(self.device) for name, one in means.items()}
        vars(self.state).update(state)

    def _diverged(self, what: str) -> HeadstartError:
        found = self.checkpoints.list() if self.checkpoints is not None else []
        last = f"the last good checkpoint is {found[-1]}" if found else "nothing was saved yet"
        return HeadstartError(
            f"training diverged at step {self.state.step + 1}: {what}; {last}",
            fix=f"use a lower --learning-rate than {self.config.learning_rate:g}, "
            "or --precision fp32",
            code="diverged",
        )


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Let Ctrl-C and SIGTERM set an event; a second Ctrl-C interrupts at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread can handle signals
        return

    def request(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
