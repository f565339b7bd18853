"""Code that waits for jobs: the kit brings them to their end, and nothing hangs."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from headrace import JobCancelled, JobFailed, JobNotFound, JobState, WaitTimeout
from headrace.app import sender_of
from headrace.testing import Kit
from tests.apps import shop_app
from tests.apps.shop_app import app, bill, forget, hang, hold, quote, send, tick
from tests.support.until import until


async def test_a_result_is_there_for_who_waits(kit: Kit) -> None:
    job = await bill.enqueue(7)
    assert await job.result() == "bill 7"
    assert await app.job(job.id, queue="orders").result() == "bill 7"


async def test_a_request_has_its_response(kit: Kit) -> None:
    assert await bill.enqueue_and_wait(7) == "bill 7"
    kit.assert_enqueued(bill.job(7))


async def test_a_request_for_a_job_that_is_done_has_its_result(kit: Kit) -> None:
    call = bill.options(id="march")
    assert await call.enqueue_and_wait(7) == "bill 7"
    assert await call.enqueue_and_wait(8) == "bill 7"
    assert shop_app.order == ["bill"]


async def test_time_passes_for_who_waits_as_long_as_it_takes(kit: Kit) -> None:
    begin = kit.now
    job = await send.options(delay=3600).enqueue("x", tries=1)
    assert await job.result() == "plain to x"
    assert kit.now - begin == timedelta(seconds=3620)


async def test_a_time_out_counts_by_the_clock_of_the_kit(kit: Kit) -> None:
    job = await bill.options(delay=3600).enqueue(1)
    begin = kit.now
    with pytest.raises(WaitTimeout, match="within 600 s"):
        await job.result(timeout=600)
    assert kit.now - begin == timedelta(seconds=600)
    with pytest.raises(WaitTimeout):
        await job.result(timeout=0)
    assert (await job.status()).state is JobState.SCHEDULED


async def test_a_time_out_counts_in_real_time_while_a_handler_runs(kit: Kit) -> None:
    job = await hold.enqueue("a")
    with pytest.raises(WaitTimeout):
        await job.result(timeout=0.3)
    assert (await job.status()).state is JobState.QUEUED, "it was handed back"


async def test_a_failure_is_raised_when_its_retries_are_over(kit: Kit) -> None:
    with pytest.raises(JobFailed, match="no answer for x") as caught:
        await send.enqueue_and_wait("x", tries=9)
    assert caught.value.reason == "exhausted"
    assert shop_app.order == ["send"] * 3


async def test_a_job_that_timed_out_has_failed(kit: Kit) -> None:
    """G12."""
    with pytest.raises(JobFailed, match="TimeoutError"):
        await hang.enqueue_and_wait()


async def test_a_result_that_is_not_kept_reaches_who_waited(kit: Kit) -> None:
    job = await forget.enqueue(5)
    assert await job.result() == 5
    with pytest.raises(JobNotFound):
        await job.result()
    assert await sender_of(app).submit_and_wait(forget.job(6)) == 6


async def test_a_cancelled_job_raises(kit: Kit) -> None:
    """G11."""
    job = await bill.enqueue(1)
    await job.cancel()
    with pytest.raises(JobCancelled):
        await job.result()
    with pytest.raises(JobNotFound):
        await app.job("nobody").result()


async def test_a_handler_may_wait_for_another_job(kit: Kit) -> None:
    assert await quote.enqueue_and_wait(3) == "quote for bill 3"
    [pool] = shop_app.pools
    assert pool.used == ["bill 3"]


async def test_a_wait_that_can_not_end_says_so(kit: Kit) -> None:
    job = await bill.enqueue(1)
    await app.queue("orders").pause()
    with pytest.raises(WaitTimeout, match="is queued and nothing in this kit will ever run it"):
        await job.result()
    with pytest.raises(WaitTimeout, match="within 60 s"):
        await job.result(timeout=60)
    foreign = await app.enqueue("elsewhere.task", queue="foreign")
    with pytest.raises(WaitTimeout, match="another program's"):
        await foreign.result()


async def test_who_waits_for_a_job_that_another_run_has_waits_for_that(kit: Kit) -> None:
    job = await hold.enqueue("a")
    results: list[str] = []

    async def wait() -> None:
        results.append(await job.result())

    async with anyio.create_task_group() as group:
        group.start_soon(kit.run_until_idle)
        await shop_app.doors[-1].reached.wait()
        group.start_soon(wait)
        await until(lambda: kit.events.events)
        shop_app.doors[-1].opened.set()
    assert results == ["a"]
    assert shop_app.order == ["hold", "begin a", "end a"]


async def test_many_may_wait_at_once(kit: Kit) -> None:
    results: list[str] = []

    async def ask(number: int) -> None:
        results.append(await bill.enqueue_and_wait(number))

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(ask, number)
    assert sorted(results) == sorted(f"bill {number}" for number in range(20))
    assert shop_app.order == ["bill"] * 20


async def test_who_waits_for_the_job_of_a_dead_worker_sees_it_recovered(kit: Kit) -> None:
    """G3."""
    job = await bill.enqueue(1)
    await kit.crash("orders")
    begin = kit.now
    assert await job.result() == "bill 1"
    assert kit.now - begin == timedelta(seconds=15)


async def test_a_job_that_never_rests_keeps_no_wait_open(kit: Kit) -> None:
    await tick.enqueue()
    await app.queue("orders").pause()
    assert await bill.options(queue="other", delay=300).enqueue_and_wait(3) == "bill 3"
    for job in [await bill.enqueue(1), await bill.options(delay=300).enqueue(2)]:
        with pytest.raises(WaitTimeout, match="nothing in this kit"):
            await job.result()


async def test_a_job_that_expires_while_somebody_waits_raises(kit: Kit) -> None:
    """G11."""
    job = await bill.options(delay=60, expires=60).enqueue(1)
    with pytest.raises(JobFailed, match="expired"):
        await job.result()
    assert shop_app.order == []


async def test_time_passes_for_who_waits_for_a_job_that_a_rate_holds_up(kit: Kit) -> None:
    await app.queue("orders").set_limit("till", rate="1/min", burst=1)
    call = bill.options(limit_keys={"till": None})
    begin = kit.now
    jobs = [await call.enqueue(n) for n in (1, 2, 3)]
    with pytest.raises(WaitTimeout, match="within 90 s"):
        await jobs[2].result(timeout=90)
    assert kit.now - begin == timedelta(seconds=90)
    assert await jobs[1].result(timeout=1) == "bill 2"
    assert await jobs[2].result() == "bill 3"
    assert kit.now - begin == timedelta(seconds=120)
