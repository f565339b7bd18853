"""Throttle: the first of many calls runs, and those within its time get its handle."""

from __future__ import annotations

import asyncio
import secrets
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from headrace import App, EnqueueOutcome, JobState, SyncApp, Task, UsageError, Worker
from headrace.testing import Kit, running
from tests.apps.throttled_producer import throttled
from tests.support.jobs import reached
from tests.support.producers import told_in_processes
from tests.support.until import patience, until

PROCESSES, PRODUCERS = 4, 25


@pytest.fixture
def runs() -> list[object]:
    """What the handler was called with, in order."""
    return []


@pytest.fixture
def refresh(app: App[None], runs: list[object]) -> Task[[object], object]:
    @app.task(name="refresh", throttle=600)
    async def refresh(value: object) -> object:
        runs.append(value)
        return value

    return refresh


async def test_the_first_call_runs_and_the_others_have_its_handle(
    app: App[None], refresh: Task[[object], object], runs: list[object]
) -> None:
    first = await refresh.enqueue(0)
    assert first.outcome is EnqueueOutcome.QUEUED
    others = [await refresh.enqueue(1), *await app.enqueue_many([refresh.job(2), refresh.job(3)])]
    assert {(job.id, job.outcome) for job in others} == {(first.id, EnqueueOutcome.DUPLICATE)}
    async with running(Worker(app)):
        assert await others[-1].result(timeout=patience(15)) == 0
        assert await refresh.enqueue_and_wait(4) == 0
    last = await refresh.enqueue(5)
    assert (last.id, last.outcome) == (first.id, EnqueueOutcome.COMPLETED)
    assert runs == [0]


@pytest.mark.parametrize("kind", ["redis", "file"])
async def test_of_a_hundred_calls_of_several_processes_one_is_let_through(
    request: pytest.FixtureRequest, tmp_path: Any, kind: str
) -> None:
    url = f"file://{tmp_path}/data" if kind == "file" else request.getfixturevalue("redis_url")
    told = await told_in_processes(
        "tests.apps.throttled_producer", url, processes=PROCESSES, each=PRODUCERS
    )
    outcomes = [line.partition(" ")[0] for line in told]
    assert (outcomes.count("queued"), outcomes.count("duplicate")) == (1, 99)
    [job_id] = {line.partition(" ")[2] for line in told}
    app, refresh = throttled(url)
    async with app, running(Worker(app)):
        job = app.job(job_id, task=refresh)
        by = await job.result(timeout=patience(15))
        assert by[0] == "p"
        stats = await app.queue("pages").stats()
    assert (stats.history, stats.queued, stats.last_minute.enqueued) == (1, 0, 1)


async def test_calls_are_told_apart_by_their_ids_and_tasks(
    app: App[None], refresh: Task[[object], object]
) -> None:
    async def none(value: object) -> None: ...

    # A colon in a task's name is not the one before an id.
    other = app.task(name="refresh:7", throttle=600)(none)
    calls: list[Any] = [refresh, refresh.options(id="7"), refresh.options(id="8"), other]
    jobs = [await call.enqueue(number) for number, call in enumerate(calls)]
    again = [await call.enqueue(9) for call in calls]
    assert [job.outcome for job in jobs] == [EnqueueOutcome.QUEUED] * 4
    assert [job.id for job in again] == [job.id for job in jobs]
    assert [job.id for job in jobs[1:3]] == ["7", "8"]


async def test_the_next_call_after_its_time_runs_whatever_became_of_the_first(
    app: App[None], refresh: Task[[object], object], runs: list[object]
) -> None:
    async def through(value: int, **said: Any) -> bool:
        job = await refresh.options(throttle=0.05, **said).enqueue(value)
        return job.outcome in (EnqueueOutcome.QUEUED, EnqueueOutcome.UPDATED)

    async with running(Worker(app)):
        said: dict[str, Any] = {}
        for said in ({}, {"id": "7"}):
            assert await through(1, **said)
            await until(lambda: runs == [1], within=patience(10))
            # It is completed and kept for an hour, also by its id, and holds nobody up for that.
            await until(partial(through, 2, **said), within=patience(10))
            await until(lambda: runs == [1, 2], within=patience(10))
            runs.clear()


