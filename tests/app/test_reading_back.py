"""Results and dead letters are read back: those of known ids, and all that have ended."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace import (
    App,
    ExportedJob,
    FailPermanently,
    InvalidOption,
    JobState,
    Queue,
    Task,
    UsageError,
    Worker,
)
from headrace.testing import running
from tests.support.jobs import ended
from tests.support.nowhere import unreachable_app
from tests.support.until import until

LONG = 100_000


@pytest.fixture
def work(app: App[None]) -> Task[[int], str | None]:
    @app.task(name="work", queue="q", max_attempts=1)
    async def work(number: int) -> str | None:
        if number < 0:
            raise FailPermanently(f"no work {number}")
        return "." * LONG if number == LONG else None

    return work


async def all_of(queue: Queue, state: str, *, after: str = "") -> list[ExportedJob]:
    return [job async for job in queue.export(state, after=after)]


async def exported(queue: Queue, state: str, count: int) -> list[ExportedJob]:
    """Return so many exported jobs: what has just ended comes a millisecond later."""

    async def look() -> list[ExportedJob] | None:
        jobs = await all_of(queue, state)
        return jobs if len(jobs) >= count else None

    jobs = await until(look, within=30)
    assert jobs is not None
    return jobs


async def test_outcomes_tell_how_thousands_of_jobs_stand(
    app: App[None], work: Task[[int], str | None]
) -> None:
    handles = await app.enqueue_many(work.job(n) for n in range(1200))
    ids = [handle.id for handle in handles]
    found = await app.queue("q").outcomes(*ids, "unknown", ids[0])
    assert [outcome.id for outcome in found] == [*ids, "unknown", ids[0]]
    assert {outcome.state for outcome in found} == {JobState.QUEUED, None}
    assert await app.queue("q").outcomes() == []


async def test_an_outcome_has_the_result_or_why_there_is_none(
    app: App[None], work: Task[[int], str | None]
) -> None:
    numbers = {"none": 1, "long": LONG, "failed": -1}
    async with running(Worker(app)):
        for job_id, number in numbers.items():
            await ended(await work.options(id=job_id).enqueue(number))
        await ended(await work.options(id="gone", result_ttl=0).enqueue(1))
    none, long, failed, gone = await app.queue("q").outcomes(*numbers, "gone")
    assert (none.state, none.has_result, none.result) == ("completed", True, None)
    assert (long.has_result, long.result) == (True, "." * LONG)
    assert (gone.state, gone.has_result, gone.result) == ("completed", False, None)
    assert (failed.state, failed.reason, failed.has_result) == ("failed", "permanent", False)
    assert failed.error is not None
    assert failed.error.message == "no work -1"
    assert json.loads(json.dumps(failed.to_dict()))["error"]["start"] == 1


async def test_an_exported_job_has_all_that_is_kept(
    app: App[None], work: Task[[int], str | None]
) -> None:
    keys = {"smtp": "mx1", "tenants": None}
    call = work.options(
        id="x",
        headers={"user": "ada"},
        priority=7,
        on_failed="mourn",
        limit_keys=keys,
        fair_key="k",
        slots=2,
    )
    async with running(Worker(app)):
        await ended(await call.enqueue(-1))
    status = await app.job("x", queue="q").status()
    [job] = await exported(app.queue("q"), "failed", 1)
    assert (job.id, job.queue, job.task, job.state) == ("x", "q", "work", JobState.FAILED)
    assert (job.args, job.options, job.priority) == ({"number": -1}, status.options, 7)
    assert job.options["headers"] == {"user": "ada"}
    assert (job.on_failed, job.limits) == ("mourn", {"smtp": "mx1", "tenants": ""})
    assert (job.fair_key, job.slots) == ("k", 2)
    assert (job.ended_at, job.run_s, job.errors) == (
        status.changed_at,
        status.run_s,
        status.errors,
    )
    assert (job.reason, job.has_result, job.result) == ("permanent", False, None)
    document = json.loads(json.dumps(job.to_dict()))
    assert datetime.fromisoformat(document["ended_at"]).tzinfo == UTC
    assert document["cursor"] == job.cursor


async def test_an_export_of_many_pages_has_each_job_once_in_the_order_of_their_ends(
    app: App[None], work: Task[[int], str | None]
) -> None:
    handles = await app.enqueue_many(work.job(n) for n in range(450))
    async with running(Worker(app)):
        jobs = await exported(app.queue("q"), "completed", 450)
    assert sorted(job.id for job in jobs) == sorted(handle.id for handle in handles)
    places = [(job.ended_at, job.id) for job in jobs]
    assert places == sorted(places)
    # From any job one goes on behind it.
    assert await all_of(app.queue("q"), "completed", after=jobs[7].cursor) == jobs[8:]
    assert await all_of(app.queue("q"), "completed", after=jobs[-1].cursor) == []


async def test_an_archive_that_reads_while_jobs_end_gets_each_once(
    app: App[None], work: Task[[int], str | None]
) -> None:
    read: list[str] = []
    cursor = ""

    async def archive() -> list[str]:
        nonlocal cursor
        async for job in app.queue("q").export("completed", after=cursor):
            read.append(job.id)
            cursor = job.cursor
        return read

    ids: set[str] = set()
    async with running(Worker(app, concurrency=20)):
        for _ in range(20):
            handles = await app.enqueue_many(work.job(n) for n in range(50))
            ids.update(handle.id for handle in handles)
            await archive()

        async def has_all() -> bool:
            return len(await archive()) >= len(ids)

        await until(has_all, within=30)
    assert (len(read), set(read)) == (len(ids), ids)


@pytest.mark.parametrize("after", ["x", "failed:q:1", "completed:q:1:x", "failed:r:1:x", 7])
async def test_a_cursor_of_another_export_is_refused_before_anything_is_sent(after: Any) -> None:
    async with unreachable_app() as app:
        with pytest.raises(InvalidOption, match="is not one of an export of failed jobs"):
            await all_of(app.queue("q"), "failed", after=after)


@pytest.mark.parametrize("state", ["queued", "active", "done", None])
async def test_a_state_that_is_no_end_is_refused_before_anything_is_sent(state: Any) -> None:
    async with unreachable_app() as app:
        with pytest.raises(UsageError, match="use one of"):
            await all_of(app.queue("q"), state)


async def test_an_id_that_can_be_none_is_refused_before_anything_is_sent() -> None:
    async with unreachable_app() as app:
        with pytest.raises(InvalidOption, match="job id"):
            await app.queue("q").outcomes("a", "")
