"""Try a study's classifier: a text, what is predicted for it, and the words that mattered."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.run import Run

LONGEST = 20_000  # characters of a text


class Classifiers:
    """Opens classifiers by their folders; the latest one stays in memory."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._run: Run | None = None
        self._lock = threading.Lock()  # one request at a time: each uses all threads

    def describe(self, folder: Path) -> dict[str, Any]:
        """Return its task, its labels and the names of the texts that it reads."""
        with self._lock:
            task = self._open(folder).require_task()
            return {"task": task.name, "labels": list(task.labels), "inputs": task.input_names}

    def predict(self, folder: Path, texts: Sequence[str]) -> dict[str, Any]:
        """Return the prediction for a text (two, for pairs and spans) and its explanation."""
        if sum(map(len, texts)) > LONGEST:
            raise HeadstartError(
                f"the text is longer than {LONGEST:,} characters", fix="upload it as a file instead"
            )
        with self._lock:
            run = self._open(folder)
            given = texts[0] if len(texts) == 1 else tuple(texts)
            return {**run.predict([given])[0], "explanation": _explain(run, given)}

    def _open(self, folder: Path) -> "Run":
        from headstart.run import Run

        if self._run is None or folder != self._folder:
            if not folder.is_dir():
                raise HeadstartError("this study saved no classifier", code="no-classifier")
            self._folder, self._run = folder, Run.open(folder)
        return self._run


def _explain(run: "Run", given: str | tuple[str, ...]) -> list[dict[str, Any]] | None:
    """Split the text into pieces, each with its effect and its share of the strongest effect."""
    if not run.explains:
        return None
    effects = run.explain(given)
    most = max((abs(one.effect) for one in effects), default=0.0) or 1.0
    pieces: list[dict[str, Any]] = []
    for part, text in enumerate([given] if isinstance(given, str) else given):
        place = 0
        pieces += [{"text": " | "}] if part else []
        here = (one for one in effects if one.part == part)
        for one in sorted(here, key=lambda one: one.start):
            if one.start < place:
                continue  # a character sequence that overlaps its neighbour
            pieces.append({"text": text[place : one.start]})
            share = {"effect": round(one.effect, 4), "share": round(one.effect / most, 4)}
            pieces.append({"text": one.text, **share})
            place = one.end
        pieces.append({"text": text[place:]})
    return [piece for piece in pieces if piece["text"]]
