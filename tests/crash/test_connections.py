"""Connections are killed and callers cancelled: no reply goes astray, and no wait hangs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress

import redis

from headrace import App, CancelOutcome, EnqueueOutcome, JobCancelled, JobHandle, JobState
from tests.apps.crash_app import QUEUE, producer
from tests.crash.crew import Crew
from tests.support.jobs import drained
from tests.support.ledger import check_ledger
from tests.support.proxy import Proxy
from tests.support.until import patience, until

STORM_S = 3.0


async def storm(client: redis.Redis, *, seconds: float) -> int:
    """Kill every connection of others each 100 ms; returns how many were killed."""
    killed = 0
    strikes = 0
    loop = asyncio.get_running_loop()
    since = loop.time()

    def is_over() -> bool:
        nonlocal killed, strikes
        if loop.time() > since + 0.1 * strikes:
            strikes += 1
            for kind in ("normal", "pubsub"):
                words = ("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
                killed += int(client.execute_command(*words))
        return loop.time() > since + seconds

    await until(is_over, within=seconds + 2)
    return killed


async def test_all_results_arrive_through_a_storm_of_killed_connections(
    crew: Crew, app: App[None], client: redis.Redis
) -> None:
    """Fault 19, fault 48, G11: normal and pub/sub connections, every 100 ms, with waiters."""
    workers = [await crew.worker(name, lease=6).ready() for name in ("a", "b")]
    values: list[int] = []
    stopping = asyncio.Event()

    async def ask(first: int) -> None:
        number = first
        while not stopping.is_set():
            values.append(
                await app.tasks["echo"].options(id=f"job-{number}").enqueue_and_wait(number)
            )
            number += 20

    askers = [asyncio.create_task(ask(first)) for first in range(20)]
    killed = await storm(client, seconds=STORM_S)
    stopping.set()
    await asyncio.gather(*askers)
    assert killed > 50
    assert len(values) == len(set(values)) > 40
    ids = [f"job-{value}" for value in values]
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE)
    assert {(r.starts, r.failures, r.stalls) for r in records.values()} == {(1, 0, 0)}
    assert [worker.count("QueueFenced") for worker in workers] == [0, 0]


class Caller:
    """One client that asks, gives up at random moments, and checks that answers are its own."""

    def __init__(self, app: App[None], rng: random.Random) -> None:
        self.app = app
        self.rng = rng
        self.accepted: dict[str, int] = {}
        self.tally: Counter[str] = Counter()

    async def call(self, number: int) -> None:
        """Enqueue, and look at, wait for or cancel one job; any of it may be cut short."""
        job_id = f"job-{number}"
        handle = await self.app.tasks["echo"].options(id=job_id).enqueue(number)
        assert handle.id == job_id
        assert handle.outcome is EnqueueOutcome.QUEUED
        self.accepted[job_id] = number
        await self.rng.choice((self._look, self._wait, self._cancel))(handle, number)
        self.tally["answered"] += 1

    async def _look(self, handle: JobHandle[int], number: int) -> None:
        assert (await handle.status()).args == {"value": number}

    async def _wait(self, handle: JobHandle[int], number: int) -> None:
        assert await handle.result(timeout=patience(12)) == number

    async def _cancel(self, handle: JobHandle[int], number: int) -> None:
        outcome = await handle.cancel()
        if outcome is CancelOutcome.CANCELLED:
            with suppress(JobCancelled):
                await handle.result(timeout=patience(12))
        else:
            assert outcome in (CancelOutcome.FINISHED, CancelOutcome.REQUESTED), number

    async def call_and_give_up(self, number: int) -> None:
        """Call, and be cancelled within 150 ms: somewhere in between, or not at all."""
        task = asyncio.create_task(self.call(number))
        asyncio.get_running_loop().call_later(self.rng.uniform(0, 0.15), task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            self.tally["cancelled"] += 1


async def test_a_cancelled_call_never_leaves_its_reply_to_another(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """BC-69: thousands of calls cut short at every await; each answer is checked to be its own."""
    await app.queue(QUEUE).stats()
    await crew.worker("only", lease=8, concurrency=200).ready()
    proxy.delay = 0.01
    numbers = iter(range(3000))
    async with producer(proxy.url) as far:
        caller = Caller(far, random.Random(69))

        async def keep_calling() -> None:
            for number in numbers:
                await caller.call_and_give_up(number)

        await asyncio.gather(*(keep_calling() for _ in range(60)))
    assert min(caller.tally["cancelled"], caller.tally["answered"]) > 300
    assert sum(caller.tally.values()) == 3000
    await drained(app.queue(QUEUE), within=8)
    records = await check_ledger(app, crew.ledger, await ended(app), queue=QUEUE)
    assert set(caller.accepted) <= set(records), "accepted and lost"
    done = {i: r for i, r in records.items() if r.state is JobState.COMPLETED}
    assert {i for i, r in done.items() if r.result != int(i.removeprefix("job-"))} == set()


async def ended(app: App[None]) -> list[str]:
    states = (JobState.COMPLETED, JobState.CANCELLED, JobState.FAILED)
    return [row.id for state in states async for row in app.queue(QUEUE).jobs(state)]


async def test_a_waiter_behind_a_silent_connection_hears_of_the_end(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """G11, BC-71: its channel and its calls black-holed, then a new way opens."""
    await app.queue(QUEUE).stats()
    async with producer(proxy.url) as far:
        job = await far.enqueue("hold", gate="gate")
        waiter = asyncio.create_task(job.result(timeout=patience(14)))
        await crew.worker("only").ready()
        await crew.ledger.started(job.id)
        proxy.stall("client")
        crew.open("gate")
        await app.job(job.id, queue=QUEUE).result(timeout=patience(5))
        proxy.reset_all()
        proxy.flow()
        assert await waiter == "only"


async def test_a_half_closed_connection_is_replaced(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """Fault 22: FIN towards the client while its own way stays open."""
    await app.queue(QUEUE).stats()
    worker = await crew.worker("only", url=proxy.url, lease=6).ready()
    async with producer(proxy.url) as far:
        for number in range(5):
            assert await far.tasks["echo"].enqueue_and_wait(number) == number
            proxy.half_close("client")
    assert worker.count("QueueFenced") == 0


async def test_a_demoted_server_is_retried_until_it_is_promoted(
    crew: Crew, app: App[None], client: redis.Redis
) -> None:
    """BC-76: READONLY is waited out by producers and workers, and nothing is doubled."""
    worker = await crew.worker("only", lease=8).ready()
    assert await app.tasks["echo"].enqueue_and_wait(0) == 0
    client.replicaof("127.0.0.1", 1)
    try:
        sent = [asyncio.create_task(app.tasks["echo"].enqueue(n)) for n in range(20)]
        await until(lambda: not worker.is_ready, within=8)
    finally:
        client.replicaof("NO", "ONE")
    handles = await asyncio.gather(*sent)
    assert [await handle.result(timeout=patience(10)) for handle in handles] == list(range(20))
    assert {handle.outcome for handle in handles} == {EnqueueOutcome.QUEUED}
    starts = Counter(entry.job_id for entry in crew.ledger.starts())
    assert {starts[handle.id] for handle in handles} == {1}
