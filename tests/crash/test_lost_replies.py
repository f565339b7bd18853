"""Replies get lost on the way: the call is repeated, and its effect is not."""

from __future__ import annotations

import asyncio

import pytest

from headrace import App, EnqueueOutcome, JobCancelled
from headrace.storage.redis.library import library
from tests.apps.crash_app import QUEUE, echo, producer
from tests.crash.crew import Crew, passed
from tests.support.ledger import check_ledger
from tests.support.proxy import Proxy
from tests.support.until import patience, until


def function(verb: str) -> bytes:
    return library().function(verb).encode()


async def test_a_beat_whose_reply_was_lost_is_repeated_long_before_the_next(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """G10: with its reply was lost that a job is to be stopped."""
    await crew.worker("only", url=proxy.url, lease=60).ready()
    job = await app.enqueue("hold", gate="gate")
    await crew.ledger.started(job.id)
    lost = proxy.drop_next_reply(after=function("beat"))
    await job.cancel()
    await until(lost.is_set)
    # The next beat is due in up to 20 seconds.
    with pytest.raises(JobCancelled):
        await job.result(timeout=patience(8))


@pytest.mark.parametrize("verb", ["register", "claim", "settle", "beat"])
async def test_a_worker_repeats_a_call_whose_reply_was_lost(
    verb: str, crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """G8, fault 5: without a death each handler runs exactly once."""
    handles = await app.enqueue_many(echo.job(n) for n in range(10))
    lost = proxy.drop_next_reply(after=function(verb))
    worker = crew.worker("only", url=proxy.url, sweep_interval=60)
    await until(lost.is_set, within=8)
    ids = [handle.id for handle in handles]
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE)
    assert {(r.starts, r.failures, r.stalls) for r in records.values()} == {(1, 0, 0)}
    await worker.ready()
    assert worker.count("QueueFenced") == 0
    assert await app.tasks["echo"].enqueue_and_wait(3) == 3


async def test_every_second_call_of_a_worker_may_lose_its_reply(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """G8: claims and outcomes lose their replies over and over."""
    handles = await app.enqueue_many(echo.job(n) for n in range(40))
    losses = [proxy.drop_next_reply(after=function(v)) for v in ("claim", "settle") * 4]
    await crew.worker("only", url=proxy.url, concurrency=5, lease=5).ready()
    await until(lambda: all(loss.is_set() for loss in losses), within=10)
    ids = [handle.id for handle in handles]
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE)
    assert {(r.starts, r.failures, r.stalls) for r in records.values()} == {(1, 0, 0)}


async def test_the_sweep_leaves_a_claim_alone_that_is_being_repeated(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """G7: handed back in between, its jobs would run here and elsewhere at once."""
    handles = await app.enqueue_many(echo.job(n) for n in range(5))
    lost = proxy.drop_next_reply(after=function("claim"))
    worker = crew.worker("only", url=proxy.url, lease=15, sweep_interval=0.01)
    async with asyncio.timeout(patience(8)):
        await lost.wait()
    # By the end of this the pauses between repetitions are longer than those between sweeps.
    await proxy.refuse()
    await passed(3)
    await proxy.admit()
    ids = [handle.id for handle in handles]
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE)
    assert {(r.starts, r.failures, r.stalls) for r in records.values()} == {(1, 0, 0)}
    assert worker.count("JobsReconciled") == 0


async def test_an_enqueue_whose_reply_was_lost_stores_one_job(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """G6, fault 6: a repeated call tells that the job was queued, not that it was there."""
    await app.queue(QUEUE).stats()
    async with producer(proxy.url) as cut_off:
        losses = [proxy.drop_next_reply(after=function("enqueue")) for _ in range(3)]
        named = await cut_off.tasks["echo"].options(id="mine").enqueue(1)
        drawn = await cut_off.tasks["echo"].enqueue(2)
        assert all(loss.is_set() for loss in losses)
        assert [named.outcome, drawn.outcome] == [EnqueueOutcome.QUEUED] * 2
    assert (await app.queue(QUEUE).stats()).queued == 2
    await crew.worker("only").ready()
    await check_ledger(app, crew.ledger, ["mine", drawn.id], queue=QUEUE)


async def test_bulk_and_concurrent_enqueues_survive_lost_replies(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """G6: with two calls in flight, and the second's reply lost too."""
    await app.queue(QUEUE).stats()
    async with producer(proxy.url) as cut_off:
        lost = [proxy.drop_next_reply(after=function("enqueue")) for _ in range(4)]
        bulk, single = await asyncio.gather(
            cut_off.enqueue_many(echo.job(n) for n in range(2500)),
            asyncio.gather(*(cut_off.tasks["echo"].enqueue(n) for n in range(200))),
        )
        # Two calls that were in flight together die with the same connection.
        assert sum(loss.is_set() for loss in lost) >= 2
    ids = [handle.id for handle in (*bulk, *single)]
    assert len(set(ids)) == 2700
    assert {handle.outcome for handle in (*bulk, *single)} == {EnqueueOutcome.QUEUED}
    assert (await app.queue(QUEUE).stats()).queued == 2700
    await crew.worker("only", concurrency=200).ready()
    await check_ledger(app, crew.ledger, ids, queue=QUEUE)
