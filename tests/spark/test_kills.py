"""Drivers that die with their JVM and all of its workers: all rows are there, and each once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.redis.library import library
from tests.crash.crew import passed
from tests.spark.support.drivers import Driver
from tests.spark.support.gates import Gate
from tests.spark.support.held_databases import HeldDatabase
from tests.spark.support.rows import numbered, once, queued, save, take_rows
from tests.support.proxy import Caught, Proxy, Side
from tests.support.redis_server import RedisServer
from tests.support.until import until

ROWS = 6_000
MANY = 30_000
WRITE = "import-7"
HELD_S = 60.0
MOMENTS: dict[str, tuple[Side, str, float]] = {
    "half-staged": ("client", "stage", 0.5),
    "all-staged": ("server", "commit", 0),
    "committed": ("client", "commit", 0),
    "half-published": ("client", "publish", 0.5),
    "all-published": ("client", "publish", 1),
}
"""Where a write is held: at a call or its answer, of which verb, and behind which part of them."""

FILE = "half-staged-in-a-file"
IN_FILES = {"committed-in-a-file": 1, "half-published-in-a-file": 0.5, "last-piece-in-a-file": 0}
"""Of writes to files that are held behind the commit: which part of them is left at most."""

SLOW = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
async def loaded(redis_url: str) -> None:
    """Load the functions first: the call that does has the names of all verbs in it."""
    await queued(redis_url)


def hold(proxy: Proxy, moment: str, rows: int) -> Caught:
    side, verb, part = MOMENTS[moment]
    skip = max(0, int(part * rows / BATCH_LIMIT) - 1)
    name = library().function(verb).encode()
    return proxy.hold(side, after=name, skip=skip, is_lasting=True)


def check_visible(jobs: int, moment: str, rows: int) -> None:
    """See that a write that is held has come just so far."""
    if moment.startswith(("half-published", "last-piece")):
        assert 0 < jobs < rows
    else:
        assert jobs == (rows if moment == "all-published" else 0)


@pytest.mark.parametrize(
    ("way", "moments", "rows"),
    [
        pytest.param("save", ["committed", "half-published"], ROWS, marks=SLOW, id="save-few"),
        pytest.param("save", [*MOMENTS, FILE], MANY, marks=SLOW, id="save"),
        pytest.param("enqueue", [*MOMENTS, FILE], MANY, marks=SLOW, id="enqueue"),
        # Apart, since each of them keeps a core busy while it is held.
        pytest.param("save", [*IN_FILES], ROWS, marks=SLOW, id="save-in-files"),
        pytest.param("enqueue", [*IN_FILES], ROWS, marks=SLOW, id="enqueue-in-files"),
    ],
)
async def test_after_a_kill_at_any_moment_a_second_run_makes_it_whole(
    spark: SparkSession,
    redis_url: str,
    tmp_path: Path,
    *,
    way: str,
    moments: list[str],
    rows: int,
) -> None:
    urls = {
        moment: redis_url if moment in MOMENTS else f"file://{tmp_path}/{moment}"
        for moment in moments
    }
    databases: dict[str, HeldDatabase] = {}
    async with AsyncExitStack() as stack:
        writes = []
        held: dict[str, Callable[[], bool]] = {}
        for moment, url in urls.items():
            one = {"way": way, "tenant": moment, "rows": rows, "write_id": WRITE}
            if moment == FILE:
                gate = stack.enter_context(Gate(tmp_path / "gate"))
                held[moment] = Path(f"{gate.path}.attempt-0").exists
                writes.append({**one, "url": url, "gate": gate.path})
            elif moment in IN_FILES:
                await queued(url)
                left = max(1, int(IN_FILES[moment] * rows / BATCH_LIMIT))
                databases[moment] = HeldDatabase(url, left=left)
                held[moment] = databases[moment].is_held
                writes.append({**one, "url": url})
            else:
                proxy = await stack.enter_async_context(Proxy(int(url.rpartition(":")[2])))
                held[moment] = hold(proxy, moment, rows).happened.is_set
                writes.append({**one, "url": proxy.url})
        driver = stack.enter_context(Driver.start("write", tmp_path, writes=writes))
        for moment, is_held in held.items():
            await until(is_held, within=HELD_S, what=moment)
            if moment in databases:
                jobs = databases[moment].jobs()
            else:
                jobs = await queued(urls[moment], tenant=moment)
            check_visible(jobs, moment, rows)
        assert driver.told("written") == []
        driver.kill_all()
    for database in databases.values():
        database.let_go()
    for moment, url in urls.items():
        save(numbered(spark, rows), url, tenant=moment, commit="atomic", writeId=WRITE)
        assert await take_rows(url, tenant=moment) == once(rows), moment


async def test_what_was_committed_is_finished_when_the_process_that_commits_ends(
    spark: SparkSession, redis_server: RedisServer, redis_url: str
) -> None:
    """It is a process of its own: Spark then has another one abort the write."""
    async with Proxy(redis_server.port) as proxy:
        held = hold(proxy, "committed", ROWS)
        saving = asyncio.create_task(
            asyncio.to_thread(
                save, numbered(spark, ROWS), proxy.url, commit="atomic", writeId=WRITE
            )
        )
        await until(lambda: held.happened.is_set() or saving.done(), within=HELD_S)
        committer = process_at(held.client_port, proxy.port)
        assert committer != os.getpid()
        os.kill(committer, signal.SIGKILL)
        with pytest.raises(Exception, match=r"WRITING_JOB_ABORTED|Python worker"):
            await saving
    assert await take_rows(redis_url) == once(ROWS)


def process_at(port: int, to: int) -> int:
    """Return the process that has a connection from a port of this host to another.

    Connections to several places may have one port of their own.
    """
    [pid] = [
        connection.pid
        for connection in psutil.net_connections("tcp4")
        if connection.laddr
        and connection.raddr
        and (connection.laddr.port, connection.raddr.port) == (port, to)
        and connection.pid
    ]
    return pid


FILES = 8
IN_FILE = 500
KILLS = 3


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_streams_that_are_killed_again_and_again_lose_nothing_and_bring_nothing_twice(
    spark: SparkSession, redis_url: str, tmp_path: Path
) -> None:
    seed = random.randrange(10_000)
    rows = FILES * IN_FILE
    numbered(spark, rows, partitions=FILES, has_ids=True).write.parquet(str(tmp_path / "rows"))
    save(numbered(spark, rows, has_ids=True), redis_url, tenant="events")
    moments = random.Random(seed)
    arguments = {"url": redis_url, "folder": str(tmp_path), "batch": IN_FILE}
    for number in range(KILLS):
        with Driver.start("stream", tmp_path, name=f"driver-{number}", **arguments) as driver:
            goal = notes(tmp_path) + moments.randint(2, 10)
            await until(partial(has_noted, tmp_path, goal), within=60)
            await passed(moments.uniform(0, 0.5))
            assert driver.returncode is None
            driver.kill_all()
    with Driver.start("stream", tmp_path, name="last", **arguments) as driver:
        await driver.tells("ended")
    for tenant in ("atomic", "direct"):
        assert await take_rows(redis_url, tenant=tenant) == once(rows), (tenant, seed)
    events = spark.read.parquet(str(tmp_path / "events"))
    found = events.where("kind = 'queued'")
    assert (events.count(), found.select("job_id").distinct().count()) == (rows, rows), seed


def has_noted(folder: Path, goal: int) -> bool:
    """Whether the streams have made so many notes."""
    return notes(folder) >= goal


def notes(folder: Path) -> int:
    """Return how many micro-batches the streams have noted to begin, and to be done."""
    return sum(
        path.name.isdigit()
        for kind in ("offsets", "commits")
        for path in folder.glob(f"checkpoints/*/{kind}/*")
    )
