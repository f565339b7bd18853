"""The numbers of events on a server that loses them, or on which a stranger has written."""

from __future__ import annotations

from typing import Any

import redis

from headrace.storage.base import Storage
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job
from tests.storage.conftest import RedisSubject
from tests.storage.redis.conftest import ROOT
from tests.support.clock import KEY


async def numbers(storage: Storage, after: str = "0") -> list[int]:
    """Return those of all events that are kept behind an entry."""
    return [event.number for event in (await storage.events(QUEUE, after=after)).events]


async def test_after_a_flush_numbers_begin_anew_behind_what_was_seen(
    subject: RedisSubject, client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(a_job("a"), a_job("b"))
    seen = await subject.storage.events(QUEUE)
    server.flushall()
    server.set(KEY, 10**12)
    await client.enqueue(a_job("c"))
    assert await numbers(subject.storage, seen.last_id) == [1]


async def test_an_entry_whose_number_a_stranger_wrote_gives_none(
    subject: RedisSubject, client: ContractClient, server: redis.Redis
) -> None:
    await client.enqueue(a_job("a"))
    line = "queued\tx\tsend\t0\t\t\t\t"
    entries: list[dict[Any, Any]] = [{}, {"n": "many"}, {"n": "-7"}]
    for strange in entries:
        strange["events"] = line
        server.xadd(f"{ROOT}:events", strange)
    await client.enqueue(a_job("b"))
    assert await numbers(subject.storage) == [1, 0, 0, 0, 2]
