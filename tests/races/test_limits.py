"""Many processes race for jobs with limits: none is passed, none loses a place, and all jobs end.

What each held, and when, they write down themselves; the storages are not asked.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.job import JobState
from headrace.storage.base import Storage
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.sqlite.storage import SqliteStorage
from tests.races.hands import QUEUE, Told, drain
from tests.races.limited import KEYS, LIMITS, STEERED, out_of_order, passed
from tests.races.process import opened
from tests.races.runner import raced
from tests.support import leaks, sqlite_check
from tests.support.redis_server import RedisServer

FEW, MANY = 60, 2_000

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.parametrize("steps", [FEW, pytest.param(MANY, marks=pytest.mark.slow)]),
]

DONE = (
    *(f"enqueue: {outcome}" for outcome in ("queued", "scheduled", "blocked")),
    *(f"settle: {outcome}" for outcome in ("Completed", "Failed", "Cancelled", "Retried")),
    *("settle: PutBack", "settle: Snoozed", "put back", "reap", "retire", "purge", "redrive"),
    *("cancel: cancelled", "cancel: requested", "set", "repair over several calls"),
)
"""What many steps must have done."""


async def check(told: Told, storage: Storage, steps: int) -> None:
    """See that no limit was passed; then run the rest in one slot, and see that all have ended."""
    assert told.problems == []
    assert passed(told.holds) == []
    if steps == MANY:
        assert {what for what in DONE if not told.did.get(what)} == set()
    await storage.set_limit(QUEUE, STEERED, None)
    assert out_of_order(await drain(storage, slots=1)) == []
    stats = await storage.stats(QUEUE)
    assert (stats.queued, stats.scheduled, stats.retrying, stats.active, stats.blocked) == (0,) * 5
    for name in (*LIMITS, STEERED):
        for key in KEYS:
            gate = await storage.gate(QUEUE, name, key)
            assert (name, gate.ready, gate.active, gate.blocked) == (name, 0, 0, 0)
    assert await left_over(storage, set(told.stored) - set(told.purged)) == []


async def left_over(storage: Storage, job_ids: set[str]) -> list[tuple[str, JobState | None]]:
    """Return the jobs that have not ended, and those that are not there any more."""
    found, ids = [], sorted(job_ids)
    for first in range(0, len(ids), BATCH_LIMIT):
        ends = await storage.outcomes(QUEUE, ids[first : first + BATCH_LIMIT])
        found += [(end.id, end.state) for end in ends if not (end.state and end.state.is_terminal)]
    return found


async def test_no_limit_is_passed_on_redis(
    steps: int, redis_server: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    told = await raced("limits", redis_url, tmp_path, steps)
    storage = opened(redis_url)
    with redis_server.client() as client:
        assert leaks.problems(client) == []
        try:
            await check(told, storage, steps)
        finally:
            await storage.aclose()
        assert leaks.problems(client) == []


async def test_no_limit_is_passed_on_a_directory(steps: int, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/data?sync=normal"
    told = await raced("limits", url, tmp_path, steps)
    storage = SqliteStorage(url).for_tenant("acme")
    writer, clock = storage.engine().writer, storage.clock
    try:
        assert writer.call(sqlite_check.problems, clock, timeout_s=30) == []
        await check(told, storage, steps)
        assert writer.call(sqlite_check.problems, clock, timeout_s=30) == []
    finally:
        await storage.aclose()
