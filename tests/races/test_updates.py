"""Many processes race for a few ids that are updated all the time: never two active jobs of one.

What each held, and when, they write down themselves; the storages are not asked.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.job import EnqueueOutcome
from headrace.request import JobRequest
from headrace.storage.base import Storage
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId
from headrace.update import Update
from tests.races.hands import QUEUE, Told, drain
from tests.races.process import opened
from tests.races.runner import raced
from tests.races.updating import JOB_IDS, overlaps
from tests.support import leaks, sqlite_check
from tests.support.redis_server import RedisServer

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
    last = {job.id: job for job in await drain(storage)}
    assert {job_id: job.payload for job_id, job in last.items()} == payloads
    stats = await storage.stats(QUEUE)
    assert (stats.queued, stats.scheduled, stats.retrying, stats.active, stats.blocked) == (0,) * 5


async def test_no_two_jobs_of_an_id_are_active_on_redis(
    steps: int, redis_server: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    """BC-24 to BC-30: past, present and future times, however the active one ends."""
    told = await raced("updates", redis_url, tmp_path, steps)
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
    told = await raced("updates", url, tmp_path, steps)
    storage = SqliteStorage(url).for_tenant("acme")
    try:
        await check(told, storage, steps)
        writer, clock = storage.engine().writer, storage.clock
        assert writer.call(sqlite_check.problems, clock, timeout_s=10) == []
    finally:
        await storage.aclose()
