"""Try a study's classifier: a text in, its label, its probability and the words that moved it."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from headstart.run import Run

KEPT = 2  # classifiers in memory
LONGEST = 20_000  # characters of a text


class Classifiers:
    """Classifiers by their folders; the latest stay in memory."""

    def __init__(self) -> None:
        self._opened: OrderedDict[Path, Run] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, folder: Path, texts: Sequence[str]) -> dict[str, Any]:
        """What the classifier says of a text (of two, where its task is about pairs)."""
        if not any(text.strip() for text in texts):
            raise HeadstartError("there is no text to classify", fix="write one")
        if max(map(len, texts)) > LONGEST:
            raise HeadstartError(
                f"the text is longer than {LONGEST:,} characters",
                fix="upload it as a file instead",
            )
        with self._lock:  # one at a time: each uses all threads
            run = self._open(folder)
            given = texts[0] if run.require_task().texts_per_row == 1 else tuple(texts[:2])
            return {**run.predict([given])[0], "explanation": _explain(run, given)}

    def about(self, folder: Path) -> dict[str, Any]:
        """Its labels, and how many texts it reads at once."""
        with self._lock:
            task = self._open(folder).require_task()
            return {"labels": list(task.labels), "texts": task.texts_per_row, "task": task.name}

    def forget(self, folder: Path) -> None:
        """Its study is deleted."""
        with self._lock:
            self._opened.pop(folder, None)

    def _open(self, folder: Path) -> "Run":
        from headstart.run import Run

        if folder not in self._opened:
            if not folder.is_dir():
                raise HeadstartError(
                    "this study kept no classifier", fix="its report says which command trains one"
                )
            self._opened[folder] = Run.open(folder)
        self._opened.move_to_end(folder)
        while len(self._opened) > KEPT:
            self._opened.popitem(last=False)
        return self._opened[folder]


def _explain(run: "Run", given: str | tuple[str, ...]) -> dict[str, Any] | None:
    """The text in pieces, each with its effect from −1 to 1 (none between words)."""
    if not run.explains:
        return None
    found = run.explain(given)
    most = max((abs(one.effect) for one in found.effects), default=0.0)
    pieces: list[dict[str, Any]] = []
    for part, text in enumerate([given] if isinstance(given, str) else given):
        place = 0
        pieces += [{"text": " | "}] if part else []
        effects = [one for one in found.effects if one.part == part]
        for one in sorted(effects, key=lambda one: one.start):
            if one.start < place:
                continue  # a character sequence that overlaps its neighbour
            if one.start > place:
                pieces.append({"text": text[place : one.start]})
            share = one.effect / most if most else 0.0
            effect = {"effect": round(one.effect, 4), "share": round(share, 4)}
            pieces.append({"text": one.text, **effect})
            place = one.end
        pieces.append({"text": text[place:]})
    return {"method": found.method, "pieces": pieces}
