"""What every route asks: one model, its queue, its limits, and a newer model in its place."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from headstart.errors import HeadstartError
from headstart.errors import explain as explain_error
from headstart.machine import choose_threads
from headstart.serve.batching import Batcher, QueueFullError, RowError, StoppingError
from headstart.serve.bodies import BodyReader
from headstart.serve.metrics import ServerMetrics
from headstart.serve.model import InvalidInputError, Question, ServedModel
from headstart.serve.replies import RefusedError, internal_error
from headstart.serve.settings import ServeSettings

log = logging.getLogger("headstart.serve")

MOST_EXPLAINED = 50_000  # characters of a request; each text is copied up to 200 times


class Service:
    """Answers inputs within the limits of `settings`.

    Parameters
    ----------
    open_model : opens the run; called again for each reload.
    settings : the server's.
    model : what `open_model` gave already, if it was called.
    """

    def __init__(
        self,
        open_model: Callable[[], ServedModel],
        settings: ServeSettings,
        model: ServedModel | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = ServerMetrics()
        self.bodies = BodyReader(settings)
        self.model = open_model() if model is None else model
        self.stopping = False
        self._open_model = open_model
        self._reloading: asyncio.Task[bool] | None = None
        self.batcher = Batcher(
            limit=settings.queue,
            deadline=settings.deadline,
            observer=self.metrics,
            threads=_model_threads(self.model, settings),
            prepare=_compute_alone,
        )

    @property
    def ready(self) -> bool:
        """Whether a request would be answered."""
        return self.batcher.alive and not self.stopping

    async def ask(
        self, inputs: Sequence[Any], *, places: Sequence[str] | None = None, explain: bool = False
    ) -> tuple[ServedModel, list[Question], list[dict[str, Any]]]:
        """Answer the inputs of one request: the model that did, the questions and the answers.

        Parameters
        ----------
        inputs : as `ServedModel.read` takes them.
        places : what messages call each of them.
        explain : whether the words that moved each answer are wanted.
        """
        model = self.model  # a reload in between must not mix two models in one answer
        most = self.settings.max_texts
        if len(inputs) > most:
            raise RefusedError(
                422,
                f"{len(inputs):,} inputs; this server takes {most:,} a request",
                where="inputs",
                fix="send several requests",
                reason="texts",
            )
        if explain and _characters(inputs) > MOST_EXPLAINED:
            raise RefusedError(
                422,
                f"more than {MOST_EXPLAINED:,} characters to explain",
                where="parameters.explain",
                fix="send fewer or shorter texts",
                reason="texts",
            )
        try:
            questions = model.read(inputs, explain=explain, places=places)
        except InvalidInputError as error:
            raise RefusedError(422, error.what, where=error.where) from None
        if sum(one.size for one in questions) * 4 > self.settings.max_tokens:
            await self._check_tokens(model, inputs, places)
        rows = sum(len(one.rows) for one in questions)
        if rows > self.settings.queue:
            raise RefusedError(
                422,
                f"explaining these takes {rows:,} readings; at most {self.settings.queue:,} wait",
                where="parameters.explain",
                fix="send fewer or shorter texts",
                reason="texts",
            )
        try:
            return model, questions, await self.batcher.answer(model, questions)
        except QueueFullError as full:
            raise RefusedError(
                429,
                "too many requests are waiting",
                fix=f"try again in {full.seconds} s",
                reason="queue",
                headers={"Retry-After": str(full.seconds)},
            ) from None
        except StoppingError:
            raise RefusedError(503, "the server stops", reason="stopping") from None
        except TimeoutError:
            seconds = self.settings.deadline
            raise RefusedError(504, f"no answer within {seconds:g} s", reason="deadline") from None
        except RowError as failed:
            place = places[failed.place] if places else f"inputs[{failed.place}]"
            if isinstance(failed.error, HeadstartError):
                raise RefusedError(422, failed.error.what, where=place) from None
            log.error("an input could not be answered", exc_info=failed.error)
            raise internal_error() from None

    async def _check_tokens(
        self, model: ServedModel, inputs: Sequence[Any], places: Sequence[str] | None
    ) -> None:
        """Refuse more tokens than a request may have; a token has a quarter of a byte at least."""
        texts = [
            [given] if isinstance(given, str) else [given[name] for name in model.fields]
            for given in inputs
        ]
        flat = [text for one in texts for text in one]
        # In a thread of its own: a long text takes a while, and other requests come in meanwhile.
        counts = iter(await asyncio.to_thread(model.count_tokens, flat))
        total = 0
        for number, one in enumerate(texts):
            total += sum(next(counts) for _ in one)
            if total > self.settings.max_tokens:
                place = places[number] if places else f"inputs[{number}]"
                raise RefusedError(
                    422,
                    f"more than {self.settings.max_tokens:,} tokens, which is the most a request "
                    "may have",
                    where=place,
                    fix="send shorter texts, or several requests",
                    reason="tokens",
                )

    def reload(self) -> "asyncio.Task[bool]":
        """Take a newer run, in the background; while that is under way, there is no second one."""
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.get_running_loop().create_task(self._reload())
        return self._reloading

    async def _reload(self) -> bool:
        """Open the run again; if that fails, the old one goes on."""
        try:
            model = await asyncio.to_thread(self._open_model)
        except Exception as error:
            told = explain_error(error)
            if told is None:
                log.error("the newer run is refused", exc_info=error)
            else:
                log.error("the newer run is refused, and the old one goes on: %s", told)
            self.metrics.reloads.labels("refused").inc()
            return False
        self.model = model  # requests that wait keep the model that they were read for
        self.metrics.reloads.labels("taken").inc()
        log.info("the newer run is taken: %s, task %s", model.name, model.task)
        return True


def _characters(inputs: Sequence[Any]) -> int:
    """Of all texts of a request that was not checked yet."""
    texts = [list(one.values()) if isinstance(one, dict) else [one] for one in inputs]
    return sum(len(text) for one in texts for text in one if isinstance(text, str))


def _model_threads(model: ServedModel, settings: ServeSettings) -> int:
    """Batches at the same time: one per core of this worker's share.

    For small networks that is faster than one batch on all cores, whose threads wait for each
    other. An export to ONNX shares a batch out by itself.
    """
    share = max(1, choose_threads() // settings.workers)
    own: int = getattr(model.run, "threads", 1)
    return max(1, choose_threads(settings.threads or share) // own)


def _compute_alone() -> None:
    """In a model's thread: each operation on one core."""
    import torch

    torch.set_num_threads(1)
