"""F24: a job is found by its id alone, and its handle knows the type of its result."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from headrace import (
    App,
    EnqueueOutcome,
    InvalidOption,
    JobNotFound,
    Task,
    UnknownTask,
    Worker,
)
from headrace.testing import running
from tests.support.until import patience


class Receipt(msgspec.Struct):
    number: int


@pytest.fixture
def buy(app: App[None]) -> Task[[int], Receipt]:
    @app.task(name="buy", queue="orders")
    async def buy(number: int) -> Receipt:
        return Receipt(number)

    return buy


async def test_f24_a_job_is_found_by_its_id_alone(
    app: App[None], buy: Task[[int], Receipt]
) -> None:
    await buy.options(queue="elsewhere").enqueue(1)
    job = await buy.enqueue(2)
    async with running(Worker(app, queues=["orders"])):
        await job.result(timeout=patience(10))
    found = await app.find(job.id)
    assert (found.id, found.queue) == (job.id, "orders")
    assert await found.result() == Receipt(2), "of the type that its task declares"
    assert (await found.status()).args == {"number": 2}


async def test_f24_an_id_that_no_queue_has_is_told(app: App[None]) -> None:
    with pytest.raises(JobNotFound, match="no job 'nobody' in any queue of tenant"):
        await app.find("nobody")


async def test_f24_an_id_that_several_queues_have_is_told(
    app: App[None], buy: Task[[int], Receipt]
) -> None:
    for queue in ("a", "b"):
        await buy.options(id="daily", queue=queue).enqueue(1)
    with pytest.raises(InvalidOption, match=r"in several queues \(a, b\): name one"):
        await app.find("daily")


async def test_f24_a_bad_id_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(InvalidOption, match="job id '' is not valid"):
        await App("redis://127.0.0.1:1").find("")


async def test_f24_the_task_itself_says_queue_and_type(
    app: App[None], buy: Task[[int], Receipt]
) -> None:
    job = await buy.enqueue(2)
    async with running(Worker(app)):
        await job.result(timeout=patience(10))
    assert app.job(job.id, task=buy).queue == "orders"
    assert await app.job(job.id, task=buy).result() == Receipt(2)
    assert await app.job(job.id, queue="orders", task="buy").result() == Receipt(2)
    assert await app.job(job.id, queue="orders").result() == {"number": 2}
    assert await (await app.find(job.id, task=buy)).result() == Receipt(2)


@pytest.mark.parametrize("task", ["bogus", "buy "])
async def test_f24_a_task_that_is_not_there_is_refused(
    app: App[None], buy: Task[[int], Receipt], task: str
) -> None:
    with pytest.raises(UnknownTask, match=r"known: buy\): leave task= out"):
        app.job("x", task=task)
    with pytest.raises(UnknownTask):
        await app.find("x", task=task)


@pytest.mark.parametrize("task", [len, 5, b"buy"], ids=["function", "number", "bytes"])
def test_f24_what_is_no_task_is_refused(task: Any) -> None:
    with pytest.raises(InvalidOption, match="task name"):
        App("memory://").job("x", task=task)


async def test_p8_a_handle_tells_no_state_that_may_be_past(
    app: App[None], buy: Task[[int], Receipt]
) -> None:
    job = await buy.options(id="daily").enqueue(1)
    assert repr(job) == "<JobHandle 'daily' in 'orders'>"


async def test_p9_an_outcome_is_always_a_word(app: App[None], buy: Task[[int], Receipt]) -> None:
    answer: dict[str, str] = {"outcome": (await buy.enqueue(1)).outcome}
    assert answer == {"outcome": "queued"}
    assert app.job("x").outcome is EnqueueOutcome.UNKNOWN
