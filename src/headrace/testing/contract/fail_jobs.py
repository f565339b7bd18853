"""Contract of fail jobs: what the step brings in that makes a job a dead letter (G8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from headrace.storage import (
    CallId,
    ClaimedJob,
    EnqueueOutcome,
    FailReason,
    JobRecord,
    JobState,
    Outcome,
    Settlement,
    Storage,
)
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    DEATH,
    ERROR,
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    failed,
    misfit,
    stalled,
)

TASK = "mourn"
ODD_ID = 'a "quoted"\\ 📮 id'


class FailingScene(NamedTuple):
    """What brings a job to its failure."""

    storage: Storage
    client: ContractClient
    worker: ContractIncarnation
    advance: Advance

    async def run(self, *outcomes: Outcome, **options: Any) -> None:
        """Enqueue a job and settle one attempt after the other, a second apart."""
        await self.client.enqueue(a_job(on_failed=TASK, **options))
        for outcome in outcomes:
            await self.worker.settle(await self.worker.claim_one(), outcome)
            await self.advance(1_000)

    async def outlast(self, **options: Any) -> None:
        """Enqueue a job that expires in 10 ms, and let 20 ms go by."""
        await self.client.enqueue(a_job(on_failed=TASK, expires_in_ms=10, **options))
        await self.advance(20)


async def _reaped(scene: FailingScene) -> None:
    dying = await ContractIncarnation(scene.storage, "w2").register()
    await scene.client.enqueue(a_job(on_failed=TASK, max_stalls=1))
    await dying.claim_one()
    seen = (await scene.storage.beats(QUEUE))["w2"].count
    await scene.storage.reap(QUEUE, "w2", seen=seen, error=DEATH)


async def _expired_before_its_time(scene: FailingScene) -> None:
    await scene.outlast(delay_ms=20)
    await scene.worker.claim(0)


async def _expired_in_line(scene: FailingScene) -> None:
    await scene.outlast()
    assert await scene.worker.claim() == []


async def _expired_as_it_was_watched(scene: FailingScene) -> None:
    await scene.outlast()
    channel = scene.storage.open_channel().name
    await scene.storage.watch(QUEUE, ["x"], channel=channel)


ENDINGS: dict[str, tuple[Callable[[FailingScene], Awaitable[None]], FailReason]] = {
    "exhausted": (lambda scene: scene.run(failed()), FailReason.EXHAUSTED),
    "undecodable": (
        lambda scene: scene.run(failed(FailReason.UNDECODABLE, is_attempt=False)),
        FailReason.UNDECODABLE,
    ),
    "put back too long": (lambda scene: scene.run(misfit(1), misfit(1)), FailReason.UNDECODABLE),
    "stalled": (lambda scene: scene.run(stalled(), max_stalls=1), FailReason.STALLED),
    "reaped": (_reaped, FailReason.STALLED),
    "expired before its time": (_expired_before_its_time, FailReason.EXPIRED),
    "expired in line": (_expired_in_line, FailReason.EXPIRED),
    "expired as it was watched": (_expired_as_it_was_watched, FailReason.EXPIRED),
}


async def brought(storage: Storage) -> list[JobRecord]:
    """Return the fail jobs that wait, in order."""
    rows = (await storage.list_jobs(QUEUE, JobState.QUEUED, limit=100)).rows
    records = [await storage.get(QUEUE, row.id) for row in rows if row.task == TASK]
    return [record for record in records if record is not None]


def failure_in(job: JobRecord | ClaimedJob) -> dict[str, Any]:
    """Return what a fail job's options say of the failed one."""
    options = msgspec.json.decode(job.options)
    assert list(options) == ["failed"]
    found: dict[str, Any] = options["failed"]
    return found


