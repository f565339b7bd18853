"""G10: a cancelled job never starts, or is asked to stop within a beat and ends cancelled."""

from __future__ import annotations

import asyncio

import pytest

from headrace import App, CancelOutcome, JobCancelled, JobNotFound, JobState, Retry, Snooze, Worker
from headrace.testing import EventLog, running
from tests.support.jobs import ended, reached
from tests.support.silent import claim_and_die
from tests.support.until import patience, until

LEASE = 0.9


@pytest.fixture
def runs() -> list[str]:
    return []


async def test_a_waiting_job_never_starts_after_it_was_cancelled(
    app: App[None], runs: list[str]
) -> None:
    @app.task
    async def work(word: str) -> None:
        runs.append(word)

    handles = [await work.options(delay=0.1 * (n % 2)).enqueue(f"{n}") for n in range(20)]
    for handle in handles[:10]:
        assert await handle.cancel() is CancelOutcome.CANCELLED
        assert await handle.cancel() is CancelOutcome.CANCELLED, "to repeat it is safe"
    async with running(Worker(app)):
        for handle in handles[10:]:
            await handle.result()
        for handle in handles[:10]:
            with pytest.raises(JobCancelled):
                await handle.result()
    assert sorted(runs) == sorted(f"{n}" for n in range(10, 20))


async def test_an_active_job_is_asked_to_stop_within_a_beat(app: App[None]) -> None:
    stopped = asyncio.Event()

    @app.task
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    log = EventLog()
    async with running(Worker(app, lease=LEASE, emit=log)):
        handle = await hang.enqueue()
        await reached(handle, JobState.ACTIVE)
        assert await handle.cancel() is CancelOutcome.REQUESTED
        assert await handle.cancel() is CancelOutcome.REQUESTED
        async with asyncio.timeout(LEASE / 3 + 2):
            await stopped.wait()
        with pytest.raises(JobCancelled):
            await handle.result(timeout=patience(10))
        record = await handle.status()
    assert (record.state, record.failures) == (JobState.CANCELLED, 0)
    assert [event.outcome for event in log.finished(handle.id)] == ["cancelled"]


async def test_a_handler_that_finishes_all_the_same_has_completed(app: App[None]) -> None:
    # Whatever is recorded first stands.
    @app.task
    async def finish() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done before it was noticed"
        return ""

    async with running(Worker(app, lease=LEASE)):
        handle = await finish.enqueue()
        await reached(handle, JobState.ACTIVE)
        await handle.cancel()
        assert await handle.result(timeout=patience(10)) == "done before it was noticed"


async def test_an_active_job_that_fails_meanwhile_is_cancelled_and_not_retried(
    app: App[None], runs: list[str]
) -> None:
    go_on = asyncio.Event()

    @app.task(max_attempts=9, retry=Retry(min=0.001, max=0.01))
    async def fail() -> None:
        runs.append("run")
        await go_on.wait()
        raise ValueError("no")

    # Beats are so seldom that the error comes first.
    async with running(Worker(app, lease=60)):
        handle = await fail.enqueue()
        await reached(handle, JobState.ACTIVE)
        assert await handle.cancel() is CancelOutcome.REQUESTED
        go_on.set()
        assert (await ended(handle)).state is JobState.CANCELLED
    assert runs == ["run"]


@pytest.mark.parametrize("delay", [0, 60])
async def test_a_job_that_snoozes_although_it_was_cancelled_does_not_run_again(
    app: App[None], runs: list[str], delay: float
) -> None:
    go_on = asyncio.Event()

    @app.task
    async def poll() -> None:
        runs.append("run")
        await go_on.wait()
        raise Snooze(delay)

    # Beats are so seldom that the outcome comes first.
    async with running(Worker(app, lease=60)):
        handle = await poll.enqueue()
        await reached(handle, JobState.ACTIVE)
        assert await handle.cancel() is CancelOutcome.REQUESTED
        go_on.set()
        assert (await ended(handle)).state is JobState.CANCELLED
    assert runs == ["run"]


async def test_a_snoozed_job_is_cancelled_at_once(app: App[None]) -> None:
    @app.task
    async def poll() -> None:
        raise Snooze(60)

    async with running(Worker(app)):
        handle = await poll.enqueue()
        await reached(handle, JobState.SCHEDULED)
        assert await handle.cancel() is CancelOutcome.CANCELLED
        stats = await app.queue("default").stats()
        assert (stats.scheduled, stats.last_minute.cancelled) == (0, 1)


async def test_a_job_waiting_for_its_retry_is_cancelled_at_once(app: App[None]) -> None:
    @app.task(retry=lambda _errors, _error: 60.0)
    async def fail() -> None:
        raise ValueError("no")

    async with running(Worker(app)):
        handle = await fail.enqueue()
        await reached(handle, JobState.RETRYING)
        assert await handle.cancel() is CancelOutcome.CANCELLED
        stats = await app.queue("default").stats()
        assert (stats.retrying, stats.last_minute.cancelled) == (0, 1)


async def test_a_put_back_of_a_job_that_was_asked_to_stop_ends_it(app: App[None]) -> None:
    @app.task
    async def hang() -> None:
        await asyncio.Event().wait()

    worker = Worker(app, lease=60, shutdown_timeout=0)
    async with running(worker):
        handle = await hang.enqueue()
        await until(lambda: worker.active == 1)
        await handle.cancel()
    assert (await handle.status()).state is JobState.CANCELLED


async def test_a_dead_worker_s_job_that_was_asked_to_stop_is_not_run_again(
    app: App[None], runs: list[str]
) -> None:
    @app.task
    async def work() -> None:
        runs.append("run")

    handle = await work.enqueue()
    await claim_and_die(app)
    assert await handle.cancel() is CancelOutcome.REQUESTED
    async with running(Worker(app, lease=0.5, sweep_interval=0.1)):
        assert (await ended(handle)).state is JobState.CANCELLED
    assert runs == []


async def test_an_unknown_id_leaves_no_trace(app: App[None], runs: list[str]) -> None:
    # python-arq/arq#485: a cancel must not wait for the next job with that id.
    handle = app.job("later")
    assert await handle.cancel() is CancelOutcome.NOT_FOUND
    with pytest.raises(JobNotFound):
        await handle.status()

    @app.task
    async def work() -> None:
        runs.append("run")

    async with running(Worker(app, lease=LEASE)):
        await work.options(id="later").enqueue_and_wait()
    assert runs == ["run"]


async def test_an_ended_job_answers_that_it_has_finished(app: App[None]) -> None:
    @app.task
    async def work() -> None: ...

    async with running(Worker(app)):
        handle = await work.enqueue()
        await handle.result()
        before = await handle.status()
        assert await handle.cancel() is CancelOutcome.FINISHED
        assert await handle.status() == before
