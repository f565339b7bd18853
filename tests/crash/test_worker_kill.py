"""Workers die by SIGKILL: whatever they held is found and run by others, once recorded."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import redis

from headrace import App
from headrace.storage.redis.library import library
from tests.apps.crash_app import QUEUE, echo, hold
from tests.crash.crew import NOISE_S, RECOVERED_S, CrashWorker, Crew, left_of_others
from tests.support.ledger import check_ledger
from tests.support.proxy import Proxy
from tests.support.until import patience, until

CLAIM = library().function("claim").encode()
SETTLE = library().function("settle").encode()


async def load_library(app: App[None]) -> None:
    """Load it, or a proxy would see each function's name in the library's own text."""
    await app.queue(QUEUE).stats()


async def kill_at(event: asyncio.Event, worker: CrashWorker) -> None:
    """Kill it as soon as the proxy did something, before it passes anything more on."""
    async with asyncio.timeout(patience(8)):
        await event.wait()
    worker.kill()


async def test_an_idle_worker_that_is_killed_leaves_nothing(
    loop: str, crew: Crew, app: App[None]
) -> None:
    """Fault 1: three deaths while it waits, each with a job that comes at that moment."""
    await crew.worker("stays", loop=loop).ready()
    ids = []
    for number in range(3):
        victim = await crew.worker(f"dies-{number}", loop=loop).ready()
        victim.kill()
        ids.append((await app.enqueue("echo", value=number)).id)
    # A server that has not seen yet that a victim is gone makes the claim that it left there.
    await check_ledger(app, crew.ledger, ids, queue=QUEUE, unseen_claims=None)

    async def only_one_is_left() -> bool:
        return len(await app.queue(QUEUE).workers()) == 1

    await until(only_one_is_left, within=8)
    (left,) = await app.queue(QUEUE).workers()
    # Who has something to tell finds out that somebody is gone.
    assert await app.tasks["echo"].enqueue_and_wait(1) == 1
    assert left_of_others(crew, left.incarnation) == set()


async def test_a_killed_workers_job_runs_again_within_the_bound(
    loop: str, crew: Crew, app: App[None]
) -> None:
    """G3, G9, BC-01, BC-07: however long other jobs may take, and charged as a stall."""
    first = await crew.worker("first", loop=loop).ready()
    await app.tasks["hold"].options(timeout=timedelta(minutes=30)).enqueue("open")
    crew.open("open")
    job = await app.tasks["hold"].options(timeout=patience(3)).enqueue("gate")
    await crew.ledger.started(job.id, by="first")
    await crew.worker("second", loop=loop).ready()
    first.kill()
    killed_at = time.monotonic()
    again = await crew.ledger.started(job.id, by="second")
    assert again.at - killed_at < patience(RECOVERED_S + NOISE_S)
    crew.open("gate")
    assert await job.result(timeout=patience(5)) == "second"
    record = await job.status()
    assert (record.failures, record.stalls, record.starts) == (0, 1, 2)
    assert [error.type for error in record.errors] == ["WorkerDied"]


async def test_any_live_worker_recovers_a_job_again_and_again(crew: Crew, app: App[None]) -> None:
    """BC-12: no new process starts meanwhile."""
    workers = {name: crew.worker(name) for name in ("a", "b", "c")}
    for worker in workers.values():
        await worker.ready()
    job = await app.enqueue("hold", gate="gate")
    for deaths in range(2):
        entry = await crew.ledger.started(job.id, times=deaths + 1)
        workers[entry.worker].kill()
    last = await crew.ledger.started(job.id, times=3)
    crew.open("gate")
    assert await job.result(timeout=patience(5)) == last.worker
    record = await job.status()
    assert (record.failures, record.stalls, record.starts) == (0, 2, 3)


async def test_a_worker_restarted_under_its_name_recovers_its_own_job(
    crew: Crew, app: App[None]
) -> None:
    """BC-09: what lives is a process, not a name."""
    victim = await crew.worker("pod").ready()
    job = await app.enqueue("hold", gate="gate")
    await crew.ledger.started(job.id)
    victim.kill()
    await crew.worker("pod").ready()
    await crew.ledger.started(job.id, times=2)
    crew.open("gate")
    assert await job.result(timeout=patience(5)) == "pod"
    records = await check_ledger(app, crew.ledger, [job.id], queue=QUEUE)
    assert (records[job.id].failures, records[job.id].stalls) == (0, 1)


async def test_a_full_worker_that_is_killed_loses_nothing(crew: Crew, app: App[None]) -> None:
    """G1, BC-64: more jobs than one call takes back of a dead worker, others long recorded."""
    victim = await crew.worker("victim", concurrency=500).ready()
    done = await app.enqueue_many(echo.job(n) for n in range(300))
    held = await app.enqueue_many(hold.job("gate") for _ in range(450))
    await until(lambda: len({start.job_id for start in crew.ledger.starts()}) == 750, within=8)
    for handle in done:
        await handle.result(timeout=patience(5))
    victim.kill()
    heir = await crew.worker("heir", concurrency=500).ready()
    crew.open("gate")
    ids = [handle.id for handle in (*done, *held)]
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE, within=10)
    assert {records[handle.id].stalls for handle in done} == {0}
    assert {records[handle.id].stalls for handle in held} == {1}
    # Who can't be answered in a second of a busy machine stops what it has, and starts it again.
    fences = victim.count("QueueFenced") + heir.count("QueueFenced")
    assert {records[handle.id].starts for handle in held} <= set(range(2, 3 + fences))


async def test_a_worker_killed_with_a_token_in_its_hand_delays_at_most(
    crew: Crew, app: App[None], proxy: Proxy, client: redis.Redis
) -> None:
    """Fault 3, BC-05: dead between BLMOVE and claim, so no token is left to wake anybody."""
    await load_library(app)
    held = await app.enqueue("hold", gate="gate")  # so that no claim waits behind the BLMOVE
    lost = proxy.drop_next_reply(after=b"BLMOVE")
    victim = await crew.worker("victim", url=proxy.url).ready()
    await crew.ledger.started(held.id)
    await until(lambda: client.info("clients")["blocked_clients"] == 1)
    killer = asyncio.create_task(kill_at(lost, victim))
    job = await app.enqueue("echo", value=1)
    await killer
    crew.open("gate")
    await crew.worker("heir").ready()
    assert await job.result(timeout=patience(5)) == 1
    records = await check_ledger(app, crew.ledger, [held.id, job.id], queue=QUEUE)
    assert (records[job.id].starts, records[job.id].stalls) == (1, 0)


async def test_an_idle_worker_killed_as_its_waiting_claim_is_made_loses_nothing(
    crew: Crew, app: App[None], proxy: Proxy, client: redis.Redis
) -> None:
    """Fault 3: the job is active, and its worker never knew."""
    await load_library(app)
    lost = proxy.drop_next_reply(after=b"BLMOVE")
    victim = await crew.worker("victim", url=proxy.url).ready()
    await until(lambda: client.info("clients")["blocked_clients"] == 1)
    killer = asyncio.create_task(kill_at(lost, victim))
    job = await app.enqueue("echo", value=1)
    await killer
    await crew.worker("heir").ready()
    assert await job.result(timeout=patience(5)) == 1
    records = await check_ledger(app, crew.ledger, [job.id], queue=QUEUE, unseen_claims=1)
    assert (records[job.id].starts, records[job.id].stalls) == (2, 1)


async def test_a_worker_killed_before_it_read_its_claim_loses_nothing(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """Fault 3: the jobs are active, and their worker never knew."""
    await load_library(app)
    handles = await app.enqueue_many(echo.job(n) for n in range(5))
    lost = proxy.drop_next_reply(after=CLAIM)
    await kill_at(lost, crew.worker("victim", url=proxy.url))
    await crew.worker("heir").ready()
    ids = [handle.id for handle in handles]
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE, unseen_claims=5)
    assert {(r.starts, r.failures, r.stalls) for r in records.values()} == {(2, 0, 1)}


async def test_a_job_settled_by_a_worker_that_died_unaware_is_not_run_again(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """Fault 4, G8: it died after the outcome was written and before the answer came."""
    await load_library(app)
    lost = proxy.drop_next_reply(after=SETTLE)
    victim = await crew.worker("victim", url=proxy.url).ready()
    killer = asyncio.create_task(kill_at(lost, victim))
    job = await app.enqueue("echo", value=7)
    await killer
    heir = await crew.worker("heir").ready()
    await until(lambda: heir.count("WorkerReaped") == 1, within=8)
    records = await check_ledger(app, crew.ledger, [job.id], queue=QUEUE)
    assert (records[job.id].starts, records[job.id].stalls) == (1, 0)
    assert await job.result(timeout=patience(5)) == 7
