"""Hugging Face's form of a request: `{"inputs": …, "parameters": {…}}`, and of its answer.

Answers are those of their pipelines: `label` and `score`; `entity_group`, `word`, `score`, `start`
and `end`; `answer`, `score`, `start` and `end`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from headstart.serve.model import Question, ServedModel
from headstart.serve.replies import RefusedError
from headstart.serve.service import Service
from headstart.tasks.tagging import find_words_in

PARAMETERS = ("top_k", "explain", "aggregation_strategy")
STRATEGIES = ("simple", "none")


class Request(NamedTuple):
    """A request, read: its inputs, whether they were a list, and its parameters."""

    inputs: Sequence[Any]
    several: bool
    top_k: int | None = None
    explain: bool = False
    words: bool = False  # every word with its tag, in place of entities


def read_request(content: Any) -> Request:
    """Check the document of a request; a problem is a refusal with its place."""
    if not isinstance(content, dict):
        raise RefusedError(422, 'a request has the form {"inputs": "…"}')
    for name in content:
        if name not in ("inputs", "parameters", "options"):
            raise RefusedError(
                422, "a request has inputs and parameters, and nothing else", where=name[:80]
            )
    if "inputs" not in content:
        raise RefusedError(422, "the inputs are missing", fix='send {"inputs": "…"}')
    inputs = content["inputs"]
    several = isinstance(inputs, list)
    given = content.get("parameters")
    if given is None:
        return Request(inputs if several else [inputs], several)
    if not isinstance(given, dict):
        raise RefusedError(422, "the parameters are no object", where="parameters")
    for name in given:
        if name not in PARAMETERS:
            raise RefusedError(
                422,
                f"there is no such parameter; there are {', '.join(PARAMETERS)}",
                where=f"parameters.{name[:80]}",
            )
    top_k, explain = given.get("top_k"), given.get("explain")
    strategy = given.get("aggregation_strategy")
    if top_k is not None and (isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1):
        raise RefusedError(422, "top_k is a whole number from 1 up", where="parameters.top_k")
    if explain is not None and not isinstance(explain, bool):
        raise RefusedError(422, "explain is true or false", where="parameters.explain")
    if strategy is not None and strategy not in STRATEGIES:
        raise RefusedError(
            422,
            f"the strategy is {' or '.join(STRATEGIES)}",
            where="parameters.aggregation_strategy",
        )
    words = strategy == "none"
    return Request(inputs if several else [inputs], several, top_k, bool(explain), words)


async def answer(service: Service, content: Any) -> Any:
    """The answer to a request: of one input, or a list of answers where the inputs are a list."""
    asked = read_request(content)
    if not asked.inputs:
        return []
    model, questions, answers = await service.ask(
        asked.inputs, places=None if asked.several else ("inputs",), explain=asked.explain
    )
    found = [render(model, *one, asked) for one in zip(questions, answers, strict=True)]
    return found if asked.several else found[0]


def render(model: ServedModel, question: Question, answer: dict[str, Any], asked: Request) -> Any:
    """One answer in the form of Hugging Face's pipeline for the task."""
    if "words" in answer and "tags" in answer:
        every = asked.words or not model.run.task.entities  # type: ignore[union-attr]
        return _words(question, answer) if every else _entities(answer)
    if "answer" in answer:
        none = answer["answer"] is None  # as their pipeline says it: an empty answer at 0
        return {
            "answer": answer["answer"] or "",
            "score": answer["probability"],
            "start": 0 if none else answer["start"],
            "end": 0 if none else answer["end"],
        }
    if "probabilities" not in answer:
        return answer  # a task of another package: its own fields
    return _labels(answer, asked.top_k)


def _labels(answer: dict[str, Any], top_k: int | None) -> list[dict[str, Any]]:
    ranked = sorted(answer["probabilities"].items(), key=lambda pair: -pair[1])
    found = [{"label": label, "score": score} for label, score in ranked[:top_k]]
    if "explanation" in answer:  # of the first label
        found[0]["explanation"] = answer["explanation"]
    return found


def _entities(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "entity_group": one["kind"],
            "score": one["probability"],
            "word": one["text"],
            "start": one["start"],
            "end": one["end"],
        }
        for one in answer["entities"]
    ]


def _words(question: Question, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Every word that was read, with its tag."""
    places = find_words_in(question.rows[0], answer["words"])
    rows = zip(answer["tags"], answer["probabilities"], places, strict=True)
    return [
        {
            "entity": tag,
            "score": score,
            "index": number,
            "word": answer["words"][number],
            "start": start,
            "end": end,
        }
        for number, (tag, score, (start, end)) in enumerate(rows)
        if tag is not None
    ]
