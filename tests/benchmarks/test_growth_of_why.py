"""What is asked for by the benchmark of ``why`` has the answers that it says."""

from __future__ import annotations

import pytest

from benchmarks.growth.why import SORTS, Crowd, on_redis, on_sqlite, setting
from headrace import ReasonKind, Why
from headrace.testing.contract.steps import QUEUE
from tests.support.redis_server import RedisServer

KINDS = {
    "a limit's few": ReasonKind.LIMIT,
    "a limit's many": ReasonKind.LIMIT,
    "rate": ReasonKind.RATE,
    "turn": ReasonKind.TURN,
    "behind": ReasonKind.BEHIND,
    "behind a few": ReasonKind.BEHIND,
    "lane": ReasonKind.LANE,
    "struck": ReasonKind.STRUCK,
    "runs": ReasonKind.EARLIER,
}


@pytest.mark.parametrize("are_older", [False, True], ids=["numbered", "older"])
async def test_each_sort_of_answer_is_given_and_its_time_taken(
    redis_server: RedisServer, *, are_older: bool
) -> None:
    crowd = Crowd(workers=2, active=6, waiting=200, are_older=are_older, strikes=3)
    with redis_server.client() as client:
        client.flushall()
        async with setting(redis_server.url, crowd) as scene:
            values = await on_redis(scene, client)
            assert list(values) == list(SORTS)
            assert all(value > 0 for value in values.values())
            for sort, job_id in scene.asked.items():
                situation = await scene.storage.why(QUEUE, job_id)
                assert situation is not None
                assert KINDS[sort] in {reason.kind for reason in Why.of(situation).reasons}, sort


async def test_a_storage_in_memory_is_asked_the_same() -> None:
    async with setting("memory://growth-of-why", Crowd(workers=2, active=6, waiting=200)) as scene:
        assert list(await on_sqlite(scene)) == list(SORTS)
