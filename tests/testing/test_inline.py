"""Inline mode: a job has run when ``enqueue`` returns."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from headrace import JobState, NotSerializable
from headrace.testing import Kit
from tests.apps import shop_app
from tests.apps.shop_app import Order, app, bill, hold, send, ship


@pytest.fixture
async def kit() -> AsyncIterator[Kit]:
    async with Kit(app, inline=True) as kit:
        yield kit


async def test_a_job_has_run_with_all_that_it_enqueued(kit: Kit) -> None:
    job = await ship.enqueue(Order(1, ("a",)))
    # A handler's own jobs run after it, as they would with a worker of one slot.
    assert shop_app.order == ["ship", "bill", "send"]
    assert (await job.status()).state is JobState.COMPLETED
    assert await job.result() == 1
    kit.assert_enqueued(send, {"template": "shipped"})


async def test_arguments_go_through_the_codec(kit: Kit) -> None:
    with pytest.raises(NotSerializable):
        await bill.enqueue(object())  # type: ignore[arg-type]  # the point
    job = await ship.enqueue({"number": 1, "items": ["a", "b"]})  # type: ignore[arg-type]  # as JSON has it
    assert await job.result() == 2


async def test_an_error_is_raised_and_its_job_waits_for_its_retry(kit: Kit) -> None:
    with pytest.raises(ConnectionError, match="no answer for x"):
        await send.enqueue("x", tries=1)
    [sent] = kit.assert_enqueued(send)
    assert (await app.job(sent.id, queue="mail").status()).state is JobState.RETRYING
    [attempt] = await kit.run_until_idle(advance=True)
    assert attempt.outcome == "completed"


async def test_a_delayed_job_waits(kit: Kit) -> None:
    await bill.options(delay=60).enqueue(1)
    assert shop_app.order == []
    await kit.advance(60)
    await bill.enqueue(2)
    assert shop_app.order == ["bill", "bill"]


async def test_bulk_runs_when_all_is_stored(kit: Kit) -> None:
    handles = await app.enqueue_many(bill.job(number) for number in range(3))
    assert [(await handle.status()).state for handle in handles] == [JobState.COMPLETED] * 3


async def test_a_request_has_its_response(kit: Kit) -> None:
    assert await bill.enqueue_and_wait(7) == "bill 7"
    assert shop_app.order == ["bill"]


async def test_a_job_that_another_task_runs_has_ended_too(kit: Kit) -> None:
    states: list[JobState] = []

    async def enqueue(name: str) -> None:
        job = await hold.enqueue(name)
        states.append((await job.status()).state)

    async with anyio.create_task_group() as group:
        group.start_soon(enqueue, "a")
        group.start_soon(enqueue, "b")
        await shop_app.doors[-1].reached.wait()
        shop_app.doors[-1].opened.set()
    assert states == [JobState.COMPLETED] * 2


async def test_a_duplicate_runs_nothing(kit: Kit) -> None:
    for _ in range(2):
        await bill.options(id="march").enqueue(1)
    assert shop_app.order == ["bill"]
