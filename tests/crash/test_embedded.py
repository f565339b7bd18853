"""Several processes on one directory: producers, workers, who dies and who is in the way."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from functools import partial

import pytest

from headrace import App, JobNotFound
from headrace.storage.sqlite.engine.location import place_of
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract.steps import QUEUE as STEPS_QUEUE
from headrace.testing.contract.steps import ContractIncarnation, completed
from tests.apps.crash_app import QUEUE, echo
from tests.apps.kill_loop import noted
from tests.crash.crew import CrashWorker, Crew, passed
from tests.support import sqlite_check
from tests.support.ledger import check_ledger
from tests.support.processes import WorkerProcess
from tests.support.until import patience, until

KILLS = 12
MORE_A_KILL = 10
"""Jobs that are accepted between two kills, at least."""

pytestmark = pytest.mark.parametrize("crew_url", ["file"], indirect=True)


async def test_two_producers_and_two_workers_lose_and_double_nothing(
    crew: Crew, app: App[None]
) -> None:
    """BC-22, G1: four processes on one directory, and nothing goes wrong."""
    workers = [await crew.worker(name, lease=6).ready() for name in ("a", "b")]
    producers = [crew.producer(name, 300) for name in ("p", "q")]
    for process in producers:
        assert await process.wait(timeout=15) == 0
    ids = crew.sent("accepted")
    assert len(ids) == 600
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE)
    assert {(r.starts, r.failures, r.stalls) for r in records.values()} == {(1, 0, 0)}
    assert {entry.worker for entry in crew.ledger.starts()} == {"a", "b"}
    assert [worker.count("StorageLost") for worker in workers] == [0, 0]


async def test_processes_killed_at_random_lose_nothing(crew: Crew, app: App[None]) -> None:
    """BC-22, G1, G8: producers and workers die in the middle of anything, and others begin."""
    rng = random.Random(22)
    ids = iter(range(100))

    def start(kind: str) -> WorkerProcess:
        name = f"{kind}-{next(ids)}"
        return crew.worker(name) if kind == "worker" else crew.producer(name, 100_000)

    def has_accepted(n: int) -> bool:
        return len(crew.sent("accepted")) >= n

    alive = [(kind, start(kind)) for kind in ("worker", "worker", "producer", "producer")]
    for _ in range(KILLS):
        # On a busy machine a process takes longer to begin than another one has to live.
        goal = len(crew.sent("accepted")) + MORE_A_KILL
        await until(partial(has_accepted, goal), within=20, what=f"{goal} jobs are accepted")
        await passed(rng.uniform(0.1, 0.5))
        at = rng.randrange(len(alive))
        kind, victim = alive[at]
        victim.kill()
        alive[at] = (kind, start(kind))
    for kind, process in alive:
        if kind == "producer":
            process.kill()
            await process.wait()
    accepted = crew.sent("accepted")
    unsure = [job_id for job_id in crew.sent("wanted") - accepted if await exists(app, job_id)]
    assert len(accepted) >= KILLS * MORE_A_KILL
    await check_ledger(
        app, crew.ledger, [*accepted, *unsure], queue=QUEUE, unseen_claims=None, within=12
    )


async def exists(app: App[None], job_id: str) -> bool:
    try:
        await app.job(job_id, queue=QUEUE).status()
    except JobNotFound:
        return False
    return True


@pytest.mark.parametrize("kills", [20, pytest.param(100, marks=pytest.mark.slow)])
async def test_a_process_killed_in_the_middle_of_a_commit_leaves_the_database_in_order(
    crew: Crew, kills: int
) -> None:
    """Fault 51, G1: each accepted job is there and each outcome that was told."""
    words = (str(crew.directory), str(kills), "51")
    with WorkerProcess.module("tests.apps.kill_loop", *words, directory=crew.directory) as loop:
        assert await loop.wait(timeout=50) == 0, loop.stderr
        accepted, settled = map(int, loop.stdout.split())
    assert accepted > kills
    assert settled > kills
    storage = SqliteStorage(crew.url).for_tenant("acme")
    for number in range(kills):
        await ContractIncarnation(storage, f"worker-{number}").die()
    heir = await ContractIncarnation(storage, "heir").register()
    while jobs := await heir.claim():
        for job in jobs:
            assert await heir.settle(job, completed())
    stats = await storage.stats(STEPS_QUEUE)
    assert stats.history == stats.enqueued >= accepted
    problems = storage.engine().writer.call(
        sqlite_check.problems, lambda: time.time_ns() // 1_000_000, timeout_s=10
    )
    assert problems == []
    assert len(noted(crew.directory / "notes", "accepted")) == accepted
    await storage.aclose()


async def test_a_process_that_holds_the_database_is_waited_for(crew: Crew, app: App[None]) -> None:
    """Fault 50: three seconds in another one's transaction, and nobody sees an error."""
    worker = await crew.worker("only", lease=9).ready()
    producer = crew.producer("p", 100)
    await until(lambda: len(crew.sent("accepted")) > 10, within=8)
    other = sqlite3.connect(place_of(crew.url).path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await passed(3)
    other.execute("ROLLBACK")
    other.close()
    assert await producer.wait() == 0
    records = await check_ledger(app, crew.ledger, crew.sent("accepted"), queue=QUEUE)
    assert len(records) == 100
    assert {(r.starts, r.failures, r.stalls) for r in records.values()} == {(1, 0, 0)}
    assert worker.count("StorageLost") + worker.count("QueueFenced") == 0


async def test_idle_processes_are_woken_at_once_and_cost_little(crew: Crew, app: App[None]) -> None:
    """Fault 53: by an event and not by a poll; nor does a paused queue full of jobs cost more."""
    await app.queue(QUEUE).pause()
    handles = await app.enqueue_many(echo.job(n) for n in range(1000))
    workers = [await crew.worker(f"w{number}", lease=6).ready() for number in range(4)]
    before, since = sum(map(CrashWorker.cpu_s, workers)), time.monotonic()
    await passed(2)
    used = sum(map(CrashWorker.cpu_s, workers)) - before
    assert used < 0.2 * len(workers) * (time.monotonic() - since)
    assert crew.ledger.starts() == []
    await app.queue(QUEUE).resume()
    await asyncio.gather(*(handle.result(timeout=patience(8)) for handle in handles))
    assert {entry.epoch for entry in crew.ledger.starts()} == {1}
    assert len(crew.ledger.starts()) == 1000
    took = []
    for number in range(20):
        asked_at = time.monotonic()
        assert await app.tasks["echo"].enqueue_and_wait(number) == number
        took.append(time.monotonic() - asked_at)
    # A poll of the two seconds' block would take a second on average.
    assert sorted(took)[10] < patience(0.3)
