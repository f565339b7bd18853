"""Limits as operators see and set them, and a queue's own bounds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace import (
    App,
    EnqueueOutcome,
    InvalidArguments,
    InvalidOption,
    Limit,
    QueueFull,
    QueueGate,
    QueueLimit,
    StorageFull,
)
from headrace.testing import Kit


@pytest.fixture
def app() -> App[None]:
    app = App("memory://")

    @app.task(name="charge", queue="pay", limits=[Limit("stripe", by="customer", concurrency=1)])
    async def charge(customer: int | None, n: int) -> None: ...

    return app


def a_limit(**said: Any) -> QueueLimit:
    shown: dict[str, Any] = {
        "queue": "pay",
        "name": "stripe",
        "concurrency": None,
        "rate": None,
        "burst": None,
        "is_set": True,
        "declared": "1 at once",
    }
    return QueueLimit(**{**shown, **said})


async def test_a_limit_is_shown_as_declared_and_as_it_was_set(app: App[None]) -> None:
    async with Kit(app):
        queue = app.queue("pay")
        assert await queue.limits() == []
        await app.tasks["charge"].enqueue(1, 1)
        assert await queue.limits() == [a_limit(concurrency=1, is_set=False)]
        await queue.set_limit("stripe", rate="5/2h", burst=2)
        assert await queue.limits() == [a_limit(rate="5/2h", burst=2)]
        await queue.set_limit("stripe", concurrency=20)
        assert await queue.limits() == [a_limit(concurrency=20)]
        await queue.reset_limit("stripe")
        assert await queue.limits() == [a_limit(concurrency=1, is_set=False)]


async def test_a_raised_limit_lets_jobs_start_and_a_key_shows_how_it_stands(
    app: App[None],
) -> None:
    async with Kit(app):
        queue, charge = app.queue("pay"), app.tasks["charge"]
        for n in range(3):
            await charge.enqueue(42, n)
        await charge.enqueue(None, 1)
        shown: dict[str, Any] = {"queue": "pay", "name": "stripe", "active": 0, "tokens": None}
        assert await queue.gate("stripe", 42) == QueueGate(**shown, key="42", ready=1, blocked=2)
        assert await queue.gate("stripe") == QueueGate(**shown, key="", ready=1, blocked=0)
        await queue.set_limit("stripe", concurrency=2)
        assert await queue.gate("stripe", "42") == QueueGate(**shown, key="42", ready=2, blocked=1)
        assert (await queue.stats()).blocked == 1


async def test_a_worker_declares_the_limits_of_its_tasks(app: App[None]) -> None:
    async with Kit(app) as kit:
        await app.queue("pay").pause()  # so that the queue is there
        await app.queue("pay").resume()
        await kit.run_until_idle()
        assert await app.queue("pay").limits() == [a_limit(concurrency=1, is_set=False)]


@pytest.mark.parametrize(
    "said", [{}, {"concurrency": 0}, {"rate": "10"}, {"burst": 3}, {"rate": "1/s", "burst": 0}]
)
async def test_what_a_limit_can_not_allow_is_refused(app: App[None], said: dict[str, Any]) -> None:
    queue = app.queue("pay")  # of no storage that could be asked
    with pytest.raises(InvalidOption):
        await queue.set_limit("stripe", **said)
    for name in ("", "a\tb", "x" * 601):
        with pytest.raises(InvalidOption):
            await queue.set_limit(name, concurrency=1)
        with pytest.raises(InvalidOption):
            await queue.reset_limit(name)
        with pytest.raises(InvalidOption):
            await queue.gate(name)
    with pytest.raises(InvalidArguments):
        await queue.gate("stripe", 1.5)  # type: ignore[arg-type]  # what is refused


async def test_a_full_queue_refuses_more(app: App[None]) -> None:
    async with Kit(app) as kit:
        queue, charge = app.queue("pay"), app.tasks["charge"]
        assert (await queue.configure(max_length=2)).max_length == 2
        await charge.enqueue(1, 1)
        assert (await charge.enqueue(1, 2)).outcome is EnqueueOutcome.BLOCKED
        with pytest.raises(QueueFull, match="queue 'pay' takes 2 jobs that wait") as caught:
            await charge.enqueue(2, 1)
        assert isinstance(caught.value, StorageFull)
        assert (caught.value.queue, caught.value.limit, caught.value.waiting) == ("pay", 2, 2)
        await kit.run_until_idle()
        await charge.enqueue(2, 1)


@pytest.mark.parametrize("name", ["max_active", "max_length"])
@pytest.mark.parametrize("value", [-1, 10_000_001, 1.5, True])
async def test_bounds_of_a_queue_are_whole_numbers(app: App[None], name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=name):
        await app.queue("pay").configure(**{name: value})


async def test_callers_that_share_a_call_fill_a_queue_up_to_its_bound(app: App[None]) -> None:
    @app.task(name="note", queue="pay")
    async def note(number: int) -> None: ...

    queue = app.queue("pay")
    for bound in (3, 10):
        await queue.configure(max_length=bound)
        before = (await queue.stats()).queued
        calls = [note.enqueue(n) for n in range(20)]
        calls.append(app.enqueue_many(note.job(n) for n in range(bound + 1)))  # type: ignore[arg-type]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, QueueFull)]
        assert len(refused) == len(calls) - (bound - before)
        assert isinstance(answers[-1], QueueFull)
        assert (await queue.stats()).queued == bound
    ids = {row.id async for row in queue.jobs("queued")}
    assert len(ids) == 10


async def test_the_share_of_lower_priorities_is_configured(app: App[None]) -> None:
    async with app:
        queue = app.queue("default")
        assert (await queue.configure(aging=2)).aging == 2
        assert (await queue.configure()).aging == 2
        for wrong in (1, -1, 1_000_001, 2.5, True):
            with pytest.raises(InvalidOption, match="aging="):
                await queue.configure(aging=wrong)  # type: ignore[arg-type]  # 2.5 is none


async def test_two_who_configure_a_queue_at_once_both_have_their_way(app: App[None]) -> None:
    async with app:
        queue = app.queue("pay")
        await asyncio.gather(
            queue.configure(max_length=7), queue.configure(aging=3), queue.configure(weight=2)
        )
        stats = await queue.stats()
        assert (stats.max_length, stats.aging, stats.weight) == (7, 3, 2)
