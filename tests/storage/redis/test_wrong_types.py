"""A key of the wrong type, which a stranger must have written, stops a call at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import redis

from headrace.errors import StorageFault
from headrace.job import Claim, JobState
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.storage.values import Report, Settlement
from headrace.testing.contract.fixtures import Dump
from headrace.testing.contract.steps import (
    ANY_OUTCOME,
    QUEUE,
    Client,
    Incarnation,
    a_job,
    completed,
    stalled,
)
from tests.storage.redis.conftest import ROOT
from tests.support import leaks

Step = Callable[[Storage, Client, Incarnation], Awaitable[object]]
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
    "watch": lambda s, c, w: s.watch(QUEUE, ["x"], channel="hr:{acme}:inbox:0"),
    "put_back": lambda s, c, w: s.put_back(QUEUE, w.name, [("x", CLAIM)]),
    "purge": lambda s, c, w: s.purge(QUEUE, JobState.QUEUED, ["x"]),
    "redrive": lambda s, c, w: s.redrive(QUEUE, ["x"]),
    "get": lambda s, c, w: s.get(QUEUE, "x"),
    "report": lambda s, c, w: s.report(QUEUE, [SAID]),
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


BESIDE: dict[str, tuple[str, Step]] = {
    "enqueue to the lane of its task": (
        "lanes",
        lambda s, c, w: c.enqueue(a_job("new", b"." * 100, lane="", priority=9)),
    ),
    "register": (
        "lanes",
        lambda s, c, w: Incarnation(s, "w9", tasks={"send": "gpu"}).register(),
    ),
    "register in the default lane": (
        "lanes",
        lambda s, c, w: Incarnation(s, "w9", tasks={"send": "default"}).register(),
    ),
    "report": ("output:x", lambda s, c, w: s.report(QUEUE, [SAID])),
    "output": ("output:x", lambda s, c, w: s.output(QUEUE, "x")),
}


@pytest.mark.parametrize("verb", BESIDE)
async def test_what_lies_beside_records_stops_the_call_the_same(
    storage: Storage,
    client: Client,
    worker: Incarnation,
    dump: Dump,
    server: redis.Redis,
    *,
    verb: str,
) -> None:
    await client.enqueue(a_job())
    [job] = (await worker.ask(nonce=CLAIM.nonce)).jobs
    key, step = BESIDE[verb]
    server.set(f"{ROOT}:{key}", "a stranger's")
    before = await dump()
    with pytest.raises(StorageFault, match="WRONGTYPE"):
        await step(storage, client, worker)
    assert await dump() == before
    # It goes with the job that it pretends to be of.
    assert await worker.settle(job, completed(keep_ms=0))
    server.delete(f"{ROOT}:lanes")
    assert leaks.problems(server) == []


async def test_a_token_of_the_wrong_type_holds_no_job_up(
    storage: Storage, client: Client, worker: Incarnation, server: redis.Redis
) -> None:
    server.set(f"{ROOT}:wake:default", "a stranger's")
    assert await client.enqueue(a_job("a"), a_job("b")) == ["queued", "queued"]
    waiter = storage.open_waiter(QUEUE, worker.name, "default")
    try:
        # Its consumer then claims every second.
        with pytest.raises(StorageFault, match="WRONGTYPE"):
            await waiter.wait(0.01)
    finally:
        await waiter.aclose()
    reply = await worker.ask(1)
    assert (len(reply.jobs), reply.has_more) == (1, True)
    assert await worker.settle(reply.jobs[0], stalled())
    assert await storage.retire(QUEUE, worker.name) == 0
    assert (await storage.stats(QUEUE)).queued == 2
    server.delete(f"{ROOT}:wake:default")
