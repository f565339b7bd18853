"""A verb of bulk writes that fails between any two of its steps is put right by the next call.

The server ends a function half way where its user may not use one of its commands. Here each
command in turn is one that fails.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache

import pytest
import redis

from headrace.errors import StorageFault
from headrace.storage.base import Storage
from headrace.storage.redis.library import Library, assemble, lua_folder
from headrace.storage.redis.storage import RedisStorage
from headrace.storage.values import CommitOutcome, StageInfo
from headrace.testing.contract.delete_queue import next_millisecond
from headrace.testing.contract.steps import HOUR_MS, QUEUE, a_job
from tests.support import leaks
from tests.support.redis_server import RedisServer

KEY = "headrace-test:steps"
FAULTY = f"""
local careful = damage.call
function damage.call(...)
  if redis.call('GET', '{KEY}') and redis.call('DECR', '{KEY}') == 0 then
    error(redis.error_reply('ERR this step fails'))
  end
  return careful(...)
end
"""
MOST_STEPS = 100


@cache
def faulty_library() -> Library:
    """Return a library in which the step fails that the test has chosen."""
    damage = (lua_folder() / "lib" / "damage.lua").read_text(encoding="utf-8")
    return assemble({"damage": damage + FAULTY})


@pytest.fixture
async def storage(redis_server: RedisServer, server: redis.Redis) -> AsyncIterator[Storage]:
    storage = RedisStorage(redis_server.url, source=faulty_library()).for_tenant("acme")
    yield storage
    await storage.aclose()
    server.flushall()


class Writer:
    """Writes six jobs in two stages of two calls each."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.stages: dict[str, StageInfo] = {}

    async def stage(self, token: str) -> None:
        jobs = [a_job(f"{token}{n}", is_new_id=True, is_plain=True) for n in range(3)]
        length = 0
        for part in (jobs[:2], jobs[2:]):
            length = await self.storage.stage(
                QUEUE, "w", token, part, before=length, ttl_ms=HOUR_MS
            )
        self.stages[token] = StageInfo(token, length, 3)

    async def stage_both(self) -> None:
        await self.stage("t")
        await self.stage("u")

    async def commit(self) -> CommitOutcome:
        stages = list(self.stages.values())
        return await self.storage.commit(QUEUE, "w", stages, batch=0, keep_ms=HOUR_MS)

    async def commit_both(self) -> None:
        await self.stage_both()
        assert await self.commit() is CommitOutcome.COMMITTED

    async def publish(self) -> int:
        return await self.storage.publish(QUEUE)

    async def publish_almost_all(self) -> None:
        await self.commit_both()
        assert [await self.publish() for _ in range(3)] == [2, 1, 1]

    async def discard(self) -> None:
        await self.storage.discard(QUEUE, "w", ["v", "u"])

    async def finish(self) -> None:
        """Do all that is not done, and see that each job is there once."""
        if await self.storage.read_write(QUEUE, "w") is None:
            await self.stage_both()
        await self.commit()
        assert await self.commit() is CommitOutcome.KNOWN
        while await self.publish():
            pass
        # A record that was written alone counts as a duplicate, and gets its place by this.
        next_millisecond()
        cursor = (await self.storage.repair(QUEUE, is_full=True)).cursor
        while cursor:
            cursor = (await self.storage.repair(QUEUE, cursor=cursor)).cursor
        assert (await self.storage.stats(QUEUE)).queued == 6
        info = await self.storage.read_write(QUEUE, "w")
        assert info is not None
        assert (info.jobs, info.is_published) == (6, True)


CASES: dict[str, tuple[str, str]] = {
    "stage": ("", "stage_both"),
    "commit": ("stage_both", "commit"),
    "publish the first jobs": ("commit_both", "publish"),
    "publish the last jobs": ("publish_almost_all", "publish"),
    "discard": ("stage_both", "discard"),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_next_call_puts_it_right(
    storage: Storage, server: redis.Redis, *, case: str
) -> None:
    before, verb = CASES[case]
    for failing in range(1, MOST_STEPS):
        server.flushall()
        writer = Writer(storage)
        if before:
            await getattr(writer, before)()
        server.set(KEY, failing)
        try:
            await getattr(writer, verb)()
        except StorageFault as error:
            assert "this step fails" in str(error)  # noqa: PT017  # the last has no error
        else:
            break
        server.delete(KEY)
        await getattr(writer, verb)()
        await writer.finish()
        server.delete(KEY)
        assert leaks.problems(server) == [], failing
    assert failing > 2
