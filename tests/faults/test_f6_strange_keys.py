"""F6: strange keys, entries and fields are set aside, and nothing fails half-way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import pytest
import redis

from headrace.job import Claim, JobState
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.storage.values import Report, Settlement
from headrace.testing.contract.steps import (
    ANY_OUTCOME,
    DEATH,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    failed,
    ids,
    record_of,
    retried,
    started,
    state_of,
)
from tests.storage.conftest import RedisSubject
from tests.support import leaks
from tests.support.redis_server import RedisServer

ROOT = "hr:{acme:mail}"
BUCKET_MS = 10_000


class Stage(NamedTuple):
    """An empty queue, who enqueues to it and who works on it."""

    storage: Storage
    client: ContractClient
    worker: ContractIncarnation
    server: redis.Redis

    def plant(self, name: str) -> None:
        """Put a key of the wrong type in a key's place."""
        if name.startswith("stats"):
            now = int(self.server.get("headrace-test:now-ms") or 0)
            name = f"stats:{now - now % BUCKET_MS}"
        key = f"{ROOT}:{name}"
        self.server.delete(key)
        if name.startswith(("calls", "payload", "result")):
            self.server.rpush(key, "a stranger's")
        else:
            self.server.set(key, "a stranger's")

    def problems(self) -> list[str]:
        return leaks.problems(self.server)


@pytest.fixture
async def stage(redis_server: RedisServer) -> AsyncIterator[Stage]:
    with redis_server.client() as server:
        server.flushall()
        subject = RedisSubject(redis_server.url)
        storage = subject.storage
        worker = await ContractIncarnation(storage, "w1").register()
        try:
            yield Stage(storage, ContractClient(storage), worker, server)
        finally:
            await subject.aclose()
            server.flushall()


KEYS = [
    *("counts", "ready:default:5", "ready:default:9", "delayed", "finished", "dead", "events"),
    *("stats", "config", "lanes", "wake:default", "processing:w1", "cancels:w1", "calls:c1:1"),
    *("job:a", "payload:a", "errors:a", "result:a", "output:a", "beats", "woken", "damaged"),
    "readers",
]


@pytest.mark.parametrize("key", KEYS)
async def test_jobs_live_on_as_if_a_strange_key_were_not_there(stage: Stage, key: str) -> None:
    storage, client, worker, server = stage
    stage.plant(key)
    big = b"." * 100
    assert (
        await client.enqueue(
            a_job("a", big), a_job("b", priority=9), a_job("c"), a_job("d", lane=""), a_job("e")
        )
        == ["queued"] * 5
    )
    assert await client.enqueue(a_job("later", delay_ms=60_000)) == ["scheduled"]
    assert await storage.cancel(QUEUE, ["e"]) == ["cancelled"]
    jobs = {job.id: job for job in await worker.claim()}
    assert set(jobs) == {"a", "b", "c", "d"}
    assert jobs["a"].payload == big
    assert await storage.cancel(QUEUE, ["d"]) == ["requested"]
    assert await worker.report(jobs["a"], 0.5, "half", chunks=[b"1"])
    assert await worker.settle(jobs["a"], retried(0))
    assert await worker.settle(jobs["b"], completed(big))
    assert await worker.settle(jobs["c"], failed())
    assert await worker.settle(jobs["d"], retried(0))
    [again] = await worker.claim()
    assert (again.id, again.failures) == ("a", 1)
    assert await worker.settle(again, completed(big))
    assert (await storage.watch(QUEUE, ["a"], channel=""))[0].result == big
    assert await state_of(storage, "d") is JobState.CANCELLED
    assert not worker.beat().is_gone
    stats = await storage.stats(QUEUE)
    assert (stats.queued, stats.scheduled, stats.active, stats.dead) == (0, 1, 0, 1)
    assert await storage.redrive(QUEUE, ["c"]) == 1
    assert await storage.prune(QUEUE) == ""
    assert await storage.retire(QUEUE, worker.name) == 0
    # What nobody needed to write to is still there.
    for name in (f"{ROOT}:{key}", f"{ROOT}:damaged"):
        if server.type(name) == b"string":
            server.delete(name)
    assert stage.problems() == []


CLAIM = Claim(1, "w1/0")
Step = Callable[[Storage, ContractClient, ContractIncarnation], Awaitable[object]]