async def test_one_that_says_so_is_let_through_once_for_its_id_as_ever(
    app: App[None], refresh: Task[[object], object]
) -> None:
    call = refresh.options(id="7", on_conflict="skip", throttle=0.01)
    job = await call.enqueue(1)
    async with running(Worker(app)):
        await reached(job, JobState.COMPLETED)
    calls = [await call.enqueue(2) for _ in range(3)]
    assert {again.outcome for again in calls} == {EnqueueOutcome.COMPLETED}
    assert (await refresh.options(throttle=0).enqueue(1)).outcome is EnqueueOutcome.QUEUED
    later = await refresh.options(delay=60).enqueue(3)
    assert later.outcome is EnqueueOutcome.SCHEDULED


def test_a_program_without_a_loop_throttles_too(storage_url: str) -> None:
    with SyncApp(App(storage_url, tenant=f"test-{secrets.token_hex(6)}")) as app:
        call = app.task_ref("refresh", queue="q").options(throttle=60)
        first, second = call.enqueue(n=1), call.enqueue(n=2)
        [third] = app.enqueue_many([call.job(n=3)])
    assert first.id == second.id == third.id


async def test_a_call_after_the_window_follows_one_of_its_id_that_still_runs(
    app: App[None], runs: list[object]
) -> None:
    may_end = asyncio.Event()

    @app.task(throttle=0.01)
    async def refresh(value: int) -> int:
        runs.append(value)
        await may_end.wait()
        return value

    call = refresh.options(id="7")
    async with running(Worker(app)):
        first = await call.enqueue(1)
        await until(lambda: runs == [1], within=patience(10))

        async def is_followed() -> bool:
            return (await call.enqueue(2)).outcome is EnqueueOutcome.UPDATED

        await until(is_followed)
        assert (await first.status()).has_next
        may_end.set()
        await until(lambda: runs == [1, 2], within=patience(10))


async def test_a_bulk_write_lets_the_first_through(
    app: App[None], refresh: Task[[object], object]
) -> None:
    async with app.bulk("w1") as bulk:
        await bulk.add_many(refresh.job(number) for number in range(20))
    assert (await app.queue("default").stats()).queued == 1
    with pytest.raises(UsageError, match="only brings new jobs in"):
        async with app.bulk("w2") as bulk:
            await bulk.add(refresh.options(id="7").job(1))


async def test_a_kit_lets_the_time_pass(runs: list[object]) -> None:
    app = App("memory://")

    @app.task(throttle=60)
    async def refresh(value: int) -> int:
        runs.append(value)
        return value

    async with Kit(app) as kit:
        assert [await refresh.enqueue_and_wait(number) for number in range(3)] == [0, 0, 0]
        await kit.advance(timedelta(seconds=60))
        assert await refresh.enqueue_and_wait(3) == 3
        assert [job.arguments["value"] for job in kit.enqueued()] == [0, 3]
    assert runs == [0, 3]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"throttle": 0.009}, "throttle=0.009 is out of bounds: use 0.01 seconds to a year"),
    ({"throttle": timedelta(days=367)}, "is out of bounds"),
    ({"throttle": "1m"}, "throttle='1m' is not a duration"),
    ({"throttle": 60, "idempotency_key": "k"}, "idempotency_key='k' makes no sense"),
    ({"throttle": 60, "idempotency_ttl": 5}, "idempotency_ttl=5 makes no sense"),
    (
        {"throttle": 60, "idempotency_key": "k", "idempotency_ttl": 60},
        "makes no sense with throttle=60: leave it out, or say throttle=0 for this call",
    ),
]


@pytest.mark.parametrize(("said", "words"), BAD, ids=[words for _, words in BAD])
def test_what_makes_no_sense_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        App("memory://").task_ref("refresh", queue="q").options(**said)
    assert words in str(refused.value)
