"""Open a run for the server, and convert its predictions to the format of Hugging Face's pipelines.

Fields are `label` and `score`; `entity_group`, `word`, `score`, `start` and `end`; or `answer`,
`score`, `start` and `end`, by the task.
"""

import timeit
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.run import NetworkRun, Run
from headstart.tasks.tagging import Tagging, find_words_in
from headstart.unlike import FIELD

# The parts of an input with two texts, as Hugging Face's pipelines call them.
FIELDS = {"pairs": ("text", "text_pair"), "spans": ("question", "context")}
TIMED_ROWS, TIMES = 128, 10  # of a linear layer, to choose how it is computed


def open_model(folder: str | Path) -> Run:
    """Open a run, a study (its best arm) or an export, and predict once: it works and is warm."""
    place = Path(folder).expanduser()
    if (place / "best").is_dir() and (place / "jobs").is_dir():
        place = place / "best"
    run = Run.open(place)
    texts = ("a first text",) * len(run.require_task().input_names)
    if isinstance(run, NetworkRun):
        use_onednn(run.model)
    run.predict([texts if len(texts) > 1 else texts[0]])
    return run


def describe(run: Run) -> dict[str, Any]:
    """Describe the model in plain values; no path is among them."""
    task = run.require_task().name
    return {
        "task": task,
        "labels": [*run.labels],
        "inputs": [*FIELDS.get(task, ("text",))],
        "kind": run.kind,
    }


def reply(
    run: Run,
    row: Any,
    prediction: dict[str, Any],
    *,
    top_k: int | None = None,
    every_word: bool = False,
) -> Any:
    """Convert a prediction to the form of Hugging Face's pipelines: labels, words or entities.

    The most probable label also has `unlike_training`, if the prediction has.
    """
    if isinstance(run.task, Tagging):
        if every_word or not run.task.entities:
            tags, words = prediction["tags"], prediction["words"]
            return [
                {
                    "entity": tags[number],
                    "score": prediction["probabilities"][number],
                    "index": number,
                    "word": words[number],
                    "start": start,
                    "end": end,
                }
                for number, (start, end) in enumerate(find_words_in(row, words))
                if tags[number] is not None
            ]
        return [
            {
                "entity_group": one["kind"],
                "score": one["probability"],
                "word": one["text"],
                "start": one["start"],
                "end": one["end"],
            }
            for one in prediction["entities"]
        ]
    if "answer" in prediction:  # as in their pipeline, no answer is an empty one at 0
        return {
            "answer": prediction["answer"] or "",
            "score": prediction["probability"],
            "start": prediction["start"] or 0,
            "end": prediction["end"] or 0,
        }
    ranked = sorted(prediction["probabilities"].items(), key=lambda pair: -pair[1])
    found = [{"label": label, "score": score} for label, score in ranked[:top_k]]
    found[0] |= {FIELD: prediction[FIELD]} if FIELD in prediction else {}
    return found


def use_onednn(model: nn.Module) -> None:
    """Compute the linear layers of a network with oneDNN instead of MKL, if that is faster here.

    Both are parts of PyTorch and agree up to rounding. MKL uses AVX-512 on Intel's processors
    only: on an AMD EPYC, 512 tokens of width 256 took 1.78 ms with MKL and 0.77 ms with oneDNN; on
    an Intel Xeon 0.48 and 0.52 ms. PyTorch's own `torch.utils.mkldnn` copies inputs and outputs.
    """
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):  # a private operator: it may go
        return
    layers = [
        part
        for part in model.modules()
        if type(part) is nn.Linear
        and part.weight.device.type == "cpu"
        and part.weight.dtype == torch.float32
    ]
    if layers and _onednn_is_faster(max(layers, key=lambda one: one.weight.numel())):
        for one in layers:
            one.forward = partial(onednn_linear, one)  # type: ignore[method-assign]


@torch.inference_mode()
def _onednn_is_faster(layer: nn.Linear) -> bool:
    """Time a layer both ways; a few milliseconds."""
    rows = torch.zeros(TIMED_ROWS, layer.in_features)
    # The first calls prepare the product; the fastest one counts.
    ways = (partial(layer, rows), partial(onednn_linear, layer, rows))
    mkl, onednn = (min(timeit.repeat(way, number=1, repeat=TIMES)) for way in ways)
    return onednn < mkl


def onednn_linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """Compute a linear layer with the operator that `torch.compile` uses for it."""
    rows = x.reshape(-1, x.size(-1))
    count = len(rows)
    # oneDNN keeps a program for every number of rows, of about half a megabyte: make few of them.
    step = 1 << max(5, count.bit_length() - 4)
    rows = F.pad(rows, (0, 0, 0, -count % step))
    found: Tensor = torch.ops.mkldnn._linear_pointwise(
        rows, layer.weight, layer.bias, "none", [], ""
    )
    return found[:count].view(*x.shape[:-1], -1)
