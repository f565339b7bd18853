"""Wake-up tokens are hints: lost, doubled, stolen or left over, they cost some time at most."""

from __future__ import annotations

import asyncio
import random
import time

import redis

from headrace import App, JobState
from headrace.events import JobEventKind
from tests.apps.crash_app import QUEUE, echo
from tests.crash.crew import LEASE_S, NOISE_S, ROOT, Crew, passed
from tests.support.jobs import drained
from tests.support.ledger import check_ledger, records
from tests.support.until import patience, until

OTHER = "crash-2"
LONGEST_WAIT_S = 2.5


async def test_tokens_lost_and_doubled_delay_at_most(
    crew: Crew, app: App[None], client: redis.Redis
) -> None:
    """DESIGN 5.3: DEL and RPUSH on the wake list under load, over tiers and queues."""
    for name in ("a", "b", "c"):
        await crew.worker(name, queues=[QUEUE, OTHER]).ready()
    rng = random.Random(5)
    ids: dict[str, list[str]] = {QUEUE: [], OTHER: []}
    ends_at = time.monotonic() + 4
    while time.monotonic() < ends_at:
        queue = rng.choice((QUEUE, OTHER))
        call = app.tasks["echo"].options(queue=queue, priority=rng.choice((0, 5, 9)))
        ids[queue].append((await call.enqueue(1)).id)
        tokens = f"hr:{{crash:{rng.choice((QUEUE, OTHER))}}}:wake"
        match rng.randrange(4):
            case 0 | 1:
                client.delete(tokens)
            case 2:
                client.rpush(tokens, *["1"] * rng.randint(1, 5))
            case _:
                client.lpop(tokens)
        if rng.random() < 0.05:
            # The workers go to sleep now and then, or no token would ever count.
            await passed(0.2)
    for queue, accepted in ids.items():
        assert len(accepted) > 20
        await drained(app.queue(queue), within=LONGEST_WAIT_S + NOISE_S)
        found = await records(app, accepted, queue)
        assert {(r.state, r.starts) for r in found.values()} == {(JobState.COMPLETED, 1)}
    waits = [
        event.wait_s or 0
        for queue in ids
        async for event in app.queue(queue).events()
        if event.kind is JobEventKind.ACTIVE
    ]
    assert len(waits) == len(crew.ledger.starts())
    assert max(waits) < patience(LONGEST_WAIT_S + 1)


async def test_a_token_that_a_stopped_worker_took_delays_at_most(
    crew: Crew, app: App[None]
) -> None:
    """A stolen wake-up: the thief is stopped while it blocks, so it gets the token and sleeps."""
    await crew.worker("awake").ready()
    for _ in range(3):
        thief = await crew.worker("thief").ready()
        thief.stop()
        job = await app.enqueue("echo", value=1)
        assert await job.result(timeout=patience(LONGEST_WAIT_S + NOISE_S)) == 1
        thief.kill()


async def test_fifty_thousand_jobs_due_at_one_instant_all_run_once(
    crew: Crew, app: App[None]
) -> None:
    """BC-64: they move in batches, and nobody is kept waiting meanwhile."""
    # There is no server to keep busy in a directory, and less speed.
    total = 50_000 if crew.url.startswith("redis") else 5_000
    due = app.tasks["echo"].options(delay=3.0)
    handles = await app.enqueue_many(due.job(n) for n in range(total))
    for name in ("a", "b"):
        await crew.worker(name, loop="uvloop", concurrency=500, lease=10).ready()

    async def all_done() -> bool:
        asked_at = time.monotonic()
        stats = await app.queue(QUEUE).stats()
        assert time.monotonic() - asked_at < patience(1)
        return stats.history == total

    await until(all_done, within=14)
    starts = crew.ledger.starts()
    assert len(starts) == total
    assert {entry.job_id for entry in starts} == {handle.id for handle in handles}
    assert {entry.epoch for entry in starts} == {1}


async def test_a_paused_queue_full_of_jobs_costs_nothing(
    crew: Crew, app: App[None], client: redis.Redis
) -> None:
    """A token left in a paused queue makes no hot loop, and resuming works at once."""
    await app.queue(QUEUE).pause()
    handles = await app.enqueue_many(echo.job(n) for n in range(1000))
    client.rpush(f"{ROOT}:wake", "1", "1")
    worker = await crew.worker("only").ready()
    calls = client.info("stats")["total_commands_processed"]
    before, since = worker.cpu_s(), time.monotonic()
    await passed(3)
    assert worker.cpu_s() - before < 0.2 * (time.monotonic() - since)
    assert client.info("stats")["total_commands_processed"] - calls < 3 * 200
    assert crew.ledger.starts() == []
    await app.queue(QUEUE).resume()
    await asyncio.gather(*(handle.result(timeout=patience(8)) for handle in handles))


async def test_a_job_delayed_beyond_three_leases_runs_once(crew: Crew, app: App[None]) -> None:
    """BC-17."""
    for name in ("a", "b", "c"):
        await crew.worker(name).ready()
    call = app.tasks["echo"].options(delay=3.5 * LEASE_S)
    enqueued_at = time.monotonic()
    job = await call.enqueue(1)
    assert await job.result(timeout=patience(10)) == 1
    (start,) = crew.ledger.starts(job.id)
    assert start.at - enqueued_at > 3.4 * LEASE_S
    found = await check_ledger(app, crew.ledger, [job.id], queue=QUEUE)
    assert (found[job.id].failures, found[job.id].stalls) == (0, 0)
