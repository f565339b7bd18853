"""One job an id: a call may update the one that is there, and never runs beside it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from headrace import (
    App,
    CancelOutcome,
    EnqueueOutcome,
    InvalidOption,
    JobCancelled,
    JobState,
    Retry,
    StorageUnavailable,
    SyncApp,
    Task,
    UsageError,
    Worker,
)
from headrace.testing import running
from headrace.update import Update, UpdateRunAt
from tests.support.jobs import ended
from tests.support.nowhere import unreachable_app
from tests.support.site import Site
from tests.support.until import until


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def note(app: App[None], site: Site) -> Task[[object], object]:
    """A task that ends once it may, and notes what it was called with."""

    @app.task(name="note", retry=Retry(min=60, max=60))
    async def note(value: object) -> object:
        return await site.run(value)

    return note


@pytest.fixture
def update(note: Task[[object], object]) -> Any:
    """The task as a call says it that updates ``x``."""

    def options(**said: Any) -> Any:
        return note.options(id="x", on_conflict="update", **said)

    return options


async def test_a_waiting_job_is_changed_to_what_the_last_call_asked_for(
    app: App[None], update: Any, site: Site
) -> None:
    site.may_end.set()
    first = await update(delay=60).enqueue("first")
    last = await update(priority=9, timeout=5, max_attempts=1).enqueue("last")
    assert (first.outcome, last.outcome) == (EnqueueOutcome.SCHEDULED, EnqueueOutcome.UPDATED)
    status = await first.status()
    assert (status.state, status.priority, status.args) == (JobState.QUEUED, 9, {"value": "last"})
    assert status.options == {"timeout_ms": 5_000, "max_attempts": 1}
    async with running(Worker(app)):
        assert await first.result(timeout=10) == "last"
    assert site.runs == ["last"]


async def test_parts_that_are_not_to_be_changed_stay(update: Any) -> None:
    job = await update(delay=60, timeout=1, max_attempts=1, priority=1).enqueue("first")
    before = await job.status()
    said: dict[str, Any] = {"timeout": 2, "max_attempts": 2, "priority": 2, "delay": 120}
    await update(**said, update_data=False, update_run_at=False).enqueue("second")
    status = await job.status()
    assert (status.args, status.priority, status.due_at) == ({"value": "first"}, 1, before.due_at)
    assert status.options == {"timeout_ms": 1_000, "max_attempts": 2}
    await update(**said, update_retry=False, update_run_at="if_earlier").enqueue("third")
    status = await job.status()
    assert (status.args, status.priority, status.due_at) == ({"value": "third"}, 2, before.due_at)
    assert status.options == {"timeout_ms": 2_000, "max_attempts": 2}
    await update(**said, update_data=False, update_run_at="if_later").enqueue("fourth")
    status = await job.status()
    assert status.due_at is not None
    assert before.due_at is not None
    assert status.due_at > before.due_at


async def test_what_is_asked_for_while_a_job_runs_runs_after_it(
    app: App[None], update: Any, site: Site
) -> None:
    async with running(Worker(app)):
        first = await update().enqueue(1)
        await until(lambda: site.runs == [1])
        await update().enqueue(2)
        last = await update().enqueue(3)
        assert last.outcome is EnqueueOutcome.UPDATED
        assert (await first.status()).has_next
        assert (await app.queue("default").stats()).blocked == 1
        [row] = [row async for row in app.queue("default").jobs("blocked")]
        assert (row.id, row.state) == ("x", JobState.BLOCKED)
        site.may_end.set()
        assert await last.result(timeout=10) == 3
    assert site.runs == [1, 3]
    assert not (await first.status()).has_next


async def test_each_caller_of_one_loop_gets_the_result_of_its_own_job(
    app: App[None], update: Any, site: Site
) -> None:
    async with running(Worker(app)), asyncio.TaskGroup() as group:
        first = group.create_task(update().enqueue_and_wait("first"))
        await until(lambda: site.runs == ["first"])
        second = group.create_task(update().enqueue_and_wait("second"))
        await until(lambda: is_blocked(app))
        third = await app.job("x").status()
        assert third.state is JobState.ACTIVE
        site.may_end.set()
        assert await asyncio.wait_for(first, 10) == "first"
        assert await asyncio.wait_for(second, 10) == "second"


async def is_blocked(app: App[None]) -> bool:
    return (await app.queue("default").stats()).blocked == 1


async def test_a_job_that_fails_is_retried_as_what_was_asked_meanwhile(
    app: App[None], update: Any, site: Site
) -> None:
    async with running(Worker(app)):
        job = await update().enqueue("bad")
        await until(lambda: site.runs == ["bad"])
        await update().enqueue("good")
        site.may_end.set()
        assert await job.result(timeout=10) == "good"
    assert site.runs == ["bad", "good"]
    assert (await job.status()).failures == 1


async def raises_cancelled(call: Any, value: object) -> None:
    """Enqueue and wait, and see that the job is cancelled."""
    with pytest.raises(JobCancelled):
        await call.enqueue_and_wait(value)


async def test_what_follows_is_cancelled_alone_where_that_is_asked(
    app: App[None], update: Any, site: Site
) -> None:
    async with running(Worker(app)), asyncio.TaskGroup() as group:
        first = group.create_task(update().enqueue_and_wait(1))
        await until(lambda: site.runs == [1])
        job = app.job("x")
        assert await job.cancel(only_next=True) is CancelOutcome.NOT_FOUND
        second = group.create_task(raises_cancelled(update(), 2))
        await until(lambda: is_blocked(app))
        assert await job.cancel(only_next=True) is CancelOutcome.CANCELLED
        await asyncio.wait_for(second, 10)
        assert not first.done()
        site.may_end.set()
        assert await asyncio.wait_for(first, 10) == 1
    assert site.runs == [1]


async def test_a_cancel_of_the_id_ends_what_follows_too(
    app: App[None], update: Any, site: Site
) -> None:
    async with running(Worker(app)), asyncio.TaskGroup() as group:
        job = await update().enqueue(1)
        await until(lambda: site.runs == [1])
        waiting = group.create_task(raises_cancelled(update(), 2))
        await until(lambda: is_blocked(app))
        assert await job.cancel() is CancelOutcome.REQUESTED
        await asyncio.wait_for(waiting, 10)
        await ended(job)
    assert (await job.status()).state is JobState.CANCELLED
    assert site.runs == [1]


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
async def test_an_ended_job_makes_room(app: App[None], update: Any, site: Site, state: str) -> None:
    site.may_end.set()
    job = await update(max_attempts=1).enqueue("bad" if state == "failed" else "first")
    if state == "cancelled":
        await job.cancel()
    async with running(Worker(app)):
        await ended(job)
        assert (await job.status()).state == state
        again = await update().enqueue("again")
        assert again.outcome is EnqueueOutcome.QUEUED
        assert await again.result(timeout=10) == "again"


async def test_many_at_once_may_update_too(app: App[None], update: Any) -> None:
    handles = await app.enqueue_many(update(delay=60).job(value) for value in range(3))
    assert [handle.outcome for handle in handles] == [
        EnqueueOutcome.SCHEDULED,
        EnqueueOutcome.UPDATED,
        EnqueueOutcome.UPDATED,
    ]
    assert (await handles[0].status()).args == {"value": 2}


def test_a_program_without_an_event_loop_updates_too(storage_url: str) -> None:
    with SyncApp[None](storage_url) as app:

        @app.task(name="note")
        def note(value: object) -> object:
            return value

        call = note.options(id="x", on_conflict="update", update_run_at="if_later", delay=60)
        assert call.enqueue(1).outcome is EnqueueOutcome.SCHEDULED
        job = call.enqueue(2)
        assert (job.outcome, job.status().args) == (EnqueueOutcome.UPDATED, {"value": 2})
        assert job.cancel(only_next=True) is CancelOutcome.NOT_FOUND


async def test_a_job_that_is_made_by_hand_may_update(app: App[None], update: Any) -> None:
    made = update(delay=60).job(1)
    await app.enqueue_many([made])
    [copy] = await app.enqueue_many([msgspec.structs.replace(made, payload=b'{"value":2}')])
    assert copy.outcome is EnqueueOutcome.UPDATED
    assert (await copy.status()).args == {"value": 2}


async def test_what_is_called_before_an_enqueue_leaves_the_update(
    app: App[None], update: Any
) -> None:
    app.before_enqueue(lambda draft: draft.headers.update(by="ada"))
    await update(delay=60).enqueue(1)
    job = await update(delay=60).enqueue(2)
    assert job.outcome is EnqueueOutcome.UPDATED
    assert (await job.status()).options == {"headers": {"by": "ada"}}


# Bad input, before anything is sent


@pytest.fixture
def nowhere() -> App[None]:
    return unreachable_app()


@pytest.fixture
def take(nowhere: App[None]) -> Task[[int], None]:
    @nowhere.task(name="take")
    async def take(value: int) -> None: ...

    return take


async def test_a_good_update_would_be_sent(take: Task[[int], None]) -> None:
    with pytest.raises(StorageUnavailable):
        await take.options(id="x", on_conflict="update", reset_counts=True).enqueue(1)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"on_conflict": "update"}, "without an id"),
    ({"on_conflict": "replace", "id": "x"}, "on_conflict='replace' is not valid"),
    ({"on_conflict": True, "id": "x"}, "on_conflict=True is not valid"),
    ({"update_data": True, "id": "x"}, "update_data is said without an update"),
    ({"update_run_at": False, "id": "x"}, "update_run_at is said without an update"),
    ({"update_retry": False, "id": "x", "on_conflict": "skip"}, "update_retry is said without"),
    ({"reset_counts": False, "id": "x"}, "reset_counts is said without an update"),
    ({"id": "x", "on_conflict": "update", "update_data": 1}, "update_data=1 is not valid"),
    ({"id": "x", "on_conflict": "update", "update_run_at": "later"}, "update_run_at='later'"),
    ({"id": "x", "on_conflict": "update", "update_run_at": 1}, "update_run_at=1 is not valid"),
    ({"id": "x", "on_conflict": "update", "update_retry": "no"}, "update_retry='no'"),
    ({"id": "x", "on_conflict": "update", "reset_counts": 0}, "reset_counts=0 is not valid"),
    ({"id": "x", "on_conflict": "update", "delay": -1}, "delay=-1"),
]


@pytest.mark.parametrize(("said", "words"), BAD, ids=[words for _, words in BAD])
async def test_an_update_that_makes_no_sense_is_refused(
    take: Task[[int], None], said: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidOption) as caught:
        take.options(**said)
    assert words in str(caught.value)


async def test_records_can_not_both_stand_and_be_updated(
    nowhere: App[None], take: Task[[int], None]
) -> None:
    job = take.options(id="x", on_conflict="update").job(1)
    with pytest.raises(InvalidOption, match="replace_ended=False lets any record"):
        await nowhere.enqueue_many([job], replace_ended=False)


async def test_a_bulk_write_takes_no_updates(app: App[None], note: Task[[object], object]) -> None:
    job = note.options(id="x", on_conflict="update").job(1)
    with pytest.raises(UsageError, match="only brings new jobs in"):
        async with app.bulk("w1") as bulk:
            await bulk.add(job)


async def test_an_update_of_another_type_is_refused(
    nowhere: App[None], take: Task[[int], None]
) -> None:
    made = take.options(id="x", on_conflict="update").job(1)
    changed: Any = {"update": "1110"}
    with pytest.raises(InvalidOption, match="update='1110' is not valid"):
        await nowhere.enqueue_many([msgspec.structs.replace(made, **changed)])


def test_a_call_says_what_its_options_come_to(take: Task[[int], None]) -> None:
    at = datetime.now(UTC)
    made: Any = take.options(
        id="x", on_conflict="update", update_run_at="if_later", update_retry=False, run_at=at
    ).job(1)
    assert made.update == Update(run_at=UpdateRunAt.IF_LATER, retry=False)
    assert not made.is_plain
    plain: Any = take.options(id="x", on_conflict="skip").job(1)
    assert plain.update is None
