"""Who is taken for dead, by a clock that the test moves: one look of the sweep at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from headrace import App, JobState, Worker
from headrace.app import clients_of
from headrace.errors import StorageFault
from headrace.events import JobsReconciled, LoopFailed, WorkerReaped
from headrace.job import ClaimedJob, new_job_id
from headrace.storage.base import Storage
from headrace.storage.incarnations import Beat, IncarnationInfo
from headrace.storage.values import CallId
from headrace.testing import EventLog
from headrace.testing.contract.bulk_steps import ContractWriter
from headrace.testing.contract.steps import a_job
from headrace.worker.end_observer import LOOK_S
from headrace.worker.execute import Executor
from headrace.worker.incarnation import Incarnation
from headrace.worker.slots import Slots
from headrace.worker.sweep import PUBLISHED_A_SWEEP, Sweeper
from tests.crash.crew import passed
from tests.storage.foreign import CountingStorage, OldStorage
from tests.support.openings import opening
from tests.support.redis_server import RedisServer

QUEUE = "default"
LEASE_S = 15.0


class Hand:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += seconds


class Watcher:
    """One incarnation that sweeps, and the clock that it sweeps by."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.clock = Hand()
        self.log = EventLog()
        self.incarnation = Incarnation(
            storage,
            queue=QUEUE,
            incarnation=new_job_id(),
            lease_s=LEASE_S,
            executor=Executor({}, middleware=(), state=None),
            lanes={"default": Slots(1, {QUEUE: 1})},
            emit=self.log,
        )
        self.sweeper = Sweeper(self.incarnation, interval_s=5.0, monotonic=self.clock)

    async def look(self, *, after: float = 0.0) -> float:
        self.clock.move(after)
        return await self.sweeper.sweep_once()

    @property
    def reaped(self) -> list[str]:
        return [event.incarnation for event in self.log.of(WorkerReaped)]


async def register(storage: Storage, incarnation: str, *, lease_s: float = LEASE_S) -> None:
    worker = IncarnationInfo(
        incarnation=incarnation,
        name="w",
        host="h",
        pid=1,
        version="0",
        concurrency=1,
        lease_ms=round(lease_s * 1000),
        registered_ms=0,
    )
    await storage.register(QUEUE, worker)


async def claim(storage: Storage, incarnation: str, *, number: int = 1) -> list[ClaimedJob]:
    call = CallId(incarnation, number)
    nonce = f"{incarnation}/{number}"
    return (await storage.claim(QUEUE, call=call, nonce=nonce, slots={"default": 10})).jobs


def beat(storage: Storage, incarnation: str) -> None:
    beater = storage.open_beater(timeout_s=5)
    beater.beat(QUEUE, incarnation)
    beater.close()


@asynccontextmanager
async def watcher_of(app: App[None]) -> AsyncIterator[Watcher]:
    storage = clients_of(app).open_storage()
    try:
        watcher = Watcher(storage)
        await register(storage, watcher.incarnation.id)
        yield watcher
    finally:
        await storage.aclose()


async def test_a_silent_incarnation_is_reaped_after_its_lease_and_three_looks(
    app: App[None],
) -> None:
    async with watcher_of(app) as watcher:
        await app.enqueue("task", queue=QUEUE)
        await register(watcher.storage, "silent")
        (job,) = await claim(watcher.storage, "silent")
        await watcher.look()
        await watcher.look(after=5)
        await watcher.look(after=5)
        assert watcher.reaped == []
        await watcher.look(after=5)
        assert watcher.reaped == ["silent"]
        record = await app.job(job.id).status()
        # G9: a stall, and no attempt.
        assert (record.state, record.stalls, record.failures) == (JobState.QUEUED, 1, 0)
        assert record.errors[0].type == "WorkerDied"
        assert "silent" in record.errors[0].message


async def test_each_is_judged_by_its_own_lease(app: App[None]) -> None:
    async with watcher_of(app) as watcher:
        await register(watcher.storage, "quick", lease_s=1)
        await register(watcher.storage, "patient", lease_s=100)
        await watcher.look()
        for _ in range(5):
            await watcher.look(after=1)
        assert watcher.reaped == ["quick"]
        for _ in range(4):
            await watcher.look(after=30)
        assert watcher.reaped == ["quick", "patient"]


async def test_one_that_beats_is_never_reaped(app: App[None]) -> None:
    async with watcher_of(app) as watcher:
        await register(watcher.storage, "alive")
        for _ in range(10):
            beat(watcher.storage, "alive")
            await watcher.look(after=14)
        assert watcher.reaped == []


