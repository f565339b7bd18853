"""Staged writes on Redis: what their keys hold."""

from __future__ import annotations

import pytest
import redis

from headrace.errors import StageLost
from headrace.request import JobRequest
from headrace.storage.base import Storage
from headrace.storage.limits import STAGES_LIMIT
from headrace.storage.values import CommitOutcome, StageInfo, WriteInfo
from headrace.testing.contract.steps import HOUR_MS, QUEUE, ContractClient, a_job
from tests.storage.redis.conftest import ROOT

WRITE = "nightly:1"


async def stage(
    storage: Storage, token: str, *jobs: JobRequest, before: int = 0, ttl_ms: int = HOUR_MS
) -> StageInfo:
    """Stage some jobs of the write."""
    length = await storage.stage(QUEUE, WRITE, token, jobs, before=before, ttl_ms=ttl_ms)
    return StageInfo(token, length, len(jobs))


async def commit(storage: Storage, *stages: StageInfo, batch: int = 0) -> CommitOutcome:
    return await storage.commit(QUEUE, WRITE, stages, batch=batch, keep_ms=HOUR_MS)


async def publish_all(storage: Storage) -> None:
    while await storage.publish(QUEUE):
        pass


async def test_a_stage_ends_by_itself_and_a_committed_one_is_on_the_list(
    storage: Storage, server: redis.Redis
) -> None:
    info = await stage(storage, "t1", a_job("a"), a_job("b"))
    assert 0 < server.pttl(f"{ROOT}:stage:t1:{WRITE}") <= HOUR_MS
    assert server.exists(f"{ROOT}:committed", f"{ROOT}:write:{WRITE}") == 0
    assert await commit(storage, info) is CommitOutcome.COMMITTED
    assert server.pttl(f"{ROOT}:stage:t1:{WRITE}") == -1
    assert server.lrange(f"{ROOT}:committed", 0, -1) == [f"t1:{WRITE}".encode()]
    assert server.pttl(f"{ROOT}:write:{WRITE}") == -1
    await publish_all(storage)
    assert server.exists(f"{ROOT}:stage:t1:{WRITE}", f"{ROOT}:committed") == 0
    assert 0 < server.pttl(f"{ROOT}:write:{WRITE}") <= HOUR_MS


async def test_a_stage_whose_time_is_over_is_not_there(
    storage: Storage, server: redis.Redis
) -> None:
    info = await stage(storage, "t1", a_job("a"), ttl_ms=1)
    while server.exists(f"{ROOT}:stage:t1:{WRITE}"):
        pass
    with pytest.raises(StageLost, match="stage t1 of write nightly:1 is not there"):
        await commit(storage, info)
    with pytest.raises(StageLost, match="has length 0, not"):
        await stage(storage, "t1", a_job("b"), before=info.length)


async def test_jobs_of_many_options_are_staged_as_they_are(
    storage: Storage,
) -> None:
    options = {f"o{n}": "v" for n in range(3)}
    jobs = [
        a_job(
            f"{n}", priority=n % 10, options=repr(options).encode(), lane="gpu", max_stalls=7,
            delay_ms=HOUR_MS, expires_in_ms=2 * HOUR_MS, keep_ms=5,
        )
        for n in range(500)
    ]  # fmt: skip
    await commit(storage, await stage(storage, "t1", *jobs))
    await publish_all(storage)
    assert (await storage.stats(QUEUE)).scheduled == 500
    record = await storage.get(QUEUE, "499")
    assert record is not None
    assert (record.priority, record.lane, record.options) == (9, "gpu", repr(options).encode())


async def test_an_id_that_was_just_drawn_is_looked_for_when_it_is_published(
    storage: Storage, client: ContractClient
) -> None:
    await commit(storage, await stage(storage, "t1", a_job("a", is_new_id=True, is_plain=True)))
    await client.enqueue(a_job("a", b'["first"]'))
    await publish_all(storage)
    assert (await storage.stats(QUEUE)).queued == 1
    assert await storage.read_write(QUEUE, WRITE) == WriteInfo(
        id=WRITE, batch=0, stages_left=0, jobs=1, added=0
    )


async def test_as_many_stages_as_a_call_may_have_are_committed_at_once(
    storage: Storage, server: redis.Redis
) -> None:
    stages = [await stage(storage, f"t{n}", a_job(f"{n}")) for n in range(STAGES_LIMIT)]
    assert await commit(storage, *stages) is CommitOutcome.COMMITTED
    assert server.llen(f"{ROOT}:committed") == STAGES_LIMIT
    assert await storage.publish(QUEUE) == STAGES_LIMIT - 1
    assert await storage.delete_queue(QUEUE) is None
    await storage.discard(QUEUE, WRITE, [info.token for info in stages])
    assert server.llen(f"{ROOT}:committed") == STAGES_LIMIT - 1


async def test_a_deleted_queue_takes_what_is_committed_along_a_piece_at_a_time(
    storage: Storage, server: redis.Redis
) -> None:
    left = [await stage(storage, f"t{n}", a_job(f"{n}")) for n in range(2)]
    await commit(storage, *left)
    names = [f"gone{n}:w{n}" for n in range(STAGES_LIMIT)]
    server.lpush(f"{ROOT}:committed", *names)
    assert await storage.delete_queue(QUEUE) == 2
    assert await storage.delete_queue(QUEUE) == 0
    assert server.keys("hr:*") == []
