"""A run behind an address: any run or export, opened once, that answers in plain values.

No server is needed for it: a page or a script opens a `ServedModel` and calls `predict`.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from headstart.errors import HeadstartError
from headstart.explain import Explanation, Occlusion, occlude
from headstart.run import Run

# The parts of an input by task, as Hugging Face's pipelines call them.
FIELDS = {"pairs": ("text", "text_pair"), "spans": ("question", "context")}
PROBE = "a text to begin with"
SURROGATE = re.compile("[\ud800-\udfff]")


class InvalidInputError(HeadstartError):
    """An input that no model could answer; `where` is its place in the request."""


class Question(NamedTuple):
    """One input as the model answers it: its row, and those that it takes to explain the answer."""

    rows: Sequence[Any]
    size: int  # characters of each
    occlusion: Occlusion | None = None


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A run, a study's best or an export to ONNX, ready to answer.

    Example
    -------
    >>> import tempfile
    >>> from headstart import HeadstartClassifier
    >>> tiny = {"width": 16, "layers": 1, "heads": 2, "vocab_size": 300, "threads": 1}
    >>> arm = HeadstartClassifier(epochs=1, **tiny, random_state=0)
    >>> folder = tempfile.mkdtemp()
    >>> arm.fit(["yes", "oh yes", "no", "oh no"], [1, 1, 0, 0]).save(folder)
    >>> model = ServedModel.open(folder)
    >>> answer = model.predict(["oh yes"], explain=True)[0]
    >>> sorted(answer["probabilities"]), answer["explanation"]["method"]
    (['0', '1'], 'occlusion')
    """

    run: Run
    name: str
    opened: float = field(default_factory=time.time)

    @classmethod
    def open(cls, folder: str | Path, *, name: str | None = None) -> "ServedModel":
        """Open a run folder, a study (its best arm), or an export, and try it once.

        Parameters
        ----------
        folder : what `headstart predict` takes, or the folder of a study.
        name : how requests call it; by default the folder's name, or the study's.
        """
        place = Path(folder).expanduser()
        if (place / "best").is_dir() and (place / "jobs").is_dir():
            place = place / "best"
        run = Run.open(place)
        run.require_task()
        model = cls(run, name or _name_of(place))
        model.predict([model.sample()])  # what is broken shows now, and the first request is fast
        return model

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.run.require_task().name

    @property
    def labels(self) -> tuple[str, ...]:
        return self.run.labels

    @property
    def fields(self) -> tuple[str, ...]:
        """The parts of an input; with more than one, an input is an object of them."""
        both = FIELDS.get(self.task, ("text", "text_pair"))
        return both if self.run.require_task().texts_per_row == 2 else ("text",)

    @property
    def explains(self) -> bool:
        """Whether it can say which words moved an answer."""
        return self.run.explains

    def facts(self) -> dict[str, Any]:
        """What it is, in plain values; no path is among them."""
        return {
            "name": self.name,
            "task": self.task,
            "labels": list(self.labels),
            "inputs": list(self.fields),
            "explains": self.explains,
            "opened": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.opened)),
            "run": self.run.facts(),
        }

    def sample(self) -> Any:
        """An input of the form that this model takes."""
        return PROBE if len(self.fields) == 1 else dict.fromkeys(self.fields, PROBE)

    def read(
        self, inputs: Sequence[Any], *, explain: bool = False, places: Sequence[str] | None = None
    ) -> list[Question]:
        """Check inputs and make them ready to be answered.

        Parameters
        ----------
        inputs : texts; for tasks of two texts, objects with both `fields`.
        explain : whether the answers are to be explained.
        places : what messages call each input; by default `inputs[0]`, `inputs[1]`, …

        Returns
        -------
        One `Question` per input. A bad input is an `InvalidInputError` with its place.
        """
        if explain and not self.explains:
            raise InvalidInputError(
                f"the task {self.task} has no classes of whole texts to explain",
                where="parameters.explain",
            )
        questions = []
        for number, given in enumerate(inputs):
            texts = self._texts_of(given, places[number] if places else f"inputs[{number}]")
            row, size = texts[0] if len(texts) == 1 else tuple(texts), sum(map(len, texts))
            questions.append(self._explained(row, size) if explain else Question((row,), size))
        return questions

    def answer(self, rows: Sequence[Any]) -> list[dict[str, Any]]:
        """One answer per row of questions, as `headstart predict --json` prints it."""
        return self.run.predict(rows)

    def join(self, question: Question, answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The answer to a question, from those to its rows."""
        answer = answers[0]
        if question.occlusion is not None:
            label = _best(answer)
            p = [one["probabilities"][label] for one in answers]
            found = question.occlusion.explanation(p)
            answer["explanation"] = self._document(found)
        return answer

    def predict(self, inputs: Sequence[Any], *, explain: bool = False) -> list[dict[str, Any]]:
        """Answer inputs at once, without a server; parameters as those of `read`."""
        questions = self.read(inputs, explain=explain)
        answers = iter(self.answer([row for one in questions for row in one.rows]))
        return [self.join(one, [next(answers) for _ in one.rows]) for one in questions]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has; words, where the run has no tokenizer."""
        tokenizer = getattr(self.run, "tokenizer", None)
        if tokenizer is None:
            return [len(text.split()) for text in texts]
        return [len(ids) for ids in tokenizer.encode_arrays(texts)]

    def _explained(self, row: Any, size: int) -> Question:
        found = occlude(row)
        return Question((row, *found.without), size, found)

    def _document(self, found: Explanation) -> dict[str, Any]:
        """An explanation with the places of words in the text that they are of."""
        effects = []
        for one in found.effects:
            named = {"input": self.fields[one.part]} if len(self.fields) > 1 else {}
            place = {"start": one.start, "end": one.end, "effect": one.effect}
            effects.append({"text": one.text, **named, **place})
        return {"method": found.method, "effects": effects}

    def _texts_of(self, given: Any, place: str) -> list[str]:
        """The texts of an input, each checked."""
        fields = self.fields
        if len(fields) == 1 and isinstance(given, str):
            return [_checked(given, place)]
        if not isinstance(given, dict):
            form = '"…"' if len(fields) == 1 else _form(fields)
            raise InvalidInputError(f"an input of the task {self.task} is {form}", where=place)
        if set(given) != set(fields):
            raise InvalidInputError(
                f"an input of the task {self.task} has the form {_form(fields)}", where=place
            )
        return [_checked(given[name], f"{place}.{name}") for name in fields]


def _checked(text: Any, place: str) -> str:
    if not isinstance(text, str):
        raise InvalidInputError("a text is expected here", where=place)
    if not text or text.isspace():
        raise InvalidInputError("the text is empty", where=place)
    if "\0" in text:
        raise InvalidInputError("the text has a NUL character (U+0000)", where=place)
    if not text.isascii() and SURROGATE.search(text):
        raise InvalidInputError("the text has half of a surrogate pair", where=place)
    return text


def _form(fields: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{name}": "…"' for name in fields) + "}"


def _best(answer: dict[str, Any]) -> str:
    """The label that is explained: the most probable one."""
    probabilities: dict[str, float] = answer["probabilities"]
    return max(probabilities, key=probabilities.__getitem__)


def _name_of(place: Path) -> str:
    """The folder's name in letters that an address can carry; a study's best has the study's."""
    folder = place.resolve()
    name = folder.parent.name if folder.name == "best" else folder.name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "model"
