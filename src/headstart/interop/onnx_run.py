"""Open an ONNX export, which predicts and is evaluated like the run that it came from.

The folder has `model.onnx`, the tokenizer and a `config.json` (see docs/export.md).
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from headstart.data.tokenizers import Tokenizer, load_tokenizer
from headstart.errors import HeadstartError, need_packages
from headstart.files import Form, read_object, replacing, write_json
from headstart.machine import choose_threads
from headstart.progress import ProgressCallback
from headstart.run import EXPORTED, TASK_FORMS, Run
from headstart.tasks import find_task
from headstart.tasks.task import Examples, Ids, Long, Output, Task, TextEncoding

BATCH_TOKENS = 512  # a session does little but products: small batches stay in the cache
AGAIN = "export the run again"
MODEL, CONFIG = EXPORTED, "config.json"
WINDOWS = "overflow_to_sample_mapping"  # as Hugging Face's tokenizers call it
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
EMBEDDING = "embedding"  # in place of a task: vectors of texts
FORMAT = 2  # raised when files of the version before can no longer be read
# What the values of config.json must be, by name.
CONFIG_FORMS: dict[str, Form] = {
    **TASK_FORMS,
    "inputs": lambda value: isinstance(value, list) and set(value) <= {*INPUTS, WINDOWS},
}


@dataclass(frozen=True, eq=False)
class OnnxRun(Run):
    """A run with a graph of onnxruntime in place of the network; without a task, its outputs are
    vectors of texts."""

    graph: bytes
    config: dict[str, Any]  # as the folder has it
    tokenizer: Tokenizer
    length: int
    long: Long
    kind: ClassVar[str] = "onnx"

    @property
    def encoding(self) -> TextEncoding:
        """How the task's texts become ids."""
        return TextEncoding(self.tokenizer, self.length, self.long)

    @cached_property
    def one_thread(self) -> Any:
        """A session for many batches, each on a separate core."""
        return open_session(self.graph, threads=1, where=self.folder)

    @cached_property
    def all_threads(self) -> Any:
        """A session for one batch that all cores work on."""
        return open_session(self.graph, threads=choose_threads(), where=self.folder)

    def outputs(
        self, examples: Examples, *, progress: ProgressCallback | None = None
    ) -> list[Output]:
        """The scores of each example, as `run_network` gives them."""
        batches = list(_batches(examples))
        threads = torch.get_num_threads()  # 1 in the threads of a server
        session = self.one_thread if threads == 1 or len(batches) > 1 else self.all_threads
        found: dict[int, Output] = {}
        with ThreadPoolExecutor(threads) as pool:
            # One batch is run here: a thread would take longer to start than a short text to read.
            run = partial(self._run, session, examples)
            here = threads == 1 or len(batches) == 1
            read = map(run, batches) if here else pool.map(run, batches)
            for rows, scores in zip(batches, read, strict=True):
                found.update(zip(rows.tolist(), scores, strict=True))
                if progress is not None:
                    progress(len(found), len(examples))
        return [found[row] for row in range(len(examples))]

    def _run(self, session: Any, examples: Examples, rows: Ids) -> list[Output]:
        """The scores of these examples, in this order."""
        batch = examples.batch(rows)
        given = named_inputs(batch.tokens, batch.segments, batch.token_types, batch.owners)
        scores = self.logits(session, given) * np.float32(self.temperature)
        lengths = examples.lengths[rows]
        return [
            one if one.ndim == 1 else one[:length]
            # A text in windows has one row of scores; those behind mean nothing.
            for one, length in zip(scores[: len(rows)], lengths, strict=True)
        ]

    def logits(self, session: Any, inputs: dict[str, Tensor]) -> Output:
        """Run a session on those of the `named_inputs` that the graph has."""
        return session.run(None, {name: inputs[name].numpy() for name in self.config["inputs"]})[0]

    def scores(self, rows: Any, progress: ProgressCallback | None = None) -> Any:
        task = self.require_task()
        examples = task.encode(rows, self.encoding)
        return task.decode(self.outputs(examples, progress=progress), examples)

    def save(self, folder: Path) -> None:
        """Write what `open_export` reads."""
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(folder)
        with replacing(folder / MODEL) as temporary:
            temporary.write_bytes(self.graph)
        write_json(folder / CONFIG, self.config)


