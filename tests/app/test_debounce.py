"""Debounce: of many calls the last one runs, once, a while after it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import App, EnqueueOutcome, Job, JobState, Retry, SyncApp, Task, UsageError, Worker
from headrace.testing import Kit, running
from tests.support.jobs import reached
from tests.support.site import Site
from tests.support.until import patience, until

CALLS = 20
WINDOW = 0.5
"""Of a burst: no two calls of it are further apart, also on a busy machine."""


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def index(app: App[None], site: Site) -> Task[[object], object]:
    """A debounced task that notes what it was called with, and ends once it may."""

    @app.task(name="index", debounce=0.02, retry=Retry(min=60, max=60), max_attempts=2)
    async def index(value: object) -> object:
        return await site.run(value)

    return index


async def test_of_a_burst_exactly_the_last_call_runs_once(
    app: App[None], index: Task[[object], object], site: Site
) -> None:
    site.may_end.set()
    async with running(Worker(app)):
        call = index.options(debounce=patience(WINDOW))
        jobs = [await call.enqueue(number) for number in range(CALLS)]
        assert [job.outcome for job in jobs] == [EnqueueOutcome.SCHEDULED] + [
            EnqueueOutcome.UPDATED
        ] * (CALLS - 1)
        assert len({job.id for job in jobs}) == 1
        assert await jobs[0].result(timeout=patience(15)) == CALLS - 1
        # The next call is a new one, and whatever the first would have left behind would run first.
        assert await index.enqueue_and_wait("next") == "next"
    assert site.runs == [CALLS - 1, "next"]


async def test_of_a_burst_in_one_call_and_of_its_waiters_the_last_counts(
    app: App[None], index: Task[[object], object], site: Site
) -> None:
    site.may_end.set()
    async with running(Worker(app)):
        jobs = await app.enqueue_many(index.job(number) for number in range(CALLS))
        assert await jobs[0].result(timeout=patience(15)) == CALLS - 1
        call = index.options(debounce=patience(WINDOW))
        waits = [call.enqueue_and_wait(number) for number in range(CALLS)]
        found = await asyncio.gather(*waits)
        assert len(set(found)) == 1, "each caller gets the result of the one that ran"
    assert site.runs == [CALLS - 1, found[0]]


async def test_a_call_while_one_is_active_runs_after_it(
    app: App[None], index: Task[[object], object], site: Site
) -> None:
    async with running(Worker(app)):
        first = await index.enqueue("first")
        await until(lambda: site.runs == ["first"], within=patience(10))
        await index.enqueue("second")
        last = await index.enqueue("third")
        assert last.outcome is EnqueueOutcome.UPDATED
        status = await first.status()
        assert (status.state, status.has_next) == (JobState.ACTIVE, True)
        site.may_end.set()
        assert await last.result(timeout=patience(15)) == "third"
    assert site.runs == ["first", "third"]


async def test_it_waits_from_the_last_call_on_and_counts_as_a_new_one(
    app: App[None], index: Task[[object], object], site: Site
) -> None:
    site.may_end.set()
    call = index.options(debounce=60)
    job = await call.enqueue(1)
    before = await job.status()
    first_due = before.due_at
    assert first_due is not None
    assert first_due - before.created_at == timedelta(seconds=60)

    async def is_later() -> bool:
        await call.enqueue(2)
        due_at = (await job.status()).due_at
        assert due_at is not None
        return due_at > first_due

    await until(is_later)
    assert (await job.status()).args == {"value": 2}
    # One that waits to be tried again has all its attempts before it when it is another.
    async with running(Worker(app)):
        await index.enqueue("bad")
        await reached(job, JobState.RETRYING, within=patience(10))
        assert await index.enqueue_and_wait("good") == "good"
        status = await job.status()
    assert (status.state, status.failures, status.errors) == (JobState.COMPLETED, 0, ())


async def test_calls_of_one_id_are_one_and_others_are_not(
    app: App[None], index: Task[[object], object], site: Site
) -> None:
    site.may_end.set()
    async with running(Worker(app)):
        ids = ["7", "8", "7", "8", "7"]
        calls = [index.options(id=id, debounce=patience(WINDOW)) for id in ids]
        jobs = [await call.enqueue(number) for number, call in enumerate(calls)]
        assert [job.id for job in jobs] == ids
        assert [await job.result(timeout=patience(15)) for job in jobs[:2]] == [4, 3]
    assert sorted(map(str, site.runs)) == ["3", "4"]


async def test_a_call_may_run_at_once_and_one_of_any_task_may_be_debounced(
    app: App[None], index: Task[[object], object]
) -> None:
    waiting = await index.enqueue(1)
    one = await index.options(debounce=0).enqueue(2)
    assert (one.outcome, one.id != waiting.id) == (EnqueueOutcome.QUEUED, True)
    # What the task says is set aside by what the call says.
    first = await index.options(throttle=60).enqueue(3)
    again = await index.options(throttle=60).enqueue(4)
    assert (first.outcome, again.id) == (EnqueueOutcome.QUEUED, first.id)

    @app.task
    async def plain(value: int) -> None: ...

    call = plain.options(debounce=timedelta(minutes=1))
    jobs = [await call.enqueue(1), await call.enqueue(2)]
    assert [job.outcome for job in jobs] == ["scheduled", "updated"]
    far = app.task_ref("elsewhere", queue="q").options(debounce=60)
    assert [(await far.enqueue(n=n)).outcome for n in range(2)] == ["scheduled", "updated"]


def test_a_program_without_a_loop_debounces_too(storage_url: str) -> None:
    with SyncApp(App(storage_url, tenant="sync-debounce")) as app:

        @app.task(debounce=60)
        def index(value: int) -> int:
            return value

        jobs = [index.enqueue(number) for number in range(CALLS)]
        assert {job.outcome for job in jobs[1:]} == {EnqueueOutcome.UPDATED}
        assert jobs[0].status().args == {"value": CALLS - 1}
        [more] = app.enqueue_many([index.job(99)])
        assert (more.outcome, more.status().args) == (EnqueueOutcome.UPDATED, {"value": 99})


async def test_a_kit_lets_the_window_pass(site: Site) -> None:
    app = App("memory://")

    @app.task(debounce=30)
    async def index(value: int) -> None:
        site.runs.append(value)

    async with Kit(app) as kit:
        for number in range(3):
            await index.enqueue(number)
            await kit.advance(29)
            await kit.run_until_idle()
        assert site.runs == []
        assert [job.arguments["value"] for job in kit.enqueued()] == [0, 1, 2]
        await kit.advance(1)
        await kit.run_until_idle()
    assert site.runs == [2]


# Mistakes, before anything is sent


@pytest.fixture
def memory() -> App[None]:
    return App("memory://")


@pytest.fixture
def plain(memory: App[None]) -> Task[[], None]:
    @memory.task(name="plain")
    async def plain() -> None: ...

    return plain


BAD: list[tuple[dict[str, Any], str]] = [
    ({"debounce": 0.009}, "debounce=0.009 is out of bounds: use 0.01 seconds to a year"),
    ({"debounce": timedelta(days=367)}, "is out of bounds: use 0.01 seconds to a year"),
    ({"debounce": -1}, "debounce=-1 is out of bounds: use 0.01 seconds to a year, or 0 for none"),
    ({"debounce": "2s"}, "debounce='2s' is not a duration"),
    ({"debounce": True}, "debounce=True is not a duration"),
    ({"debounce": float("nan")}, "debounce=nan is out of bounds"),
    ({"debounce": 2, "throttle": 60}, "debounce=2 and throttle=60: say one of them"),
    ({"debounce": 2, "delay": 1}, "delay=1 makes no sense with debounce=2"),
    ({"debounce": 2, "run_at": datetime(2100, 1, 1, tzinfo=UTC)}, "run_at="),
    ({"debounce": 2, "id": "x", "on_conflict": "update"}, "on_conflict='update' makes no sense"),
    ({"debounce": 2, "id": "x", "on_conflict": "skip"}, "on_conflict='skip' makes no sense"),
    ({"debounce": 2, "update_run_at": False}, "update_run_at=False makes no sense"),
    ({"debounce": 2, "reset_counts": True}, "reset_counts=True makes no sense"),
    ({"debounce": 2, "idempotency_ttl": 60}, "idempotency_ttl=60 makes no sense"),
    ({"debounce": 2, "idempotency_key": "k"}, "idempotency_key='k' makes no sense"),
]


@pytest.mark.parametrize(("said", "words"), BAD, ids=[words for _, words in BAD])
def test_what_makes_no_sense_is_refused(
    plain: Task[[], None], said: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as refused:
        plain.options(**said)
    assert words in str(refused.value)


def test_a_task_is_refused_likewise(memory: App[None]) -> None:
    for said, words in BAD[:7]:
        with pytest.raises(UsageError) as refused:
            memory.task(name="other", **said)(lambda: None)
        assert words in str(refused.value)

    @memory.task(debounce=2)
    async def index() -> None: ...

    with pytest.raises(UsageError, match="delay=1 makes no sense with debounce=2: leave it out"):
        index.options(delay=1)


async def test_a_bulk_write_takes_no_debounced_jobs(app: App[None]) -> None:
    @app.task(debounce=2)
    async def index() -> None: ...

    with pytest.raises(UsageError, match=r"is debounced, .* only brings new jobs in"):
        async with app.bulk("w1") as bulk:
            await bulk.add(index.job())
    with pytest.raises(UsageError, match=r"is debounced, .* replace_ended=False"):
        await app.enqueue_many([index.job()], replace_ended=False)


def test_a_long_name_or_one_of_many_characters_has_an_id(memory: App[None]) -> None:
    for name in ("x" * 256, "é" * 128, "a:b"):
        made: Job[Any] = memory.task_ref(name, queue="q").options(debounce=1).job()
        assert made.id.startswith("debounce:")
        assert len(made.id.encode()) <= 256
