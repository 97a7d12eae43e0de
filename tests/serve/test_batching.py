"""The queue and its batches: similar lengths, no waiting, bounds, deadlines, isolation."""

import asyncio

import pytest

from headstart.errors import HeadstartError
from headstart.serve.batching import BATCH_CHARACTERS, BatchQueue
from tests.serve.served import FakeModel, until


def run(scenario, **settings):
    """Run a scenario with a queue and a fake model."""
    model = FakeModel()
    queue = BatchQueue(model.predict, **{"limit": 100, "threads": 1, **settings})

    async def whole():
        try:
            return await asyncio.wait_for(scenario(queue, model), 60)
        finally:
            model.gate.set()
            queue.close()

    return asyncio.run(whole())


async def queued(queue, model, *texts):
    """Keep the model busy with one text, and let others wait, a request each."""
    model.gate.clear()
    tasks = [asyncio.create_task(queue.submit(["first"]))]
    await until(model.started.is_set)
    for text in texts:
        tasks.append(asyncio.create_task(queue.submit([text])))
        await asyncio.sleep(0)
    return tasks


async def code_of(request):
    with pytest.raises(HeadstartError) as error:
        await request
    return error.value.code


def test_a_batch_is_bounded_in_size():
    texts = [f"{n:03} " + "x" * 996 for n in range(20)]

    async def scenario(queue, model):
        tasks = await queued(queue, model, *texts)
        model.gate.set()
        await asyncio.gather(*tasks)
        return model.batches[1:]

    found = run(scenario)
    assert max(map(len, found)) == BATCH_CHARACTERS // 1_000
    assert sum(map(len, found)) == 20


def test_a_request_that_is_given_up_costs_nothing():
    async def scenario(queue, model):
        tasks = await queued(queue, model)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.submit(["late"]), 0.05)
        model.gate.set()
        await asyncio.gather(*tasks, queue.submit(["next"]))
        return model.batches

    assert run(scenario) == [["first"], ["next"]]


def test_a_text_that_breaks_the_model_breaks_no_other():
    async def scenario(queue, model):
        tasks = await queued(queue, model, "good 1", "broken", "good 2")
        model.gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, one, broken, two = run(scenario)
    assert (first, one, two) == (["FIRST"], ["GOOD 1"], ["GOOD 2"])
    assert isinstance(broken, RuntimeError)


def test_closing_predicts_what_waits_and_takes_nothing_new():
    async def scenario(queue, model):
        tasks = await queued(queue, model, "a", "b")
        closing = asyncio.create_task(asyncio.to_thread(queue.close))
        await until(lambda: not queue.alive)
        assert await code_of(queue.submit(["late"])) == "stopping"
        model.gate.set()
        await closing
        return await asyncio.gather(*tasks)

    assert run(scenario) == [["FIRST"], ["A"], ["B"]]
