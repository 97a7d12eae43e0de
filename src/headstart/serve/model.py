"""A run that answers requests in the form of Hugging Face's pipelines.

Fields are `label` and `score`; `entity_group`, `word`, `score`, `start` and `end`; or `answer`,
`score`, `start` and `end`, by the task.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstart.explain import METHOD, Occlusion
from headstart.run import NetworkRun, Run
from headstart.tasks.tagging import Tagging, find_words_in

# The parts of an input with two texts, as Hugging Face's pipelines call them.
FIELDS = {"pairs": ("text", "text_pair"), "spans": ("question", "context")}
PROBE = "a first text"


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A run with a task, the name that requests call it by, and the time it was opened."""

    run: Run
    name: str
    opened: float = field(default_factory=time.time)

    @classmethod
    def open(cls, folder: str | Path, name: str | None = None) -> "ServedModel":
        """Open a run, a study (its best arm) or an export, and try it once.

        Parameters
        ----------
        folder : what `headstart predict` takes, or the folder of a study.
        name : how requests call it; by default the name of the folder.
        """
        place = Path(folder).expanduser()
        given = place
        if (place / "best").is_dir() and (place / "jobs").is_dir():
            place = place / "best"
        run = Run.open(place)
        run.require_task()
        if isinstance(run, NetworkRun):
            use_onednn(run.model)
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", given.resolve().name).strip("-.")
        model = cls(run, name or plain or "model")
        # What is broken shows now, and the first request is fast.
        run.predict([PROBE if len(model.fields) == 1 else (PROBE, PROBE)])
        return model

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.run.require_task().name

    @property
    def fields(self) -> tuple[str, ...]:
        """The parts of an input; with more than one, an input is an object of them."""
        return FIELDS.get(self.task, ("text",))

    def facts(self) -> dict[str, Any]:
        """Describe the model in plain values; no path is among them."""
        return {
            "name": self.name,
            "task": self.task,
            "labels": list(self.run.labels),
            "inputs": list(self.fields),
            "explains": self.run.explains,
            "opened": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.opened)),
            "kind": self.run.kind,
        }

    def reply(
        self,
        row: Any,
        prediction: dict[str, Any],
        *,
        top_k: int | None = None,
        every_word: bool = False,
    ) -> Any:
        """Convert the prediction for a row: a text, or a tuple of two texts.

        Parameters
        ----------
        top_k : only the most probable labels; by default all.
        every_word : list each word with its tag instead of entities.
        """
        task = self.run.require_task()
        if isinstance(task, Tagging):
            if every_word or not task.entities:
                return _tagged_words(row, prediction)
            return [_entity(one) for one in prediction["entities"]]
        if "answer" in prediction:  # as in their pipeline, no answer is an empty one at 0
            return {
                "answer": prediction["answer"] or "",
                "score": prediction["probability"],
                "start": prediction["start"] or 0,
                "end": prediction["end"] or 0,
            }
        ranked = sorted(prediction["probabilities"].items(), key=lambda pair: -pair[1])
        return [{"label": label, "score": score} for label, score in ranked[:top_k]]

    def explanation(
        self, occlusion: Occlusion, predictions: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        """Explain the most probable label.

        Parameters
        ----------
        predictions : for the row itself, then for each of `occlusion.without`.
        """
        probabilities = predictions[0]["probabilities"]
        label = max(probabilities, key=probabilities.__getitem__)
        effects = []
        for one in occlusion.effects([one["probabilities"][label] for one in predictions]):
            effect = {"text": one.text, "start": one.start, "end": one.end, "effect": one.effect}
            if len(self.fields) > 1:
                effect["input"] = self.fields[one.part]
            effects.append(effect)
        return {"method": METHOD, "effects": effects}

    def count_tokens(self, rows: Sequence[Any]) -> int:
        """Count the tokens of rows; words, where the run has no tokenizer."""
        texts = [text for row in rows for text in ([row] if isinstance(row, str) else row)]
        tokenizer = getattr(self.run, "tokenizer", None)
        if tokenizer is None:
            return sum(len(text.split()) for text in texts)
        return sum(len(ids) for ids in tokenizer.encode_arrays(texts))


def use_onednn(model: nn.Module) -> None:
    """Compute the linear layers of a network with oneDNN instead of MKL, without gradients.

    Both are parts of PyTorch and agree up to rounding. MKL uses AVX-512 on Intel's processors
    only: on an AMD EPYC, 512 tokens of width 256 took 1.78 ms with MKL and 0.77 ms with oneDNN.
    PyTorch's own `torch.utils.mkldnn` copies all inputs and outputs.
    """
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):  # a private operator: it may go
        return
    for part in model.modules():
        if type(part) is not nn.Linear or part.weight.device.type != "cpu":
            continue
        if part.weight.dtype == torch.float32:
            part.forward = partial(_linear, part)  # type: ignore[method-assign]


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
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


def _entity(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "entity_group": one["kind"],
        "score": one["probability"],
        "word": one["text"],
        "start": one["start"],
        "end": one["end"],
    }


def _tagged_words(text: str, prediction: dict[str, Any]) -> list[dict[str, Any]]:
    """List every word that was read, with its tag."""
    words = prediction["words"]
    found = []
    for number, (start, end) in enumerate(find_words_in(text, words)):
        tag = prediction["tags"][number]
        if tag is not None:
            found.append(
                {
                    "entity": tag,
                    "score": prediction["probabilities"][number],
                    "index": number,
                    "word": words[number],
                    "start": start,
                    "end": end,
                }
            )
    return found
