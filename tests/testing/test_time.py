"""The clock that a test moves: delays, retries, expiry, retention and leases follow it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace import (
    FailReason,
    InvalidOption,
    JobNotFound,
    JobState,
    ResultExpired,
    UsageError,
    Worker,
)
from headrace.events import AttemptEnded, WorkerReaped
from headrace.testing import EventLog, Kit, ManualClock, running
from tests.apps import shop_app
from tests.apps.shop_app import app, bill, hold, send


async def test_a_delayed_job_waits_for_its_time_to_the_millisecond(kit: Kit) -> None:
    await bill.options(delay=60).enqueue(1)
    await kit.advance(timedelta(seconds=59, milliseconds=999))
    assert await kit.run_until_idle() == []
    await kit.advance(0.001)
    assert len(await kit.run_until_idle()) == 1


async def test_an_instant_is_best_counted_from_the_time_of_the_kit() -> None:
    clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    async with Kit(app, clock=clock) as kit:
        await bill.options(run_at=kit.now + timedelta(days=1)).enqueue(1)
        assert await kit.run_until_idle() == []
        await kit.advance(timedelta(days=1))
        assert len(await kit.run_until_idle()) == 1
        assert kit.now == datetime(2030, 1, 2, tzinfo=UTC)


async def test_a_ticking_clock_is_not_behind_the_real_one() -> None:
    async with Kit(app, clock=ManualClock(ticking=True)) as kit:
        await bill.options(run_at=datetime.now(UTC)).enqueue(1)
        assert len(await kit.run_until_idle()) == 1
        await kit.advance(3600)
        assert kit.now >= datetime.now(UTC) + timedelta(minutes=59)


async def test_retries_with_backoff_play_out_at_once(kit: Kit) -> None:
    job = await send.enqueue("x", tries=2)
    begin = kit.now
    ran = await kit.run_until_idle(advance=True)
    assert [attempt.outcome for attempt in ran] == ["retrying", "retrying", "completed"]
    assert [attempt.retry_in for attempt in ran] == [20, 40, 0]
    assert kit.now - begin == timedelta(seconds=60)
    assert (await job.status()).failures == 2


async def test_all_that_is_delayed_runs_in_the_order_of_its_time(kit: Kit) -> None:
    for hours in (3, 1, 2):
        await bill.options(delay=timedelta(hours=hours)).enqueue(hours)
    ran = await kit.run_until_idle(advance=True)
    assert [attempt.result for attempt in ran] == ["bill 1", "bill 2", "bill 3"]


async def test_an_expired_job_fails_without_a_run(kit: Kit) -> None:
    job = await bill.options(expires=60).enqueue(1)
    await kit.advance(60)
    assert await kit.run_until_idle() == []
    record = await job.status()
    assert (record.state, record.reason) == (JobState.FAILED, FailReason.EXPIRED)


async def test_results_and_records_end_by_the_clock(kit: Kit) -> None:
    job = await bill.options(result_ttl=60, keep=120).enqueue(1)
    await kit.run_until_idle()
    await kit.advance(59)
    assert await job.result() == "bill 1"
    await kit.advance(1)
    with pytest.raises(ResultExpired):
        await job.result()
    await kit.advance(60)
    with pytest.raises(JobNotFound):
        await job.status()


async def test_an_id_is_free_again_when_its_record_has_ended(kit: Kit) -> None:
    """G6."""
    call = bill.options(id="march", result_ttl=60, keep=60)
    assert (await call.enqueue(1)).outcome == "queued"
    assert (await call.enqueue(1)).outcome == "duplicate"
    await kit.run_until_idle()
    assert (await call.enqueue(1)).outcome == "completed"
    await kit.advance(61)
    assert (await call.enqueue(1)).outcome == "queued"
    assert len(kit.enqueued(bill)) == 2


async def test_the_clock_goes_one_way(kit: Kit) -> None:
    now = kit.now
    with pytest.raises(InvalidOption):
        await kit.advance(-1)
    with pytest.raises(InvalidOption):
        kit.clock.advance_ms(-1)
    await kit.advance(0)
    assert kit.now == now


@pytest.mark.parametrize("lease", [15.0, 0.5, 1.234])
async def test_the_job_of_a_dead_worker_comes_back_after_its_lease(kit: Kit, lease: float) -> None:
    """G3, G9."""
    job = await bill.enqueue(1)
    [crashed] = await kit.crash("orders", lease=lease)
    assert crashed.id == job.id
    await kit.advance(lease - 0.001)
    assert (await job.status()).state is JobState.ACTIVE
    assert await kit.run_until_idle() == []
    await kit.advance(0.001)
    record = await job.status()
    assert (record.state, record.stalls, record.failures) == (JobState.QUEUED, 1, 0)
    assert len(kit.events.of(WorkerReaped)) == 1
    [attempt] = await kit.run_until_idle()
    assert (attempt.start, attempt.outcome) == (2, "completed")


async def test_a_lease_counts_over_several_moves(kit: Kit) -> None:
    job = await bill.enqueue(1)
    await kit.crash("orders")
    for _ in range(14):
        await kit.advance(1)
        assert (await job.status()).state is JobState.ACTIVE
    await kit.advance(1)
    assert (await job.status()).state is JobState.QUEUED


async def test_a_job_that_kills_its_workers_becomes_a_dead_letter(kit: Kit) -> None:
    job = await bill.options(max_stalls=2).enqueue(1)
    for _ in range(2):
        await kit.crash("orders")
        await kit.advance(15)
    record = await job.status()
    assert (record.state, record.reason) == (JobState.FAILED, FailReason.STALLED)


async def test_a_run_that_may_advance_finds_dead_workers_too(kit: Kit) -> None:
    await bill.enqueue(1)
    await bill.options(delay=600).enqueue(2)
    await kit.crash("orders")
    begin = kit.now
    ran = await kit.run_until_idle(advance=True)
    assert [attempt.result for attempt in ran] == ["bill 1", "bill 2"]
    assert kit.now - begin == timedelta(seconds=600)


async def test_a_crash_needs_a_job(kit: Kit) -> None:
    with pytest.raises(UsageError, match="no job of queue 'orders' is ready"):
        await kit.crash("orders")
    await bill.enqueue(1)
    with pytest.raises(InvalidOption, match="lease"):
        await kit.crash("orders", lease=0.1)


async def test_a_long_way_takes_few_steps(kit: Kit) -> None:
    await bill.enqueue(1)
    await kit.crash("orders")
    await kit.advance(timedelta(days=300))
    assert len(await kit.run_until_idle()) == 1


async def test_a_real_worker_follows_the_clock_and_is_not_taken_for_dead(kit: Kit) -> None:
    log = EventLog()
    async with running(Worker(app, ["orders", "slow"], emit=log)):
        held = await hold.enqueue("a")
        await shop_app.doors[-1].reached.wait()
        job = await bill.options(delay=3600).enqueue(1)
        await kit.advance(3600)
        finished = await log.wait(AttemptEnded)
        assert finished[0].job_id == job.id
        shop_app.doors[-1].opened.set()
        await log.wait(AttemptEnded, 2)
    assert [event.outcome for event in log.finished(held.id)] == ["completed"]
    assert (await held.status()).stalls == 0
