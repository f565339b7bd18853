"""A record of the wrong type, which a stranger must have written, stops a call at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import redis

from headrace.errors import StorageFault
from headrace.job import Claim, JobState
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.storage.values import Settlement
from headrace.testing.contract.fixtures import Dump
from headrace.testing.contract.steps import (
    ANY_OUTCOME,
    QUEUE,
    Client,
    Incarnation,
    a_job,
)
from tests.storage.redis.conftest import ROOT
from tests.support import leaks

Step = Callable[[Storage, Client, Incarnation], Awaitable[object]]
CLAIM = Claim(1, "w1/0")


def settling(outcome: Outcome) -> Step:
    """Return the step that settles with an outcome."""
    return lambda s, c, w: w.settle_all(Settlement("x", CLAIM, 1, outcome))


VERBS: dict[str, Step] = {
    "enqueue": lambda s, c, w: c.enqueue(a_job(priority=9)),
    "enqueue a big one": lambda s, c, w: c.enqueue(a_job(payload=b"." * 100)),
    "enqueue a delayed one": lambda s, c, w: c.enqueue(a_job(delay_ms=9)),
    "cancel": lambda s, c, w: s.cancel(QUEUE, ["x"]),
    "watch": lambda s, c, w: s.watch(QUEUE, ["x"], channel="hr:{acme}:inbox:0"),
    "put_back": lambda s, c, w: s.put_back(QUEUE, w.name, [("x", CLAIM)]),
    "purge": lambda s, c, w: s.purge(QUEUE, JobState.QUEUED, ["x"]),
    "redrive": lambda s, c, w: s.redrive(QUEUE, ["x"]),
    "get": lambda s, c, w: s.get(QUEUE, "x"),
    **{f"settle as {type(outcome).__name__.lower()}": settling(outcome) for outcome in ANY_OUTCOME},
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_record_of_the_wrong_type_stops_the_call_before_it_writes(
    storage: Storage,
    client: Client,
    worker: Incarnation,
    dump: Dump,
    server: redis.Redis,
    *,
    verb: str,
) -> None:
    await client.enqueue(a_job("bystander"))
    server.set(f"{ROOT}:job:x", "a stranger's")
    before = await dump()
    with pytest.raises(StorageFault, match="WRONGTYPE"):
        await VERBS[verb](storage, client, worker)
    assert await dump() == before
    server.delete(f"{ROOT}:job:x")
    assert leaks.problems(server) == []
