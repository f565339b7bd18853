"""Many processes race for a few ids that are updated all the time: never two active jobs of one.

What each held, and when, they write down themselves; the storages are not asked.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from headrace.job import EnqueueOutcome
from headrace.request import JobRequest
from headrace.storage.base import Storage
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId
from headrace.update import Update
from tests.races.hands import JOB_IDS, QUEUE, Told, drain, overlaps
from tests.races.process import Assignment, opened
from tests.support import leaks, sqlite_check
from tests.support.processes import WorkerProcess
from tests.support.redis_server import RedisServer

SEED = int(os.environ.get("HEADRACE_SEED") or secrets.randbits(32))
PROCESSES = 3
FEW, MANY = 60, 2_000

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.parametrize("steps", [FEW, pytest.param(MANY, marks=pytest.mark.slow)]),
]

DONE = (
    *(f"enqueue: {outcome}" for outcome in ("queued", "scheduled", "updated", "duplicate")),
    *(f"settle: {outcome}" for outcome in ("Completed", "Failed", "Cancelled", "Retried")),
    *("put back", "reap", "retire", "purge", "redrive", "cancel: requested"),
    *("cancel the next: cancelled", "cancel the next: not_found"),
)
"""What many steps must have done."""


async def raced(url: str, directory: Path, steps: int) -> Told:
    """Let processes race, and return what all of them tell."""
    sys.stdout.write(f"HEADRACE_SEED={SEED}\n")
    assignments = [
        Assignment(url, str(directory), SEED, steps, index, PROCESSES) for index in range(PROCESSES)
    ]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                WorkerProcess.module(
                    "tests.races.process",
                    msgspec.json.encode(own).decode(),
                    directory=directory,
                    name=f"process-{own.index}",
                )
            )
            for own in assignments
        ]
        for process in processes:
            assert await process.wait(30 + steps / 10) == 0, process.stderr
        told = [msgspec.json.decode(process.stdout, type=Told) for process in processes]
    return Told(
        [hold for one in told for hold in one.holds],
        dict(sum((Counter(one.did) for one in told), Counter())),
        [problem for one in told for problem in one.problems],
    )


async def check(told: Told, storage: Storage, steps: int) -> None:
    """See that nothing was held twice, and that what is asked for last is what runs last."""
    assert told.problems == []
    assert overlaps(told.holds) == []
    if steps == MANY:
        assert {what for what in DONE if not told.did.get(what)} == set()
    payloads = {job_id: f"last of {job_id}".encode() for job_id in JOB_IDS}
    jobs = [
        JobRequest(job_id, QUEUE, "send", payload, update=Update())
        for job_id, payload in payloads.items()
    ]
    for outcome in await storage.enqueue(QUEUE, jobs, call=CallId("last", 1)):
        assert outcome in (EnqueueOutcome.QUEUED, EnqueueOutcome.UPDATED)
    last = await drain(storage)
    assert {job_id: job.payload for job_id, job in last.items()} == payloads
    stats = await storage.stats(QUEUE)
    assert (stats.queued, stats.scheduled, stats.retrying, stats.active, stats.blocked) == (0,) * 5


async def test_no_two_jobs_of_an_id_are_active_on_redis(
    steps: int, redis_server: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    """BC-24 to BC-30: past, present and future times, however the active one ends."""
    told = await raced(redis_url, tmp_path, steps)
    storage = opened(redis_url)
    try:
        await check(told, storage, steps)
    finally:
        await storage.aclose()
    with redis_server.client() as client:
        assert leaks.problems(client) == []


async def test_no_two_jobs_of_an_id_are_active_on_a_directory(steps: int, tmp_path: Path) -> None:
    """BC-24 to BC-30: past, present and future times, however the active one ends."""
    url = f"file://{tmp_path}/data?sync=normal"
    told = await raced(url, tmp_path, steps)
    storage = SqliteStorage(url).for_tenant("acme")
    try:
        await check(told, storage, steps)
        writer, clock = storage.engine().writer, storage.clock
        assert writer.call(sqlite_check.problems, clock, timeout_s=10) == []
    finally:
        await storage.aclose()
