"""Try a study's classifier: a text, what is predicted for it, and the words that mattered."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError

LONGEST = 20_000  # characters of a text


@lru_cache(maxsize=1)
def open_classifier(folder: Path) -> Any:
    """Open the classifier of a study; the latest one stays in memory."""
    from headstart.run import Run

    if not folder.is_dir():
        raise HeadstartError("this study saved no classifier", code="no-classifier")
    return Run.open(folder)


def describe_classifier(folder: Path) -> dict[str, Any]:
    """Return its task, its labels and the names of the texts that it reads."""
    task = open_classifier(folder).require_task()
    return {"task": task.name, "labels": list(task.labels), "inputs": task.input_names}


def predict_texts(folder: Path, texts: Sequence[str]) -> dict[str, Any]:
    """Return the prediction for a text (two, for pairs and spans) and its explanation."""
    if sum(map(len, texts)) > LONGEST:
        raise HeadstartError(
            f"the text is longer than {LONGEST:,} characters", fix="upload it as a file instead"
        )
    run = open_classifier(folder)
    given = texts[0] if len(texts) == 1 else tuple(texts)
    found = run.predict([given])[0]
    return {**found, "explanation": _explain(run, given) if run.explains else None}


def _explain(run: Any, given: str | tuple[str, ...]) -> list[dict[str, Any]]:
    """Split the text into segments, each with its effect and its share of the strongest effect."""
    effects = sorted(run.explain(given), key=lambda one: (one.part, one.start))
    most = max((abs(one.effect) for one in effects), default=0.0) or 1.0
    segments: list[dict[str, Any]] = []
    for part, text in enumerate([given] if isinstance(given, str) else given):
        place = 0
        segments += [{"text": " | "}] if part else []
        for one in effects:
            if one.part == part and one.start >= place:  # an overlapping neighbour is skipped
                segments.append({"text": text[place : one.start]})
                segments.append(
                    {
                        "text": one.text,
                        "effect": round(one.effect, 4),
                        "share": round(one.effect / most, 4),
                    }
                )
                place = one.end
        segments.append({"text": text[place:]})
    return [segment for segment in segments if segment["text"]]
