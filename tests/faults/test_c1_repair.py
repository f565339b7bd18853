"""C1: when records are gone, counts, listings and places come back to what is there."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
import redis

from headrace import App, Worker
from headrace.events import QueueRepaired
from headrace.storage.base import Storage
from headrace.storage.redis import keys
from headrace.testing import EventLog, running
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    retried,
)
from tests.storage.conftest import RedisSubject
from tests.support.leaks import problems
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

ROOT = keys.root("acme", QUEUE)


@pytest.fixture
def server(redis_server: RedisServer, redis_url: str) -> Iterator[redis.Redis]:
    with redis_server.client() as client:
        yield client


@pytest.fixture
def subject(redis_url: str, server: redis.Redis) -> RedisSubject:
    return RedisSubject(redis_url)


async def repair(storage: Storage, *, is_full: bool = False) -> int:
    done = await storage.repair(QUEUE, is_full=is_full)
    mended = done.mended
    while done.cursor:
        done = await storage.repair(QUEUE, cursor=done.cursor)
        mended += done.mended
    return mended


async def a_full_queue(storage: Storage, count: int) -> ContractIncarnation:
    """Bring jobs to every state that is counted, ``count`` to each, in two lanes."""
    worker = await ContractIncarnation(storage, "w1").register()
    client = ContractClient(storage)
    big = b"." * 100
    await client.enqueue(*(a_job(f"retrying {n}", big) for n in range(count)))
    for job in await worker.claim():
        await worker.settle(job, retried())
    await client.enqueue(*(a_job(f"active {n}", big) for n in range(count)))
    assert len(await worker.claim()) == count
    await client.enqueue(*(a_job(f"scheduled {n}", big, delay_ms=60_000) for n in range(count)))
    await client.enqueue(*(a_job(f"queued {n}", big) for n in range(count)))
    await client.enqueue(*(a_job(f"lane {n}", big, lane="process") for n in range(count)))
    return worker


def lose_records(server: redis.Redis, count: int) -> None:
    """Delete the first ``count`` records of each kind."""
    kinds = ("retrying", "active", "scheduled", "queued", "lane")
    names = [f"{ROOT}:job:{kind} {n}" for kind in kinds for n in range(count)]
    assert server.delete(*names) == len(names)


@pytest.mark.parametrize("count", [3, 400])
async def test_counts_and_places_come_back_to_the_records_that_are_left(
    subject: RedisSubject, server: redis.Redis, count: int
) -> None:
    storage = subject.storage
    await a_full_queue(storage, count)
    lose_records(server, count - 1)
    assert problems(server)
    assert await repair(storage, is_full=True) > 0
    stats = await storage.stats(QUEUE)
    found = (stats.queued, stats.lanes, stats.active, stats.scheduled, stats.retrying)
    assert found == (2, {"process": 1}, 1, 1, 1)
    assert problems(server) == [], "what lies beside the lost records went with them"
    assert await repair(storage, is_full=True) == 0
    await subject.aclose()


@pytest.mark.parametrize("count", [3, 400])
async def test_sweeps_find_lost_records_as_soon_as_their_places_come_up(
    subject: RedisSubject, server: redis.Redis, count: int
) -> None:
    storage = subject.storage
    await a_full_queue(storage, count)
    lose_records(server, count - 1)
    await subject.advance(120_000)
    other = await ContractIncarnation(storage, "w2").register()
    while await other.claim(slots={"default": 100, "process": 100}):
        pass
    assert await repair(storage) > 0
    stats = await storage.stats(QUEUE)
    found = (stats.queued, stats.lanes, stats.active, stats.scheduled, stats.retrying)
    assert found == (0, {}, 5, 0, 0)
    assert problems(server) == []
    await subject.aclose()


async def test_one_walk_goes_on_at_a_time_however_many_sweep(
    subject: RedisSubject, server: redis.Redis
) -> None:
    storage = subject.storage
    await a_full_queue(storage, 400)
    server.hincrby(f"{ROOT}:counts", "queued", 1)
    first = await storage.repair(QUEUE)
    assert first.cursor
    assert (await storage.repair(QUEUE)).cursor == "", "another one walks"
    while first.cursor:
        first = await storage.repair(QUEUE, cursor=first.cursor)
    assert problems(server) == []
    await subject.aclose()


async def test_lost_counts_are_counted_anew(subject: RedisSubject, server: redis.Redis) -> None:
    storage = subject.storage
    await a_full_queue(storage, 3)
    server.delete(f"{ROOT}:counts")
    await storage.repair(QUEUE, lanes=["process"])
    assert problems(server) == []
    await subject.aclose()


PLACES = ["ready:default:5", "ready:process:5", "delayed", "processing:w1"]


@pytest.mark.parametrize("place", PLACES)
async def test_jobs_that_have_lost_their_place_get_it_back(
    subject: RedisSubject, server: redis.Redis, place: str
) -> None:
    storage = subject.storage
    await a_full_queue(storage, 3)
    server.delete(f"{ROOT}:{place}")
    await subject.advance(1)
    assert await repair(storage, is_full=True) > 0
    assert problems(server) == []
    assert await repair(storage, is_full=True) == 0
    await subject.aclose()


async def test_an_active_job_of_nobody_waits_again_and_runs(
    subject: RedisSubject, server: redis.Redis
) -> None:
    # BC-11: its worker is gone with all that told of it.
    storage = subject.storage
    await a_full_queue(storage, 1)
    server.delete(f"{ROOT}:processing:w1", f"{ROOT}:worker:w1", f"{ROOT}:beats")
    assert await repair(storage, is_full=True) > 0
    assert problems(server) == []
    other = await ContractIncarnation(storage, "w2").register()
    assert [job.id for job in await other.claim(1)] == ["active 0"]
    await subject.aclose()


async def test_the_sweep_of_a_worker_repairs_its_queue(
    app: App[None], storage_url: str, redis_server: RedisServer
) -> None:
    go_on = asyncio.Event()

    @app.task
    async def work() -> None:
        await go_on.wait()

    root = keys.root(app.tenant, "default")
    queue = app.queue("default")
    log = EventLog()
    async with running(Worker(app, concurrency=3, lease=1, sweep_interval=0.1, emit=log)) as worker:
        handles = [await work.enqueue() for _ in range(3)]
        await until(lambda: worker.active == 3, within=10)
        with redis_server.client() as client:
            client.delete(*(f"{root}:job:{handle.id}" for handle in handles[:2]))

        async def is_counted() -> bool:
            return (await queue.stats()).active == 1

        await until(is_counted, within=10)
        go_on.set()
        await handles[2].result(timeout=patience(10))
        assert log.of(QueueRepaired)
    assert (await queue.stats()).active == 0


def test_the_doctor_says_what_is_wrong_and_puts_it_right(
    redis_url: str, server: redis.Redis
) -> None:
    async def fill() -> list[str]:
        async with App(redis_url, tenant="acme") as app:
            handles = [await app.enqueue("work", queue=QUEUE, text="." * 100) for _ in range(3)]
            return [handle.id for handle in handles]

    ids = asyncio.run(fill())
    server.delete(f"{ROOT}:job:{ids[0]}", f"{ROOT}:ready:default:5")
    words = ["--url", redis_url, "--tenant", "acme"]
    said = doctor(*words)
    assert "counts 3 queued jobs, and has 0: headrace doctor --repair" in said
    assert json.loads(doctor("--repair", "-o", "json", *words)) == [{"queue": QUEUE, "mended": 4}]
    assert problems(server) == []
    assert "queues" not in doctor(*words)


def doctor(*words: str) -> str:
    command = [sys.executable, "-m", "headrace", "doctor", *words]
    return subprocess.run(  # our own command
        command, capture_output=True, text=True, timeout=patience(60), check=False
    ).stdout
