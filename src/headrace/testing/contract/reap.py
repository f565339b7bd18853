"""Contract of ``reap``: what a dead worker held is taken back (G3, G9)."""

from __future__ import annotations

from headrace.storage import FailReason, JobState, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    DEATH,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    ids,
    left_events,
)


class ReapContract(Contract):
    """Tests of ``reap``."""

    async def test_a_dead_workers_jobs_return_to_the_head_charged_one_stall(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await bring(JobState.ACTIVE, client, worker)
        await client.enqueue(a_job("behind"))
        now = await advance(20_000)
        assert await worker.reap_once() == 0
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.changed_ms) == (JobState.QUEUED, now)
        assert (record.failures, record.stalls, record.starts) == (0, 1, 1)
        [error] = record.errors
        assert (error.type, error.start, error.at_ms) == (DEATH.type, 1, now)
        jobs = await other.claim()
        assert ids(jobs) == ["x", "behind"]
        assert (jobs[0].stalls, jobs[0].claim.epoch, jobs[1].stalls) == (1, 2, 0)

    async def test_an_incarnation_whose_beat_moved_lives(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await bring(JobState.ACTIVE, client, worker)
        worker.beat()
        before = await dump()
        assert await worker.reap_once(seen=0) is None
        assert await dump() == before
        assert not worker.beat().is_gone
        assert [job_id for job_id, _ in await storage.held(QUEUE, worker.name)] == ["x"]

    async def test_an_unknown_incarnation_has_moved(self, storage: Storage, dump: Dump) -> None:
        before = await dump()
        assert await storage.reap(QUEUE, "nobody", seen=0, error=DEATH) is None
        assert await dump() == before

    async def test_exactly_max_stalls_deaths_make_a_dead_letter(
        self, storage: Storage, client: ContractClient
    ) -> None:
        # BC-14: a poison pill.
        await client.enqueue(a_job(max_stalls=2, payload=b"." * 100))
        for death in range(2):
            record = await storage.get(QUEUE, "x")
            assert record is not None
            assert (record.state, record.stalls) == (JobState.QUEUED, death)
            victim = await ContractIncarnation(storage, f"victim-{death}").register()
            assert (await victim.claim_one()).stalls == death
            await victim.die()
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.reason) == (JobState.FAILED, FailReason.STALLED)
        assert (record.failures, record.stalls, record.starts) == (0, 2, 2)
        assert [error.type for error in record.errors] == [DEATH.type] * 2

    async def test_only_what_was_held_at_the_death_is_charged(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await client.enqueue(*(a_job(name) for name in "abc"))
        await worker.claim_one()
        await other.claim_one()
        await worker.die()
        records = [await storage.get(QUEUE, name) for name in "abc"]
        assert [record and record.stalls for record in records] == [1, 0, 0]
        assert await storage.held(QUEUE, other.name) != []

    async def test_a_thousand_held_jobs_are_taken_back_200_a_call(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        # BC-64.
        for start in (0, 500):
            await client.enqueue(*(a_job(f"{n}") for n in range(start, start + 500)))
        while await worker.claim():
            pass
        left: list[int | None] = []
        while not left or left[-1]:
            left.append(await worker.reap_once())
            # Listed as condemned until the last is back.
            assert await storage.forget(QUEUE, worker.name) is (left[-1] == 0)
        assert left == [800, 600, 400, 200, 0]
        found = [ids(await other.claim()) for _ in range(2)]
        assert sorted(found[0] + found[1], key=int) == [str(n) for n in range(1000)]

    async def test_the_first_call_leaves_an_event(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(250)))
        await worker.claim()
        assert await worker.reap_once(seen=9) is None
        assert await left_events(storage) == []
        assert await worker.reap_once() == 50
        await worker.die()
        await storage.retire(QUEUE, worker.name)
        [event] = await left_events(storage)
        assert (event.job_id, event.incarnation, event.detail) == ("w1", "w1", "reaped")
        assert (event.worker, event.host) == ("mailer", "host-1")
        assert (event.version, event.app_version) == ("1.2.3", "2025-11")

    async def test_a_condemned_incarnation_is_reaped_whatever_beat_the_sweep_saw(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await bring(JobState.ACTIVE, client, worker)
        assert await worker.reap_once() == 0
        assert await worker.reap_once(seen=99) == 0

    async def test_a_job_does_not_expire_while_its_worker_is_dead(
        self,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await bring(JobState.ACTIVE, client, worker, expires_in_ms=10_000)
        await advance(20_000)
        await worker.die()
        job = await other.claim_one()
        assert (job.claim.epoch, job.stalls) == (2, 1)
