"""G14: SIGTERM ends a worker within its grace, and what it could not finish goes back for free."""

from __future__ import annotations

import time

import pytest

from headrace import App, JobState
from headrace.storage.redis.library import library
from tests.apps.crash_app import QUEUE, hold
from tests.crash.crew import NOISE_S, Crew
from tests.support.ledger import check_ledger
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


async def test_running_jobs_have_the_grace_to_end(crew: Crew, app: App[None]) -> None:
    worker = await crew.worker("only", shutdown_timeout=8).ready()
    job = await app.enqueue("hold", gate="gate")
    await crew.ledger.started(job.id)
    worker.term()
    await until(lambda: worker.count("WorkerStopping") == 1)
    late = await app.enqueue("echo", value=1)
    crew.open("gate")
    assert await job.result(timeout=patience(5)) == "only"
    assert await worker.wait() == 0
    assert (await late.status()).state is JobState.QUEUED
    assert await app.queue(QUEUE).workers() == []


async def test_what_the_grace_did_not_end_goes_back_to_the_head_free_of_charge(
    loop: str, crew: Crew, app: App[None]
) -> None:
    worker = await crew.worker("leaving", loop=loop, concurrency=3, shutdown_timeout=0.3).ready()
    held = [await app.enqueue("hold", gate="gate") for _ in range(3)]
    for job in held:
        await crew.ledger.started(job.id)
    behind = [await app.enqueue("hold", gate="gate") for _ in range(3)]
    term_at = time.monotonic()
    worker.term()
    assert await worker.wait() == 0
    assert time.monotonic() - term_at < patience(0.3 + 5 + NOISE_S)
    assert worker.events("WorkerStopped")[0]["put_back"] == 3
    for job in (*held, *behind):
        record = await job.status()
        assert record.state is JobState.QUEUED
        assert (record.failures, record.stalls) == (0, 0)
    await crew.worker("heir", concurrency=1).ready()
    crew.open("gate")
    await check_ledger(app, crew.ledger, [job.id for job in (*held, *behind)], queue=QUEUE)
    order = [entry.job_id for entry in crew.ledger.starts() if entry.worker == "heir"]
    assert order == [job.id for job in (*held, *behind)]


async def test_a_second_sigterm_ends_the_grace(crew: Crew, app: App[None]) -> None:
    worker = await crew.worker("hurried", shutdown_timeout=60).ready()
    job = await app.enqueue("hold", gate="gate")
    await crew.ledger.started(job.id)
    worker.term()
    await until(lambda: worker.count("WorkerStopping") == 1)
    worker.term()
    assert await worker.wait() == 0
    assert (await job.status()).state is JobState.QUEUED


async def test_workers_that_come_and_go_under_load_charge_nobody(
    crew: Crew, app: App[None]
) -> None:
    """G9: a rolling restart, five times, with handlers on the way all the time."""
    await crew.worker("stays").ready()
    handles = await app.enqueue_many(hold.job("gate") for _ in range(10))
    for number in range(4):
        leaving = await crew.worker(f"leaves-{number}", shutdown_timeout=0.1).ready()
        handles += await app.enqueue_many(hold.job("gate") for _ in range(3))
        leaving.term()
        assert await leaving.wait() == 0
    crew.open("gate")
    ids = [handle.id for handle in handles]
    # A grace that ends before a handler's first step puts its job back as well.
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE, unseen_claims=None)
    assert {(r.failures, r.stalls) for r in records.values()} == {(0, 0)}


@pytest.mark.parametrize("fault", ["kill", "pause"])
async def test_a_worker_ends_in_time_while_the_storage_is_away(
    fault: str, own_server: RedisServer, own_crew: Crew, own_app: App[None]
) -> None:
    """BC-74: gone and refusing, or there and silent."""
    worker = await own_crew.worker("only", shutdown_timeout=0.5, lease=30).ready()
    job = await own_app.enqueue("hold", gate="gate")
    await own_crew.ledger.started(job.id)
    own_server.kill() if fault == "kill" else own_server.pause()
    term_at = time.monotonic()
    worker.term()
    assert await worker.wait(timeout=14) == 0
    assert time.monotonic() - term_at < patience(0.5 + 5 + NOISE_S)


@pytest.mark.parametrize("verb", ["put_back", "retire"])
async def test_a_hand_back_whose_reply_is_lost_leaves_each_job_in_one_place(
    verb: str, crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """BC-23: the connection dies in the middle of the last words."""
    await app.queue(QUEUE).stats()
    leaving = await crew.worker("leaving", url=proxy.url, shutdown_timeout=0.1).ready()
    jobs = [await app.enqueue("hold", gate="gate") for _ in range(4)]
    for job in jobs:
        await crew.ledger.started(job.id)
    lost = proxy.drop_next_reply(after=library().function(verb).encode())
    leaving.term()
    assert await leaving.wait() == 0
    assert lost.is_set()
    await crew.worker("heir").ready()
    crew.open("gate")
    ids = [job.id for job in jobs]
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE)
    assert {(r.starts, r.failures) for r in records.values()} == {(2, 0)}
    assert {r.stalls for r in records.values()} == {0}
