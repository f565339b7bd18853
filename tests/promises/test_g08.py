"""G8: the outcome and all that hangs on it are one step, and to repeat it changes nothing."""

from __future__ import annotations

import asyncio

from headrace import App, JobState
from headrace.app import clients_of
from headrace.job import ErrorInfo, FailReason
from headrace.outcome import Completed, Failed
from headrace.storage.values import CallId, Settlement
from tests.support.silent import claim_and_die


async def test_a_repeated_settle_answers_the_same_and_counts_once(app: App[None]) -> None:
    handles = [await app.enqueue("task", queue="default") for _ in range(3)]
    jobs = await claim_and_die(app, lease=60)
    owner = jobs[0].claim.nonce.partition("/")[0]
    outcomes = [Settlement(job.id, job.claim, 1, Completed(b"1", 60_000, 60_000)) for job in jobs]
    storage = clients_of(app).current().storage
    for _ in range(3):
        assert await storage.settle("default", outcomes, call=CallId(owner, 1)) == [True] * 3
    stats = await app.queue("default").stats()
    assert (stats.last_minute.completed, stats.history, stats.active) == (3, 3, 0)
    assert [(await handle.status()).state for handle in handles] == [JobState.COMPLETED] * 3


async def test_the_first_outcome_wins(app: App[None]) -> None:
    handle = await app.enqueue("task", queue="default")
    (job,) = await claim_and_die(app, lease=60)
    owner = job.claim.nonce.partition("/")[0]
    storage = clients_of(app).current().storage
    done = Settlement(job.id, job.claim, 1, Completed(b"1", 60_000, 60_000))
    await storage.settle("default", [done], call=CallId(owner, 1))
    error = Failed(FailReason.PERMANENT, ErrorInfo("ValueError", "no"))
    failed = Settlement(job.id, job.claim, 1, error)
    await storage.settle("default", [failed], call=CallId(owner, 2))
    record = await handle.status()
    assert (record.state, record.failures, record.errors) == (JobState.COMPLETED, 0, ())
    assert (await app.queue("default").stats()).dead == 0


async def test_result_record_and_counts_are_seen_together(app: App[None]) -> None:
    handle = await app.enqueue("task", queue="default")
    (job,) = await claim_and_die(app, lease=60)
    owner = job.claim.nonce.partition("/")[0]
    waiting = asyncio.create_task(handle.result())
    done = Settlement(job.id, job.claim, 1, Completed(b"1", 60_000, 60_000))
    await clients_of(app).current().storage.settle("default", [done], call=CallId(owner, 1))
    assert await waiting == 1
    record, stats = await handle.status(), await app.queue("default").stats()
    assert (record.state, record.result) == (JobState.COMPLETED, 1)
    assert (stats.last_minute.completed, stats.active) == (1, 0)
