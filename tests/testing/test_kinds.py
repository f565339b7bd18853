"""Handlers in threads and processes, progress and output in a kit."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from headrace import App, JobFailed, JobHandle, JobNotFound, JobState, WaitTimeout, Worker
from headrace.events import JobEventKind
from headrace.job import Claim, ClaimedJob, ErrorInfo
from headrace.outcome import Stalled
from headrace.testing import EventLog, Kit, running
from headrace.testing.attempts import read_attempt
from tests.apps import kinds_app
from tests.apps.kinds_app import Size, app
from tests.support.jobs import reached


@pytest.fixture
async def kinds() -> AsyncIterator[Kit]:
    async with Kit(app) as kit:
        yield kit


async def test_every_kind_of_handler_runs_where_it_may_block(kinds: Kit) -> None:
    await kinds_app.in_loop.enqueue(1)
    await kinds_app.in_thread.enqueue(Size(3, 4))
    await kinds_app.in_process.enqueue(Size(3, 4))
    ran = await kinds.run_until_idle(raise_errors=True)
    assert [attempt.result for attempt in ran] == ["loop", ("thread", 12), Size(4, 3)]


async def test_a_process_task_runs_in_the_process_of_the_test(kinds: Kit) -> None:
    assert await kinds_app.process_id.enqueue_and_wait() == os.getpid()
    assert await kinds.perform(kinds_app.process_id.job()) == os.getpid()


async def test_arguments_of_a_process_task_are_validated_as_in_a_child(kinds: Kit) -> None:
    await app.enqueue("tests.apps.kinds_app.in_process", queue="work", size=Size(1, 2), turn="no")
    [attempt] = await kinds.run_until_idle()
    assert (attempt.outcome, attempt.reason) == ("failed", "undecodable")
    assert isinstance(attempt.error, JobFailed)
    assert attempt.error.error_type == "msgspec.ValidationError"


async def test_an_error_of_a_process_task_is_the_handlers_own(kinds: Kit) -> None:
    await kinds_app.talk.enqueue(5)
    [first] = await kinds.run_until_idle()
    assert (first.outcome, first.retry_in) == ("retrying", 60)
    assert isinstance(first.error, KeyError)
    with pytest.raises(KeyError, match="the line is dead"):
        await kinds.perform(kinds_app.talk.job(5))


async def test_one_attempt_at_a_time_is_one_in_all_lanes(kinds: Kit) -> None:
    for _ in range(3):
        await kinds_app.in_loop.enqueue(1)
        await kinds_app.process_id.enqueue()
    await kinds.run_until_idle()
    kinds_told = [event.kind for event in await kinds.job_events()]
    steps = [kind for kind in kinds_told if kind in (JobEventKind.ACTIVE, JobEventKind.COMPLETED)]
    assert steps == [JobEventKind.ACTIVE, JobEventKind.COMPLETED] * 6


async def test_progress_is_kept_with_the_job_and_told(kinds: Kit) -> None:
    job = await kinds_app.in_loop.enqueue(8)
    await kinds.run_until_idle()
    record = await job.status()
    assert (record.progress, record.progress_text) == (0.5, "half of 8")
    told = [event for event in await kinds.job_events() if event.kind is JobEventKind.PROGRESS]
    assert [event.detail for event in told] == ["0.5 half of 8"]


async def test_a_stream_runs_its_job_through_its_retries(kinds: Kit) -> None:
    job = await kinds_app.talk.enqueue(3)
    pieces = [(piece["start"], piece["number"]) async for piece in job.stream()]
    assert pieces == [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert (await job.status()).state is JobState.COMPLETED


async def test_a_stream_of_no_job_says_so(kinds: Kit) -> None:
    with pytest.raises(JobNotFound):
        [piece async for piece in app.job("nothing", queue="work").stream()]


async def test_a_stream_of_a_job_that_nobody_will_run_says_so(kinds: Kit) -> None:
    job = await kinds_app.in_loop.enqueue(1)
    await app.queue("work").pause()
    with pytest.raises(WaitTimeout, match="paused"):
        [piece async for piece in job.stream()]


async def test_output_is_there_while_the_handler_runs_and_a_cancel_reaches_it(kinds: Kit) -> None:
    """G10."""
    job = await kinds_app.polite.enqueue()
    async with anyio.create_task_group() as group:
        group.start_soon(kinds.run_until_idle)
        stream = job.stream()
        assert await anext(stream) == "begun"
        await job.cancel()
        assert [piece async for piece in stream] == []
    # As from a worker: what it returns when it was asked does not count.
    assert (await job.status()).state is JobState.CANCELLED


async def test_a_process_task_that_takes_too_long_fails_by_its_limit(kinds: Kit) -> None:
    """G12."""
    await kinds_app.dawdle.enqueue()
    [attempt] = await kinds.run_until_idle()
    assert (attempt.outcome, attempt.reason) == ("failed", "exhausted")
    assert isinstance(attempt.error, TimeoutError)


async def test_a_crash_takes_jobs_of_any_lane(kinds: Kit) -> None:
    jobs: list[JobHandle[Any]]
    jobs = [await kinds_app.process_id.enqueue(), await kinds_app.in_loop.enqueue(1)]
    assert len(await kinds.crash("work", jobs=2)) == 2
    await kinds.advance(15)
    assert len(await kinds.run_until_idle()) == 2
    assert [(await job.status()).stalls for job in jobs] == [1, 1]
    await kinds_app.process_id.enqueue()
    assert len(await kinds.crash("work")) == 1


async def test_a_real_worker_in_a_kit_has_real_processes(kinds: Kit) -> None:
    worker = Worker(app, process_slots=1, emit=EventLog())
    async with running(worker):
        job = await kinds_app.process_id.enqueue()
        await reached(job, JobState.COMPLETED, within=15)
    assert await job.result() != os.getpid()


async def test_the_attempt_of_a_process_that_died_has_an_error(kinds: Kit) -> None:
    job = ClaimedJob("x", "work", "t", b"{}", Claim(2, "i/n"), 0, 0, 0, 0, b"")
    died = ErrorInfo("ProcessDied", "the process ended with status 3 while it ran the job")
    attempt = read_attempt(App(), job, Stalled(died), None)
    assert (attempt.outcome, attempt.is_error, attempt.retry_in) == ("stalled", False, 0)
    assert isinstance(attempt.error, JobFailed)
    assert "ended with status 3" in str(attempt.error)
