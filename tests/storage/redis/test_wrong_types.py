"""A record of the wrong type, which a stranger must have written, is no job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import redis

from headrace.errors import StorageFault
from headrace.job import Claim, JobState
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.storage.values import Report, Settlement
from headrace.testing.contract.steps import (
    ANY_OUTCOME,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    stalled,
)
from tests.storage.redis.conftest import ROOT
from tests.support import leaks

Step = Callable[[Storage, ContractClient, ContractIncarnation], Awaitable[object]]
CLAIM = Claim(1, "w1/0")
SAID = Report("x", CLAIM, 0.5, "half", [b"1"], 0)


def settling(outcome: Outcome) -> Step:
    """Return the step that settles with an outcome."""
    return lambda s, c, w: w.settle_all(Settlement("x", CLAIM, 1, outcome))


VERBS: dict[str, Step] = {
    "enqueue": lambda s, c, w: c.enqueue(a_job(priority=9)),
    "enqueue a big one": lambda s, c, w: c.enqueue(a_job(payload=b"." * 100)),
    "enqueue a delayed one": lambda s, c, w: c.enqueue(a_job(delay_ms=9)),
    "cancel": lambda s, c, w: s.cancel(QUEUE, ["x"]),
    "watch": lambda s, c, w: s.watch(QUEUE, ["x"], channel="hr:{acme}:channel:0"),
    "put_back": lambda s, c, w: s.put_back(QUEUE, w.name, [("x", CLAIM)]),
    "purge": lambda s, c, w: s.purge(QUEUE, JobState.QUEUED, ["x"]),
    "redrive": lambda s, c, w: s.redrive(QUEUE, ["x"]),
    "get": lambda s, c, w: s.get(QUEUE, "x"),
    "export": lambda s, c, w: s.export(QUEUE, JobState.COMPLETED),
    "outcomes": lambda s, c, w: s.outcomes(QUEUE, ["x"]),
    "report": lambda s, c, w: s.report(QUEUE, [SAID]),
    **{f"settle as {type(outcome).__name__.lower()}": settling(outcome) for outcome in ANY_OUTCOME},
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_record_of_the_wrong_type_is_no_job_to_any_verb(
    storage: Storage,
    client: ContractClient,
    worker: ContractIncarnation,
    server: redis.Redis,
    *,
    verb: str,
) -> None:
    await client.enqueue(a_job("bystander"))
    server.set(f"{ROOT}:job:x", "a stranger's")
    await VERBS[verb](storage, client, worker)
    if verb.startswith("enqueue"):
        assert await storage.get(QUEUE, "x") is not None
    else:
        assert await storage.get(QUEUE, "x") is None
    if server.type(f"{ROOT}:job:x") == b"string":
        server.delete(f"{ROOT}:job:x")
    assert leaks.problems(server) == []


async def test_a_token_of_the_wrong_type_is_set_aside(
    storage: Storage, client: ContractClient, worker: ContractIncarnation, server: redis.Redis
) -> None:
    server.set(f"{ROOT}:wake:default", "a stranger's")
    waiter = storage.open_waiter(QUEUE, worker.name, "default")
    try:
        # Its consumer then claims every second.
        with pytest.raises(StorageFault, match="WRONGTYPE"):
            await waiter.wait(0.01)
        assert await client.enqueue(a_job("a"), a_job("b")) == ["queued", "queued"]
        assert await waiter.wait(5)
    finally:
        await waiter.aclose()
    reply = await worker.ask(1)
    assert (len(reply.jobs), reply.has_more) == (1, True)
    assert await worker.settle(reply.jobs[0], stalled())
    assert await storage.retire(QUEUE, worker.name) == 0
    assert (await storage.stats(QUEUE)).queued == 2