class FailJobsContract(Contract):
    """Tests of what ``on_failed`` brings."""

    @pytest.mark.parametrize("ending", ENDINGS)
    async def test_whatever_makes_a_dead_letter_brings_one_job_of_the_named_task(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        ending: str,
    ) -> None:
        fail, reason = ENDINGS[ending]
        await fail(FailingScene(storage, client, worker, advance))
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.reason, record.on_failed) == ("failed", reason, TASK)
        [job] = await brought(storage)
        failure = failure_in(job)
        assert (failure["id"], failure["task"], failure["reason"]) == ("x", "send", reason)
        assert failure["starts"] == record.starts
        last = record.errors[0] if record.errors else None
        assert (failure["error"] or {}).get("message") == (last and last.message)
        stats = await storage.stats(QUEUE)
        assert (stats.queued, stats.dead, stats.enqueued, stats.failed) == (1, 1, 2, 1)

    @pytest.mark.parametrize("size", [0, 64, 65, 300, 100_000])
    async def test_it_has_the_arguments_as_they_came_and_runs_like_any_other(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, size: int
    ) -> None:
        # BC-60: bytes that no parser has to understand.
        payload = bytes(255 - index % 256 for index in range(size))
        await client.enqueue(a_job(ODD_ID, payload, on_failed=TASK, priority=8))
        await worker.settle(await worker.claim_one(), failed())
        assert await storage.purge(QUEUE, JobState.FAILED, [ODD_ID]) == 1
        job = await worker.claim_one()
        assert (job.task, job.payload, job.failures, job.stalls) == (TASK, payload, 0, 0)
        assert failure_in(job) == {
            "id": ODD_ID,
            "task": "send",
            "reason": "exhausted",
            "failures": 1,
            "stalls": 0,
            "starts": 1,
            "error": {
                "type": ERROR.type,
                "message": ERROR.message,
                "traceback": ERROR.traceback,
            },
        }
        record = await storage.get(QUEUE, job.id)
        assert record is not None
        assert (record.priority, record.lane, record.on_failed) == (8, "default", "")
        assert await worker.settle(job, completed())

    async def test_it_waits_in_the_lane_of_its_task_and_wakes_who_serves_that(
        self, storage: Storage, client: ContractClient
    ) -> None:
        worker = await ContractIncarnation(storage, "w1", tasks={TASK: "process"}).register()
        await client.enqueue(a_job(on_failed=TASK))
        job = await worker.claim_one()
        waiter = storage.open_waiter(QUEUE, "w1", "process")
        await worker.settle(job, failed())
        assert await waiter.wait(2)
        await waiter.aclose()
        assert await worker.claim() == []
        [job] = await worker.claim(slots={"process": 1})
        assert job.task == TASK

    async def test_its_event_names_the_job_that_failed(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(ODD_ID, on_failed=TASK))
        await worker.settle(await worker.claim_one(), failed())
        [job] = await brought(storage)
        events = (await storage.events(QUEUE)).events
        told = [(e.kind, e.job_id, e.detail) for e in events if e.kind != "joined"]
        assert told == [
            ("queued", ODD_ID, ""),
            ("active", ODD_ID, ""),
            ("failed", ODD_ID, "exhausted"),
            ("queued", job.id, f"on_failed {ODD_ID}"),
        ]

    @pytest.mark.parametrize("queue_task", ["", "of-the-queue"])
    async def test_its_own_failure_brings_nothing(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        queue_task: str,
    ) -> None:
        await storage.configure(QUEUE, on_failed=queue_task)
        await client.enqueue(a_job(on_failed=TASK))
        await worker.settle(await worker.claim_one(), failed())
        job = await worker.claim_one()
        await worker.settle(job, failed())
        assert (await storage.stats(QUEUE)).queued == 0
        assert await storage.redrive(QUEUE, [job.id]) == 1
        await worker.settle(await worker.claim_one(), failed())
        assert (await storage.stats(QUEUE)).queued == 0

    async def test_what_the_queue_names_is_for_jobs_that_name_none(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("early"), a_job("own", on_failed="own"))
        await storage.configure(QUEUE, on_failed=TASK)
        assert (await storage.stats(QUEUE)).settings.on_failed == TASK
        await client.enqueue(a_job("plain", is_plain=True))
        for job in await worker.claim():
            await worker.settle(job, failed())
        jobs = await worker.claim()
        assert [job.task for job in jobs] == [TASK, "own", TASK]
        assert [failure_in(job)["id"] for job in jobs] == ["early", "own", "plain"]
        for job in jobs:
            await worker.settle(job, completed())
        await storage.configure(QUEUE, on_failed="")
        await bring(JobState.FAILED, client, worker)
        assert (await storage.stats(QUEUE)).queued == 0

    async def test_each_of_many_that_fail_at_once_brings_one(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        names = [f"x{n}" for n in range(100)]
        await client.enqueue(*(a_job(name, name.encode(), on_failed=TASK) for name in names))
        settlements = [Settlement(job.id, job.claim, 1, failed()) for job in await worker.claim()]
        assert await worker.settle_all(*settlements, number=1) == [True] * 100
        assert await worker.settle_all(*settlements, number=1) == [True] * 100
        assert await worker.settle_all(*settlements, number=2) == [True] * 100
        jobs = await brought(storage)
        assert [failure_in(job)["id"] for job in jobs] == names
        assert [job.payload for job in jobs] == [name.encode() for name in names]
        assert len({job.id for job in jobs}) == 100

    async def test_one_that_is_redriven_and_fails_again_brings_another(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(on_failed=TASK))
        await worker.settle(await worker.claim_one(), failed())
        assert (await worker.claim_one()).task == TASK
        assert await storage.redrive(QUEUE, ["x"]) == 1
        await worker.settle(await worker.claim_one(), failed())
        job = await worker.claim_one()
        assert (job.task, failure_in(job)["starts"]) == (TASK, 2)

    async def test_a_dead_letter_that_is_not_kept_brings_one_too(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.configure(QUEUE, dead_letters=0)
        payload = b"." * 1_000
        await client.enqueue(a_job(payload=payload, on_failed=TASK))
        await worker.settle(await worker.claim_one(), failed())
        assert await storage.get(QUEUE, "x") is None
        assert (await worker.claim_one()).payload == payload

    @pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.CANCELLED, JobState.QUEUED])
    async def test_any_other_end_brings_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        await bring(state, client, worker, on_failed=TASK)
        await storage.purge(QUEUE, state, ["x"])
        assert (await storage.stats(QUEUE)).queued == 0

    async def test_a_dead_letter_that_makes_room_or_is_purged_brings_no_more(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(on_failed=TASK), a_job("y", on_failed=TASK))
        for job in await worker.claim():
            await worker.settle(job, failed())
        await storage.purge(QUEUE, JobState.FAILED, ["x"])
        assert await client.enqueue(a_job("y")) == [EnqueueOutcome.QUEUED]
        assert len(await brought(storage)) == 2

    async def test_it_stays_in_the_queue_of_the_failed_one(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.enqueue("other", [a_job()], call=CallId("c2", 1))
        await client.enqueue(a_job(on_failed=TASK, delay_ms=MINUTE_MS), a_job("y", on_failed=TASK))
        await worker.settle(await worker.claim_one(), failed())
        assert (await storage.stats("other")).queued == 1
        assert [failure_in(job)["id"] for job in await brought(storage)] == ["y"]