async def test_a_watcher_that_looks_too_seldom_condemns_nobody(app: App[None]) -> None:
    # The lease may have passed while the watcher itself, or the server, stood still.
    async with watcher_of(app) as watcher:
        await register(watcher.storage, "alive")
        await watcher.look()
        for after in (3_600, 0.01, 0.01, 0.01):
            await watcher.look(after=after)
        assert watcher.reaped == [], "looks in quick succession are one look"
        beat(watcher.storage, "alive")
        for _ in range(3):
            await watcher.look(after=4)
        assert watcher.reaped == []


async def test_a_watcher_whose_own_beats_go_unanswered_condemns_nobody(app: App[None]) -> None:
    """G9: a full disk, or a server that refuses writes, can be read and keeps all from beating."""
    async with watcher_of(app) as watcher:
        await register(watcher.storage, "other")
        lease = watcher.incarnation.lease
        await watcher.look()
        await watcher.look(after=5)
        answered_at, lease.acked_at = lease.acked_at, lease.acked_at - LEASE_S
        for _ in range(4):
            await watcher.look(after=5)
        lease.acked_at = answered_at
        for _ in range(3):
            await watcher.look(after=5)
        assert watcher.reaped == []
        await watcher.look(after=5)
        assert watcher.reaped == ["other"]


async def test_the_next_look_comes_when_a_suspicion_ripens(app: App[None]) -> None:
    async with watcher_of(app) as watcher:
        assert await watcher.look() == 5.0, "it is alone"
        await register(watcher.storage, "silent", lease_s=6)
        assert await watcher.look() == 2.0
        assert await watcher.look(after=2) == 2.0
        assert await watcher.look(after=1.5) == 2.0
        assert await watcher.look(after=2) == 0.5
        await watcher.look(after=0.5)
        assert watcher.reaped == ["silent"]


async def test_a_watcher_never_condemns_itself(app: App[None]) -> None:
    async with watcher_of(app) as watcher:
        for _ in range(5):
            await watcher.look(after=60)
        assert watcher.reaped == []
        assert watcher.incarnation.id in await watcher.storage.beats(QUEUE)


async def test_a_dead_one_is_listed_for_one_more_lease_and_then_forgotten(app: App[None]) -> None:
    async with watcher_of(app) as watcher:
        await register(watcher.storage, "silent")
        for _ in range(4):
            await watcher.look(after=5)
        assert watcher.reaped == ["silent"]
        assert (await watcher.storage.beats(QUEUE))["silent"].is_condemned
        for _ in range(5):
            await watcher.look(after=5)
        assert "silent" not in await watcher.storage.beats(QUEUE)
        assert watcher.reaped == ["silent"]


async def test_two_watchers_charge_one_stall(app: App[None]) -> None:
    async with watcher_of(app) as first, watcher_of(app) as second:
        await app.enqueue("task", queue=QUEUE)
        await register(first.storage, "silent")
        (job,) = await claim(first.storage, "silent")
        for _ in range(6):
            beat(first.storage, first.incarnation.id)
            beat(second.storage, second.incarnation.id)
            await first.look(after=5)
            await second.look(after=5)
        assert (await app.job(job.id).status()).stalls == 1


async def test_many_jobs_of_a_dead_one_are_all_taken_back(app: App[None]) -> None:
    # More than one call of `reap` takes.
    async with watcher_of(app) as watcher:
        jobs = 450
        for _ in range(jobs):
            await app.enqueue("task", queue=QUEUE)
        await register(watcher.storage, "silent")
        call = CallId("silent", 1)
        reply = await watcher.storage.claim(
            QUEUE, call=call, nonce="silent/1", slots={"default": 500}
        )
        assert len(reply.jobs) == jobs
        for _ in range(4):
            await watcher.look(after=5)
        stats = await app.queue(QUEUE).stats()
        assert (stats.queued, stats.active, stats.last_minute.stalled) == (jobs, 0, jobs)


async def test_what_the_storage_counts_as_ours_is_handed_back_after_two_looks(
    app: App[None],
) -> None:
    # A claim whose answer never came, or a restored backup: BC-11.
    async with watcher_of(app) as watcher:
        await app.enqueue("task", queue=QUEUE)
        (job,) = await claim(watcher.storage, watcher.incarnation.id)
        await watcher.look()
        assert (await app.job(job.id).status()).state is JobState.ACTIVE
        await watcher.look(after=5)
        record = await app.job(job.id).status()
        assert (record.state, record.stalls, record.failures) == (JobState.QUEUED, 0, 0)
        assert [event.count for event in watcher.log.of(JobsReconciled)] == [1]