def open_export(folder: str | Path) -> OnnxRun:
    """Open a folder that `headstart export --to onnx` wrote."""
    folder = Path(folder).expanduser()
    need_packages("onnx", "onnxruntime")
    config = read_object(folder / CONFIG, fix=AGAIN)
    if config.get("export") != "onnx" or config.get("format") != FORMAT:
        raise HeadstartError(
            f"Headstart did not write this {MODEL}, or not in format {FORMAT}, which this version "
            "reads",
            where=folder / CONFIG,
            fix=AGAIN,
        )
    read_object(folder / CONFIG, fix=AGAIN, needs=CONFIG_FORMS, forms=CONFIG_FORMS)
    task = None if config["task"] == EMBEDDING else find_task(config["task"])(config["labels"])
    run = OnnxRun(
        folder,
        (folder / MODEL).read_bytes(),
        config,
        load_tokenizer(folder),
        config["length"],
        config["long"],
        task=task,
        temperature=float(config["temperature"]),
    )
    inputs = {one.name for one in run.one_thread.get_inputs()}
    outputs = {one.name: one.shape[-1] for one in run.one_thread.get_outputs()}
    wanted = 2 if config["task"] == "spans" else len(run.labels)
    if task is None:
        wanted = config.get("width", 0)
    if inputs != set(config["inputs"]) or outputs != {output_name(task): wanted}:
        raise HeadstartError(
            f"{MODEL} has {outputs.get(output_name(task), 'no')} outputs instead of {wanted}, and "
            f"inputs {', '.join(sorted(inputs))}: it does not belong to this {CONFIG}",
            where=folder / MODEL,
            fix=AGAIN,
        )
    return run


def named_inputs(
    tokens: Tensor, real: Tensor, token_types: Tensor | None = None, owners: Tensor | None = None
) -> dict[str, Tensor]:
    """Return all inputs that a graph can have, by their names."""
    types = torch.zeros_like(tokens) if token_types is None else token_types
    texts = torch.arange(len(tokens)) if owners is None else owners
    return dict(zip((*INPUTS, WINDOWS), (tokens, real, types, texts), strict=True))


def output_name(task: Task[Any] | None) -> str:
    """Return the name of a graph's output, as Hugging Face's exports have it."""
    return "sentence_embedding" if task is None else "logits"


def open_session(graph: bytes, *, threads: int, where: Path) -> Any:
    """A session of onnxruntime on the CPU; a file that it cannot open is one clear message."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # inputs with a default are meant; no warning about them
    try:
        return onnxruntime.InferenceSession(
            graph,
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["SkipLayerNormFusion"],  # with biases it takes five times longer
        )
    except Exception as error:  # onnxruntime's own kinds have no common base
        raise HeadstartError(
            f"onnxruntime cannot open the graph: {str(error).splitlines()[0][:200]}",
            where=where / MODEL,
            fix=AGAIN,
        ) from error


def _batches(examples: Examples) -> Iterator[Ids]:
    """Yield rows of equal length, since padding would change results; a windowed text alone."""
    kinds = list(zip(examples.lengths.tolist(), examples.rows.tolist(), strict=True))
    order = sorted(range(len(kinds)), key=kinds.__getitem__)
    for (length, windows), group in groupby(order, key=kinds.__getitem__):
        members = np.array(list(group))
        most = 1 if windows > 1 else max(1, BATCH_TOKENS // length)
        yield from np.split(members, range(most, len(members), most))
