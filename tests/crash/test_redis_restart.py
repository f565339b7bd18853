"""Redis dies, stands still, or loses its functions.

With an append-only file nothing that was accepted is lost, and workers go on by themselves.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from headrace import App, JobState, StorageError
from headrace.storage.redis.library import library
from tests.apps.crash_app import QUEUE, echo, slow
from tests.crash.crew import LEASE_S, Crew, passed
from tests.support.jobs import drained
from tests.support.ledger import check_ledger, outcomes, overlaps
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


async def load(app: App[None], ids: list[str], stopping: asyncio.Event) -> None:
    """Enqueue as fast as it goes until told to stop; notes what was accepted."""
    number = 0
    while not stopping.is_set():
        number += 1
        jobs = [slow.job(0.02) if n % 10 == 0 else echo.job(n) for n in range(20)]
        try:
            handles = await app.enqueue_many(jobs)
        except StorageError:
            continue
        ids += [handle.id for handle in handles]
        await app.tasks["echo"].enqueue(number)
        await asyncio.sleep(0)


async def grows(ids: list[str], *, by: int) -> None:
    """Wait until more jobs were accepted."""
    seen = len(ids)
    await until(lambda: len(ids) >= seen + by, within=8)


async def accepted(app: App[None]) -> list[str]:
    """Return every job that the queue still knows, whoever enqueued it."""
    states = (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)
    return [row.id for state in states async for row in app.queue(QUEUE).jobs(state)]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_a_redis_killed_under_load_loses_nothing(
    loop: str, own_server: RedisServer, own_crew: Crew, own_app: App[None]
) -> None:
    """G1, G4, fault 13: three deaths; workers consume again, and the functions are still there."""
    for name in ("a", "b"):
        await own_crew.worker(name, loop=loop, lease=8).ready()
    ids: list[str] = []
    stopping = asyncio.Event()
    producer = asyncio.create_task(load(own_app, ids, stopping))
    for _ in range(3):
        await grows(ids, by=100)
        own_server.kill()
        own_server.start()
    with own_server.client() as client:
        loaded = {entry[1].decode() for entry in client.function_list()}
        assert library().name in loaded
    await grows(ids, by=100)
    stopping.set()
    await producer
    await drained(own_app.queue(QUEUE), within=10)
    known = await accepted(own_app)
    assert set(ids) - set(known) == set(), "accepted and lost"
    records = await check_ledger(own_app, own_crew.ledger, known, queue=QUEUE)
    assert {record.state for record in records.values()} == {JobState.COMPLETED}
    assert {(r.starts, r.failures, r.stalls) for r in records.values()} == {(1, 0, 0)}


async def test_a_redis_that_stands_still_for_three_leases_condemns_nobody(
    own_server: RedisServer, own_crew: Crew, own_app: App[None]
) -> None:
    """Fault 17, G9: handlers are stopped in time, and nobody is charged or run twice at once."""
    workers = [await own_crew.worker(name).ready() for name in ("a", "b", "c")]
    jobs = [await own_app.enqueue("hold", gate="gate") for _ in range(15)]
    for job in jobs:
        await own_crew.ledger.started(job.id)
    own_server.pause()
    await passed(3 * LEASE_S)
    own_server.resume()
    for worker in workers:
        await worker.ready(within=12)
    own_crew.open("gate")
    ids = [job.id for job in jobs]
    records = await check_ledger(own_app, own_crew.ledger, ids, queue=QUEUE, unseen_claims=None)
    assert overlaps(own_crew.ledger.entries()) == []
    assert {(r.failures, r.stalls) for r in records.values()} == {(0, 0)}
    assert sum(worker.count("WorkerReaped") for worker in workers) == 0


async def test_a_redis_that_stands_still_for_less_than_a_lease_stops_nothing(
    own_server: RedisServer, own_crew: Crew, own_app: App[None]
) -> None:
    worker = await own_crew.worker("only", lease=6).ready()
    job = await own_app.enqueue("hold", gate="gate")
    await own_crew.ledger.started(job.id)
    own_server.pause()
    own_crew.open("gate")
    await passed(1)
    own_server.resume()
    assert await job.result(timeout=patience(8)) == "only"
    assert (await job.status()).starts == 1
    assert worker.count("QueueFenced") == 0


async def test_flushed_functions_are_loaded_again_under_load(
    own_server: RedisServer, own_crew: Crew, own_app: App[None]
) -> None:
    """BC-68, fault 30: no operation fails, and a repeated call has no double effect."""
    worker = await own_crew.worker("only").ready()
    handles = []
    with own_server.client() as client:
        for number in range(30):
            client.function_flush("ASYNC")
            handles += await own_app.enqueue_many(echo.job(number) for _ in range(20))
            handles.append(await own_app.tasks["echo"].enqueue(number))
    for handle in handles:
        await handle.result(timeout=patience(8))
    ids = [handle.id for handle in handles]
    records = await check_ledger(own_app, own_crew.ledger, ids, queue=QUEUE)
    assert {(r.starts, r.failures) for r in records.values()} == {(1, 0)}
    assert worker.count("LoopFailed") + worker.count("QueueFenced") == 0


async def test_a_worker_is_ready_again_after_redis_bounced_three_times(
    own_server: RedisServer, own_crew: Crew, own_app: App[None]
) -> None:
    """BC-73: consumption resumes, and until then it says that it is not ready."""
    worker = await own_crew.worker("only", lease=10).ready()
    for _ in range(3):
        own_server.kill()
        await until(lambda: not worker.is_ready, within=8)
        own_server.start()
        await worker.ready(within=12)
    assert await own_app.tasks["echo"].enqueue_and_wait(1) == 1
    own_server.kill()
    await until(lambda: not worker.is_ready, within=8)
    own_server.start()
    assert await own_app.tasks["echo"].enqueue_and_wait(2) == 2


async def test_a_worker_without_redis_is_not_busy(
    own_server: RedisServer, own_crew: Crew, own_app: App[None]
) -> None:
    """BC-74: under a fifth of a processor over three seconds, and its handlers go on."""
    worker = await own_crew.worker("only", lease=30).ready()
    job = await own_app.enqueue("hold", gate="gate")
    await own_crew.ledger.started(job.id)
    own_server.kill()
    before, since = worker.cpu_s(), time.monotonic()
    await passed(3)
    assert worker.cpu_s() - before < 0.2 * (time.monotonic() - since)
    own_crew.open("gate")
    await until(lambda: [e for e in own_crew.ledger.entries(job.id) if e.kind == "end"])
    own_server.start()
    assert await job.result(timeout=patience(12)) == "only"
    assert (await job.status()).starts == 1


async def test_a_scheduled_job_survives_a_restart_and_runs_once_on_time(
    own_server: RedisServer, own_crew: Crew, own_app: App[None]
) -> None:
    """BC-50."""
    await own_crew.worker("a", lease=5).ready()
    await own_crew.worker("b", lease=5).ready()
    asked_at = time.monotonic()
    job = await own_app.tasks["echo"].options(delay=4).enqueue(1)
    own_server.kill()
    own_server.start()
    assert await job.result(timeout=patience(12)) == 1
    (start,) = own_crew.ledger.starts(job.id)
    # The server's clock counts whole milliseconds.
    assert 3.99 < start.at - asked_at < 4 + patience(5)
    assert (await outcomes(own_app, QUEUE))[job.id] == 1


async def test_a_worker_started_while_redis_is_away_begins_when_it_comes(
    own_server: RedisServer, own_crew: Crew, own_app: App[None]
) -> None:
    job = await own_app.enqueue("echo", value=1)
    own_server.kill()
    worker = own_crew.worker("early")
    # It has written nothing yet when it can't connect; that it runs at all is all there is to see.
    await until(lambda: worker.cpu_s() > 0.1, within=8)
    own_server.start()
    await worker.ready(within=12)
    assert await job.result(timeout=patience(5)) == 1


async def test_a_restored_backup_in_which_a_finished_job_is_active_is_put_right(
    own_server: RedisServer, own_crew: Crew, own_app: App[None], tmp_path: Path
) -> None:
    """BC-11: its worker lives and doesn't have it, so it hands it back, and it runs again."""
    worker = await own_crew.worker("only", lease=5).ready()
    job = await own_app.enqueue("hold", gate="gate")
    await own_crew.ledger.started(job.id)
    data, backup = own_server.directory / "appendonlydir", tmp_path / "backup"
    shutil.copytree(data, backup)
    own_crew.open("gate")
    assert await job.result(timeout=patience(5)) == "only"
    own_server.kill()
    shutil.rmtree(data)
    shutil.copytree(backup, data)
    own_server.start()
    await own_crew.ledger.started(job.id, times=2)
    await until(lambda: worker.count("JobsReconciled") == 1)
    records = await check_ledger(own_app, own_crew.ledger, [job.id], queue=QUEUE)
    assert (records[job.id].starts, records[job.id].failures, records[job.id].stalls) == (2, 0, 0)
