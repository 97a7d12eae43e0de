"""What a step reads: rows of a corpus, or labelled examples with little padding."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.config import FinetuneConfig, PretrainConfig
from headstart.data.batches import LengthBatches
from headstart.errors import HeadstartError
from headstart.model.checkpoint import save_model
from headstart.model.model import Model
from headstart.model.sampled_softmax import SoftmaxSampler
from headstart.objectives import OBJECTIVES
from headstart.run import NetworkRun, write_task
from headstart.tasks.examples import Examples, TextEncoding, TokenDropout
from headstart.tasks.task import Task
from headstart.training.corpus import PretrainData
from headstart.training.trainer import MicroBatch

NUM_FREQUENT = NUM_SAMPLED = 512  # of the sampled softmax
LARGE_VOCABULARY = 4 * (NUM_FREQUENT + NUM_SAMPLED)
HELD_OUT_ROWS = 64  # enough for a stable loss, few enough to take a second
# Products in bf16 are prepared for each length (oneDNN caches the last thousand): a few lengths
# that come again save more time than their padding costs.
BF16_MULTIPLE = 8


class CorpusBatches:
    """The micro-batches of every step of a pretraining, and its held-out loss.

    Parameters
    ----------
    processes : how many share each step; there is a micro-batch for each of them.

    Attributes
    ----------
    sampler : SoftmaxSampler or None
        Draws the classes of a sampled softmax; a small vocabulary is scored in full.
    """

    def __init__(self, config: PretrainConfig, data: PretrainData, processes: int = 1) -> None:
        if config.rows < processes:
            raise HeadstartError(
                f"a step has {config.rows} rows, too few for {processes} processes",
                fix=f"use fewer processes, or --batch-tokens {processes * config.length} or more",
            )
        self.config, self.data = config, data
        most = max(1, config.micro_batch_tokens // config.length)
        self.micro_rows = min(most, config.rows // processes)
        self.objective = OBJECTIVES[config.objective](mask_share=config.mask_share)
        vocab_size = data.tokenizer.vocab_size
        self.sampler = None
        if config.softmax == "sampled" or (
            config.softmax == "auto" and vocab_size > LARGE_VOCABULARY
        ):
            self.sampler = SoftmaxSampler(
                data.train.store.counts(vocab_size),
                num_frequent=NUM_FREQUENT,
                num_sampled=NUM_SAMPLED,
                seed=config.seed,
            )

    def micro_batches(self, model: Model, step: int, steps: int) -> list[MicroBatch]:
        """Return the batch of a step, split where it would not fit into memory."""
        config, device = self.config, next(model.parameters()).device
        source, number = self.data.source(step, steps)
        batch = self.objective.batch(source, config.rows, (config.seed, number)).to(device)
        if self.sampler is not None:
            batch = replace(batch, sampled=self.sampler.draw(batch.targets.cpu(), step).to(device))
        return [self._micro_batch(model, part) for part in batch.split(self.micro_rows)]

    def _micro_batch(self, model: Model, part: Any) -> MicroBatch:
        return MicroBatch(
            lambda: self.objective.loss(model, part).total, part.targets.numel(), part.real_tokens
        )

    def _held_out(self) -> list[Any]:
        """Return the held-out batches: always the same rows with the same tokens hidden."""
        source, rows = self.data.held_out, self.data.rows
        count = max(1, min(HELD_OUT_ROWS, source.num_rows(extra=1)) // rows)
        return [self.objective.batch(source, rows, (0, number)) for number in range(count)]

    def evaluate(self, model: Model) -> dict[str, float]:
        """Return loss and perplexity on held-out documents, with the full softmax."""
        device = next(model.parameters()).device
        losses = [self.objective.loss(model, batch.to(device)) for batch in self._held_out()]
        loss = sum(float(one.total) for one in losses) / sum(one.targets for one in losses)
        parts = {}
        for name in losses[0].parts:
            values, counts = zip(*(one.parts[name] for one in losses), strict=True)
            parts[name] = sum(values) / sum(counts)
        token_loss = parts.get("masked_tokens", loss)
        found = {"loss": loss, "perplexity": math.exp(min(token_loss, 50)), **parts}
        if self.objective.attention == "causal":  # the probability of the whole text
            store = self.data.held_out.store
            bytes_per_token = self.data.held_out_bytes / (store.tokens + len(store))  # with ends
            found["bits_per_byte"] = token_loss / math.log(2) / bytes_per_token
        return found

    def unigram_loss(self) -> float:
        """Return the loss of token frequencies alone, on the targets of `evaluate`."""
        data = self.data
        counts = 1.0 + data.train.store.counts(data.tokenizer.vocab_size)  # none is impossible
        if data.tokenizer.end_id is not None:
            counts[data.tokenizer.end_id] += len(data.train.store)
        log_probabilities = np.log(counts / counts.sum())
        targets = np.concatenate([batch.targets.numpy() for batch in self._held_out()])
        return -float(log_probabilities[targets].mean())


class EpochBatches:
    """The micro-batches of every step of a fine-tuning.

    Parameters
    ----------
    weights : array of shape (examples,)
        How much each example counts.

    Attributes
    ----------
    steps_per_epoch : int
    lengths : array of shape (examples,)
        The longest row of each, after token dropout.
    """

    def __init__(
        self,
        config: FinetuneConfig,
        task: Task[Any],
        examples: Examples,
        weights: NDArray[np.float32],
        encoding: TextEncoding,
    ) -> None:
        self.config, self.task, self.examples, self.weights = config, task, examples, weights
        self.length = encoding.length
        self.train_rows = int(examples.owners[-1]) + 1
        self.lengths, self.dropout = examples.lengths, None
        long_share = config.long_token_dropout if (examples.rows > 1).any() else 0.0
        if task.whole_texts and (config.token_dropout or long_share):
            special = frozenset(encoding.tokenizer.specials.values())
            self.dropout = TokenDropout(config.token_dropout or 0.0, long_share, special)
            kept = examples.kept_after(self.dropout)
            self.lengths = np.array([rows.max() for rows in kept], dtype=np.int64)
        self.order = LengthBatches(self.lengths, batch_size=config.batch_size, seed=config.seed)
        self.steps_per_epoch = self.order.steps_per_epoch
        on_cpu = (config.device or "cpu") == "cpu"
        self.multiple = BF16_MULTIPLE if on_cpu and config.precision == "bf16" else 1
        # Of whole texts, a step is divided by rows × the mean weight: by its own sum of weights,
        # a batch of rare classes would count no more than any other.
        self.mean_weight = float(weights.mean()) if task.whole_texts else None

    def dropout_note(self) -> str | None:
        """Describe what is dropped from the training texts."""
        if self.dropout is None:
            return None
        share, texts = self.config.token_dropout, ""
        if share is None:
            share, texts = self.dropout.long_share, f" of texts longer than {self.length} tokens"
        return (
            f"each epoch drops {share:.0%} of the tokens{texts}, others each time "
            "(--token-dropout 0 keeps all)"
        )

    def padded_tokens(self, step: int) -> int:
        """Return the tokens that a step computes, padding included."""
        rows = self.order.batch(step)
        return self._padded_length(rows) * int(self.examples.rows[rows].sum())

    def _padded_length(self, rows: Any) -> int:
        return self.examples.padded_length(int(self.lengths[rows].max()), self.multiple)

    def micro_batches(self, model: Model, step: int) -> list[MicroBatch]:
        """Return the rows of a step, split where they would not fit into memory."""
        rows = self.order.batch(step)
        most = max(1, self.config.micro_batch_tokens // self._padded_length(rows))
        random = np.random.default_rng([self.config.seed, step])
        parts: list[list[int]] = [[]]
        taken = 0
        for row, count in zip(rows, np.minimum(self.examples.rows[rows], most), strict=True):
            if parts[-1] and taken + count > most:
                parts.append([])
                taken = 0
            parts[-1].append(int(row))
            taken += int(count)
        return [self._micro_batch(model, np.array(part), most, random) for part in parts]

    def _micro_batch(
        self, model: Model, rows: NDArray[np.int64], most: int, random: np.random.Generator
    ) -> MicroBatch:
        device = next(model.parameters()).device
        padded = self.examples.batch(
            rows, most=most, dropout=self.dropout, random=random, multiple=self.multiple
        )
        batch = padded.to(device)
        weights = torch.from_numpy(self.weights[rows]).to(device)

        def compute() -> torch.Tensor:
            outputs = model(batch.tokens, batch.segments, batch.token_types, owners=batch.owners)
            return (self.task.loss(outputs, batch) * weights).sum()

        total = float(weights.sum())
        if self.mean_weight is not None:
            total = len(rows) * self.mean_weight
        return MicroBatch(compute, total, int(batch.segments.sum()))


class Validation:
    """Evaluates the validation rows, and saves the model with its scores when they are the best.

    Parameters
    ----------
    run : the run that is being trained; without a folder, the best weights stay in memory.
    rows : the validation part.
    examples : the same, encoded.
    """

    def __init__(
        self, config: FinetuneConfig, run: NetworkRun, rows: Any, examples: Examples
    ) -> None:
        self.config, self.run, self.rows, self.examples = config, run, rows, examples
        self.scores: Any = None  # of the best epoch
        self._latest: Any = None
        self._weights: dict[str, torch.Tensor] = {}

    def evaluate(self) -> dict[str, float]:
        """Return the metrics of the model as it is."""
        task: Any = self.run.task
        self._latest = task.decode(self.run.outputs(self.examples), self.examples)
        return task.metrics(self._latest, self.rows)

    def selection_score(self, metrics: dict[str, float], last: bool) -> float:
        """Return what selects the best epoch: the lower, the better."""
        if self.config.selection_metric == "last":
            return 0.0 if last else math.inf
        if self.config.selection_metric == "loss":
            return metrics["loss"]
        # Of two epochs that are equally good, the one with the lower loss.
        return -metrics[self.run.require_task().metric] + 1e-6 * min(metrics["loss"], 100.0)

    def save(self) -> None:
        """Save the model and the scores of the last evaluation."""
        self.scores = self._latest
        if self.run.folder is None:
            weights = self.run.model.state_dict()
            self._weights = {name: value.clone() for name, value in weights.items()}
            return
        save_model(self.run.model, self.run.folder)
        write_task(self.run.require_task(), self.run.encoding, self.run.folder, self._temperature())

    def best_run(self) -> NetworkRun:
        """Return the run with its best weights, calibrated."""
        if self.run.folder is not None:
            found = NetworkRun.open(self.run.folder)
            if self.scores is None:  # the best epoch was before the training was resumed
                task: Any = found.task
                self.scores = task.decode(found.outputs(self.examples), self.examples)
            return replace(found, validation_scores=self.scores)
        self.run.model.load_state_dict(self._weights)
        return replace(self.run, temperature=self._temperature(), validation_scores=self.scores)

    def _temperature(self) -> float:
        return self.run.require_task().fit_temperature(self.scores, self.rows)
