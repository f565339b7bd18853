"""Idempotency keys: the first call with a key counts, and the others get its job's handle."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import (
    App,
    EnqueueOutcome,
    InvalidOption,
    Job,
    JobNotFound,
    SyncApp,
    Task,
    WaitTimeout,
    Worker,
)
from headrace.testing import Kit, running
from tests.support.producers import told_in_processes
from tests.support.until import patience

PROCESSES, PRODUCERS = 4, 25


@pytest.fixture
async def app(storage_url: str) -> AsyncIterator[App[None]]:
    async with App(storage_url, tenant=f"test-{secrets.token_hex(6)}") as app:
        yield app


@pytest.fixture
def double(app: App[None]) -> Task[[int], int]:
    @app.task(name="double")
    async def double(number: int) -> int:
        return 2 * number

    return double


async def test_a_later_call_has_the_handle_of_the_first_job(
    app: App[None], double: Task[[int], int]
) -> None:
    once = double.options(idempotency_key="order 7", idempotency_ttl=timedelta(hours=1))
    first = await once.enqueue(1)
    assert first.outcome is EnqueueOutcome.QUEUED
    second = await once.enqueue(2)
    assert (second.id, second.outcome) == (first.id, EnqueueOutcome.DUPLICATE)
    [third] = await app.enqueue_many([once.job(3)])
    assert (third.id, third.outcome) == (first.id, EnqueueOutcome.DUPLICATE)
    async with running(Worker(app)):
        assert await second.result(timeout=patience(15)) == 2
        assert await once.enqueue_and_wait(4) == 2
    fourth = await once.enqueue(5)
    assert (fourth.id, fourth.outcome) == (first.id, EnqueueOutcome.COMPLETED)
    assert (await app.queue("default").stats()).history == 1


async def test_who_waits_for_a_job_of_the_key_waits_for_the_first(
    app: App[None], double: Task[[int], int]
) -> None:
    once = double.options(idempotency_key="k", wait_timeout=0.05)
    first = await once.enqueue(1)
    with pytest.raises(WaitTimeout) as late:
        await once.enqueue_and_wait(2)
    assert late.value.job_id == first.id
    await first.cancel()
    await app.queue("default").purge("cancelled", first.id)
    with pytest.raises(JobNotFound):
        await once.enqueue_and_wait(2)


def test_a_program_without_a_loop_is_told_the_same(storage_url: str) -> None:
    app = SyncApp(App(storage_url, tenant=f"test-{secrets.token_hex(6)}"))
    with app:
        once = app.task_ref("double", queue="q").options(idempotency_key="k", wait_timeout=0.05)
        first, second = once.enqueue(number=1), once.enqueue(number=2)
        assert (second.id, second.outcome) == (first.id, EnqueueOutcome.DUPLICATE)
        [third] = app.enqueue_many([once.job(number=3)])
        assert third.id == first.id
        with pytest.raises(WaitTimeout) as late:
            once.enqueue_and_wait(number=4)
    assert late.value.job_id == first.id


async def test_a_kit_notes_the_first_alone() -> None:
    app = App("memory://")

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with Kit(app) as kit:
        once = double.options(idempotency_key="k")
        await once.enqueue(1)
        assert await once.enqueue_and_wait(2) == 2
        assert [job.arguments for job in kit.enqueued()] == [{"number": 1}]
        await kit.advance(timedelta(hours=24))
        assert await once.enqueue_and_wait(3) == 6


@pytest.mark.parametrize("kind", ["redis", "file"])
async def test_a_hundred_first_uses_in_several_processes_give_one_job(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    is_file = kind == "file"
    url = f"file://{tmp_path}/data" if is_file else request.getfixturevalue("redis_url")
    told = await told_in_processes(
        "tests.apps.keyed_producer", url, processes=PROCESSES, each=PRODUCERS
    )
    outcomes = [line.partition(" ")[0] for line in told]
    assert (outcomes.count("queued"), outcomes.count("duplicate")) == (1, 99)
    [job_id] = {line.partition(" ")[2] for line in told}
    async with App(url, tenant="keyed") as app:
        assert [job.id async for job in app.queue("money").jobs("queued")] == [job_id]
        assert (await app.queue("money").stats()).last_minute.enqueued == 1


# Mistakes, before anything is sent


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"idempotency_key": ""}, "idempotency_key '' is not valid"),
        ({"idempotency_key": "a\nb"}, "is not valid"),
        ({"idempotency_key": "é" * 129}, "is not valid"),
        ({"idempotency_key": 7}, "idempotency_key 7 is of type int"),
        ({"idempotency_ttl": 60}, "idempotency_ttl=60 goes with an idempotency_key"),
        ({"idempotency_key": "k", "idempotency_ttl": 0.999}, "idempotency_ttl=0.999"),
        ({"idempotency_key": "k", "idempotency_ttl": "1h"}, "idempotency_ttl='1h'"),
    ],
    ids=["empty", "control", "long", "number", "alone", "short", "text"],
)
def test_what_is_no_key_or_no_time_is_refused(options: dict[str, Any], words: str) -> None:
    app = App("memory://")

    @app.task
    async def send() -> None: ...

    with pytest.raises(InvalidOption) as refused:
        send.options(**options)
    assert words in str(refused.value)


async def test_a_job_that_anybody_made_is_checked_as_well(app: App[None]) -> None:
    for options in ({"idempotency_key": "a\tb"}, {"idempotency_ttl_ms": 9}):
        with pytest.raises(InvalidOption):
            await app.enqueue_many([Job("x", "default", "send", b"{}", **options)])
