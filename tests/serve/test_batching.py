"""The queue and its batches: similar lengths, no waiting, bounds, deadlines, isolation."""

import asyncio

import pytest

from headstart.serve.batching import (
    BATCH_CHARACTERS,
    Batcher,
    QueueFullError,
    RowError,
    StoppingError,
)
from headstart.serve.model import Question
from tests.serve.served import FakeModel, until


class Quiet:
    def waiting(self, texts):
        pass

    def batch(self, texts, seconds):
        pass


def questions(*texts):
    return [Question((text,), len(text)) for text in texts]


def run(scenario, **settings):
    """Run a scenario with a started batcher and a fake model."""
    model = FakeModel()
    batcher = Batcher(**{"limit": 100, "deadline": 30.0, "observer": Quiet(), **settings})
    batcher.start()

    async def whole():
        try:
            return await asyncio.wait_for(scenario(batcher, model), 60)
        finally:
            model.gate.set()
            batcher.close()

    return asyncio.run(whole())


async def queued(batcher, model, *texts):
    """Keep the model busy with one text, and let others wait, a request each."""
    model.gate.clear()
    tasks = [asyncio.create_task(batcher.answer(model, questions("first")))]
    await until(model.started.is_set)
    for text in texts:
        tasks.append(asyncio.create_task(batcher.answer(model, questions(text))))
        await asyncio.sleep(0)
    return tasks


def test_answers_come_in_the_order_of_the_questions():
    async def scenario(batcher, model):
        return await batcher.answer(model, questions("b" * 300, "a", "c" * 40))

    found = run(scenario)
    assert [one["text"] for one in found] == ["B" * 300, "A", "C" * 40]


def test_an_idle_model_takes_a_text_at_once_and_alone():
    async def scenario(batcher, model):
        for text in "abc":
            await batcher.answer(model, questions(text))
        return model.batches

    assert run(scenario) == [["a"], ["b"], ["c"]]


def test_what_waits_is_batched_by_length_and_the_oldest_goes_first():
    short, long = [f"short {n}" for n in range(5)], ["x" * 600 + str(n) for n in range(3)]
    mixed = [short[0], long[0], short[1], long[1], short[2], short[3], long[2], short[4]]

    async def scenario(batcher, model):
        tasks = await queued(batcher, model, *mixed)
        model.gate.set()
        await asyncio.gather(*tasks)
        return model.batches[1:]

    found = run(scenario)
    assert sorted(found[0]) == short
    assert sorted(found[1]) == long


def test_a_batch_is_bounded_in_size():
    texts = [f"{n:03} " + "x" * 996 for n in range(20)]

    async def scenario(batcher, model):
        tasks = await queued(batcher, model, *texts)
        model.gate.set()
        await asyncio.gather(*tasks)
        return model.batches[1:]

    found = run(scenario)
    assert max(map(len, found)) == BATCH_CHARACTERS // 1_000
    assert sum(map(len, found)) == 20


def test_a_full_queue_refuses_a_text_and_a_list_alike_and_takes_both_later():
    async def scenario(batcher, model):
        tasks = await queued(batcher, model, "a", "b", "c")
        with pytest.raises(QueueFullError) as single:
            await batcher.answer(model, questions("d"))
        assert 1 <= single.value.seconds <= 60
        with pytest.raises(QueueFullError):
            await batcher.answer(model, questions("d", "e"))
        model.gate.set()
        await asyncio.gather(*tasks)
        return await batcher.answer(model, questions("d", "e"))

    assert run(scenario, limit=3) == [{"text": "D"}, {"text": "E"}]


def test_a_list_that_fits_only_in_part_is_refused_whole():
    async def scenario(batcher, model):
        tasks = await queued(batcher, model, "a", "b")
        with pytest.raises(QueueFullError):
            await batcher.answer(model, questions("c", "d"))
        model.gate.set()
        await asyncio.gather(*tasks)
        return model.batches

    assert "c" not in [text for batch in run(scenario, limit=3) for text in batch]


def test_past_its_deadline_a_request_is_given_up_and_costs_nothing():
    async def scenario(batcher, model):
        tasks = await queued(batcher, model)
        batcher.deadline = 0.05
        with pytest.raises(TimeoutError):
            await batcher.answer(model, questions("late"))
        batcher.deadline = 30.0
        model.gate.set()
        await asyncio.gather(*tasks, batcher.answer(model, questions("next")))
        return model.batches

    assert run(scenario) == [["first"], ["next"]]


def test_a_text_that_breaks_the_model_breaks_no_other():
    async def scenario(batcher, model):
        tasks = await queued(batcher, model, "good 1", "broken", "good 2")
        model.gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, one, broken, two = run(scenario)
    assert (first, one, two) == ([{"text": "FIRST"}], [{"text": "GOOD 1"}], [{"text": "GOOD 2"}])
    assert isinstance(broken, RowError)


def test_closing_answers_what_waits_and_takes_nothing_new():
    async def scenario(batcher, model):
        tasks = await queued(batcher, model, "a", "b")
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        await until(lambda: not batcher.alive)
        with pytest.raises(StoppingError):
            await batcher.answer(model, questions("late"))
        model.gate.set()
        await closing
        return await asyncio.gather(*tasks)

    assert [one[0]["text"] for one in run(scenario)] == ["FIRST", "A", "B"]


def test_several_threads_answer_at_the_same_time():
    async def scenario(batcher, model):
        model.gate.clear()
        tasks = []
        for place, text in enumerate("ab"):
            tasks.append(asyncio.create_task(batcher.answer(model, questions(text))))
            await until(lambda busy=place + 1: model.busy == busy)
        model.gate.set()
        return await asyncio.gather(*tasks)

    assert run(scenario, threads=2) == [[{"text": "A"}], [{"text": "B"}]]


def test_two_models_never_share_a_batch():
    async def scenario(batcher, model):
        other = FakeModel()
        tasks = await queued(batcher, model, "old 1", "old 2")
        tasks.append(asyncio.create_task(batcher.answer(other, questions("new 1"))))
        await asyncio.sleep(0)
        model.gate.set()
        await asyncio.gather(*tasks)
        return model.batches, other.batches

    old, new = run(scenario)
    assert old == [["first"], ["old 1", "old 2"]]
    assert new == [["new 1"]]