async def test_a_beat_that_finds_nobody_fences_a_session_unless_it_has_retired(
    app: App[None],
) -> None:
    # The first beat of a worker that ends at once may come after its farewell.
    storage = clients_of(app).current().storage
    for is_retired in (False, True):
        watcher = Watcher(storage)
        await register(storage, watcher.incarnation.id)
        beater = storage.open_beater(timeout_s=5)
        if is_retired:
            await watcher.incarnation.retire()
        else:
            assert await storage.retire(QUEUE, watcher.incarnation.id) == 0
        reply = beater.beat(QUEUE, watcher.incarnation.id)
        beater.close()
        assert reply.is_gone
        watcher.incarnation.lease.on_beat_reply(reply)
        assert watcher.incarnation.lease.is_gone.is_set() is not is_retired


async def commit_pieces(storage: Storage, n: int, payload: bytes = b"[]") -> None:
    """Commit a write that is published in so many pieces, and leave it."""
    writer = ContractWriter(storage, queue=QUEUE)
    for piece in range(n):
        await writer.stage(a_job(f"{piece}", payload))
    await writer.commit()


async def queued(storage: Storage) -> int:
    return (await storage.stats(QUEUE)).queued


async def test_what_was_committed_and_left_is_published_in_pieces(app: App[None]) -> None:
    async with watcher_of(app) as watcher:
        await commit_pieces(watcher.storage, 2 * PUBLISHED_A_SWEEP + 1)
        seen = []
        for _ in range(4):
            next_s = await watcher.look()
            seen.append((await queued(watcher.storage), next_s == 0))
        n = PUBLISHED_A_SWEEP
        assert seen == [(n, True), (2 * n, True), (2 * n + 1, False), (2 * n + 1, False)]


class Slow(CountingStorage):
    """Answers a sweep when a worker has looked several times whether it is to end."""

    async def beats(self, queue: str) -> dict[str, Beat]:
        await passed(4 * LOOK_S)
        return await self._inner.beats(queue)


async def test_a_burst_ends_once_it_has_run_what_was_committed_and_left(app: App[None]) -> None:
    ran = []

    @app.task(name="send")
    async def send() -> None:
        ran.append(1)

    pieces = 2 * PUBLISHED_A_SWEEP + 1
    await commit_pieces(clients_of(app).current().storage, pieces, b"{}")
    slow = Slow(clients_of(app).open_storage())
    with clients_of(app).replaced(opening(lambda: slow)):
        await Worker(app, burst=True).run()
        await app.aclose()
    assert len(ran) == pieces


class Unpublished(CountingStorage):
    """Can't publish: what is committed there is damaged."""

    async def publish(self, queue: str) -> int:
        raise StorageFault(f"what {queue} has committed can't be read")


async def test_a_burst_waits_for_no_sweep_that_fails_each_time(app: App[None]) -> None:
    damaged = Unpublished(clients_of(app).open_storage())
    log = EventLog()
    with clients_of(app).replaced(opening(lambda: damaged)):
        await Worker(app, [QUEUE], emit=log, burst=True).run()
        await app.aclose()
    assert "StorageFault" in log.of(LoopFailed)[0].error


async def test_two_sweeps_publish_each_job_once(app: App[None]) -> None:
    async with watcher_of(app) as one, watcher_of(app) as other:
        await commit_pieces(one.storage, 30)
        async with anyio.create_task_group() as group:
            group.start_soon(one.look)
            group.start_soon(other.look)
        stats = await one.storage.stats(QUEUE)
        assert (stats.queued, stats.enqueued) == (30, 30)


async def test_a_storage_without_bulk_writes_is_swept_without_them(app: App[None]) -> None:
    storage = clients_of(app).current().storage
    watcher = Watcher(OldStorage(storage))
    await register(storage, watcher.incarnation.id)
    await commit_pieces(storage, 1)
    assert await watcher.look() > 0
    assert await queued(storage) == 0


async def test_a_full_storage_takes_no_jobs_and_is_swept_all_the_same() -> None:
    with RedisServer() as server:
        async with App(server.url) as app, watcher_of(app) as watcher:
            await commit_pieces(watcher.storage, 2, b"x" * 900_000)
            with server.client() as client:
                client.config_set("maxmemory", 1_000_000)
                assert await watcher.look() > 0
                assert await queued(watcher.storage) == 0
                client.config_set("maxmemory", 0)
            assert await watcher.look() > 0
            assert await queued(watcher.storage) == 2