def settling(outcome: Outcome) -> Step:
    """Return the step that settles job x with an outcome."""
    return lambda s, c, w: w.settle_all(Settlement("x", CLAIM, 1, outcome))


async def _acknowledge_twice(storage: Storage) -> None:
    for stream_id in ("0", "9999999999999-0"):
        await storage.acknowledge(QUEUE, "archive", stream_id)
    [reader] = await storage.readers(QUEUE)
    assert reader.name == "archive"


VERBS: dict[str, Step] = {
    "enqueue": lambda s, c, w: c.enqueue(a_job("new"), a_job("x"), a_job("z", lane="", priority=9)),
    "enqueue later": lambda s, c, w: c.enqueue(a_job("new", delay_ms=9)),
    "cancel": lambda s, c, w: s.cancel(QUEUE, ["x", "q"]),
    "watch": lambda s, c, w: s.watch(QUEUE, ["x", "f"], channel="hr:{acme}:channel:0"),
    "claim": lambda s, c, w: w.claim(),
    "put_back": lambda s, c, w: s.put_back(QUEUE, w.name, [("x", CLAIM)]),
    "report": lambda s, c, w: s.report(QUEUE, [Report("x", CLAIM, 0.5, "half", [b"1"], 0)]),
    "held": lambda s, c, w: s.held(QUEUE, w.name),
    "retire": lambda s, c, w: s.retire(QUEUE, w.name),
    "register": lambda s, c, w: ContractIncarnation(s, "w9", tasks={"send": "gpu"}).register(),
    "reap": lambda s, c, w: s.reap(QUEUE, w.name, seen=0, error=DEATH),
    "forget": lambda s, c, w: s.forget(QUEUE, w.name),
    "prune": lambda s, c, w: s.prune(QUEUE),
    "get": lambda s, c, w: s.get(QUEUE, "x"),
    "why": lambda s, c, w: s.why(QUEUE, "x"),
    "why of one that waits": lambda s, c, w: s.why(QUEUE, "q"),
    "output": lambda s, c, w: s.output(QUEUE, "x"),
    "stats": lambda s, c, w: s.stats(QUEUE),
    "workers": lambda s, c, w: s.workers(QUEUE),
    "acknowledge": lambda s, c, w: s.acknowledge(QUEUE, "archive", "9999999999999-0"),
    "acknowledge again": lambda s, c, w: _acknowledge_twice(s),
    "event_place": lambda s, c, w: s.event_place(QUEUE, 10**15),
    "event_span": lambda s, c, w: s.event_span(QUEUE),
    "forget_reader": lambda s, c, w: s.forget_reader(QUEUE, "archive"),
    "readers": lambda s, c, w: s.readers(QUEUE),
    "pause": lambda s, c, w: s.pause(QUEUE),
    "resume": lambda s, c, w: s.resume(QUEUE),
    "redrive": lambda s, c, w: s.redrive(QUEUE, ["f"]),
    "purge": lambda s, c, w: s.purge(QUEUE, JobState.QUEUED, ["q"]),
    **{f"list {state.value}": _list for state, _list in (
        (state, (lambda s, c, w, state=state: s.list_jobs(QUEUE, state))) for state in JobState
    )},
    **{f"settle as {type(outcome).__name__.lower()}": settling(outcome) for outcome in ANY_OUTCOME},
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
async def test_no_verb_fails_when_a_key_turns_strange(stage: Stage, verb: str) -> None:
    storage, client, worker, server = stage
    for key in (*KEYS, "job:x", "errors:x", "output:x", "worker:w1", "job:q"):
        server.flushall()
        server.set("headrace-test:now-ms", 10**12)
        client, worker = (
            ContractClient(storage),
            await ContractIncarnation(storage, "w1").register(),
        )
        await client.enqueue(a_job("f"), a_job("x"), a_job("q"))
        await worker.settle(await worker.claim_one(), failed())
        await worker.ask(1, nonce=CLAIM.nonce)
        stage.plant(key)
        await VERBS[verb](storage, client, worker)


async def test_a_rubbish_entry_holds_nobody_up(stage: Stage) -> None:
    storage, client, worker, server = stage
    await client.enqueue(a_job("a"))
    server.lpush(f"{ROOT}:ready:default:5", "rubbish", b"\xff\xfe", "5:", "")
    server.zadd(f"{ROOT}:delayed", {b"nobody": 5, b"\xff": 1})
    server.sadd(f"{ROOT}:processing:w1", "nobody", b"\xff")
    assert (await storage.stats(QUEUE)).queued == 1
    assert [row.id for row in (await storage.list_jobs(QUEUE, JobState.QUEUED)).rows] == ["a"]
    assert ids(await worker.claim()) == ["a"]
    assert await storage.retire(QUEUE, "w1") == 0
    assert stage.problems() == []
    assert any(f.topic == "data" and "ready" in f.detail for f in await storage.diagnose())


RUBBISH_FIELDS = ["stalls", "failures", "expires_at_ms", "max_stalls", "head"]


@pytest.mark.parametrize("field", RUBBISH_FIELDS)
async def test_a_record_with_a_rubbish_field_becomes_a_dead_letter(
    stage: Stage, field: str
) -> None:
    storage, client, worker, server = stage
    await client.enqueue(a_job("x", options=b"{}"), a_job("y"))
    server.hset(f"{ROOT}:job:x", field, "rubbish\xff")
    assert ids(await worker.claim()) == ["y"]
    record = await record_of(storage, "x")
    assert (record.state, record.reason) == (JobState.FAILED, "undecodable")
    assert [error.type for error in record.errors] == ["DamagedRecord"]
    assert stage.problems() == []


@pytest.mark.parametrize(
    "field", [*RUBBISH_FIELDS, "tier", "lane", "keep_ms", "put_back_at_ms", "task"]
)
async def test_rubbish_in_the_record_of_an_active_job_stops_nobody(
    stage: Stage, field: str
) -> None:
    storage, client, worker, server = stage
    job = await started(client, worker, options=b"{}")
    server.hset(f"{ROOT}:job:x", field, b"rubbish \xff")
    await storage.get(QUEUE, "x")
    await storage.list_jobs(QUEUE, JobState.ACTIVE)
    assert await worker.settle(job, ANY_OUTCOME[4])
    await worker.die()
    assert await state_of(storage) in {JobState.SCHEDULED, JobState.FAILED}


@pytest.mark.parametrize("beat", [b"rubbish", b"", b"1 2", b"\xff"])
async def test_a_rubbish_beat_stops_no_sweep_and_its_worker_is_found(
    stage: Stage, beat: bytes
) -> None:
    storage, client, worker, server = stage
    await started(client, worker)
    server.hset(f"{ROOT}:beats", mapping={"w1": beat, b"\xff": "1 2 3"})
    assert (await storage.beats(QUEUE))["w1"].lease_ms == 15_000
    assert len(await storage.workers(QUEUE)) == 2
    await storage.stats(QUEUE)
    assert not worker.beat().is_gone
    server.hset(f"{ROOT}:beats", "w1", beat)
    await worker.die()
    assert (await record_of(storage)).stalls == 1


@pytest.mark.parametrize("value", ["rubbish", "9" * 40, "9223372036854775807"])
async def test_rubbish_in_counts_is_set_aside_alone(stage: Stage, value: str) -> None:
    storage, client, worker, server = stage
    server.hset(f"{ROOT}:counts", mapping={"queued": value, "elsewhere": value, "events": value})
    await storage.stats(QUEUE)
    await client.enqueue(a_job("x"), a_job("y", lane="gpu"))
    assert ids((await worker.ask(slots={"default": 5, "gpu": 5})).jobs) == ["x", "y"]
    assert (await storage.stats(QUEUE)).active == 2


SETTINGS = ["history", "dead_letters", "dead_letter_ttl_ms", "events", "events_cap", "has_readers"]


@pytest.mark.parametrize("setting", [*SETTINGS, "layout"])
async def test_rubbish_in_a_setting_is_taken_for_its_default(stage: Stage, setting: str) -> None:
    storage, client, worker, server = stage
    server.hset(f"{ROOT}:config", mapping={"is_set": "1", setting: "rubbish"})
    await ContractIncarnation(storage, "w2").register()
    job = await started(client, worker)
    assert await worker.settle(job, failed())
    assert (await storage.stats(QUEUE)).dead == 1
    assert stage.problems() == []
