"""Contract of fairness: the keys of a lane and tier take turns; see `Limiter`."""

from __future__ import annotations

from typing import Any

from headrace.storage import (
    FAIR_LIMIT,
    CancelOutcome,
    EnqueueOutcome,
    Gate,
    JobEventKind,
    JobRequest,
    JobState,
    Storage,
    Terms,
    Update,
    gates_text,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.repair import repair_all
from headrace.testing.contract.steps import (
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    completed,
    failed,
    gate_counts,
    ids,
    record_of,
    retried,
    state_of,
)

BLOCKED, QUEUED = EnqueueOutcome.BLOCKED, EnqueueOutcome.QUEUED
ONE = Terms(1)
WINDOW = "fair:default:5"


def a_fair_job(job_id: str, key: str = "", **options: Any) -> JobRequest:
    """Return a job that takes turns with those of other keys."""
    return a_gated_job(job_id, key, name=FAIR_LIMIT, **options)


def of_key(key: str, count: int) -> list[JobRequest]:
    """Return so many jobs of one key, which is part of their ids."""
    return [a_fair_job(f"{key}{n}", key) for n in range(1, count + 1)]


async def started_one_by_one(worker: ContractIncarnation, count: int) -> list[str]:
    """Claim so many jobs with one slot, and end each before the next."""
    started = []
    for _ in range(count):
        job = await worker.claim_one()
        started.append(job.id)
        assert await worker.settle(job, completed())
    return started


class TurnsContract(Contract):
    """Tests of jobs whose keys take turns."""

    async def test_keys_take_turns(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        assert await client.enqueue(*of_key("a", 4)) == [QUEUED, *[BLOCKED] * 3]
        await client.enqueue(*of_key("b", 2), *of_key("c", 1))
        assert await gate_counts(storage, "a", name=WINDOW) == (1, 0, 3)
        started = await started_one_by_one(worker, 7)
        assert started == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]

    async def test_a_claim_of_many_takes_what_as_many_claims_would(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*of_key("a", 4), *of_key("b", 2), a_job("free"), *of_key("c", 1))
        assert ids(await worker.claim(5)) == ["a1", "b1", "free", "c1", "a2"]
        assert ids(await worker.claim(5)) == ["b2", "a3", "a4"]
        assert await gate_counts(storage, "a", name=WINDOW) == (0, 0, 0)

    async def test_one_key_alone_fills_all_slots(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        jobs = of_key("a", 40)
        await client.enqueue(*jobs)
        assert ids(await worker.claim(30)) == [job.id for job in jobs[:30]]
        assert await gate_counts(storage, "a", name=WINDOW) == (1, 0, 9)

    async def test_who_comes_late_waits_for_one_of_each_other_key_at_most(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        keys = [f"key{n}-" for n in range(5)]
        for key in keys:
            await client.enqueue(*of_key(key, 20))
        await started_one_by_one(worker, 13)
        await client.enqueue(*of_key("late", 3))
        started = await started_one_by_one(worker, 18)
        assert [started.index(f"late{n}") for n in (1, 2, 3)] == [5, 11, 17]

    async def test_a_claim_ends_in_bounded_time_and_says_that_there_is_more(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        jobs = of_key("a", 400)
        await client.enqueue(*jobs)
        reply = await worker.ask(400)
        assert 100 <= len(reply.jobs) < 200
        assert reply.has_more
        more = ids(await worker.claim(400))
        assert more[0] == f"a{len(reply.jobs) + 1}"

    async def test_jobs_that_take_no_turns_keep_their_place(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*of_key("a", 3), a_job("x"), a_job("y"))
        assert await started_one_by_one(worker, 5) == ["a1", "x", "y", "a2", "a3"]

    async def test_jobs_without_a_value_are_one_key(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        outcomes = await client.enqueue(
            a_fair_job("n1"), a_fair_job("n2"), a_fair_job("a1", "a"), a_job("x")
        )
        assert outcomes == [QUEUED, BLOCKED, QUEUED, QUEUED]
        assert await started_one_by_one(worker, 4) == ["n1", "a1", "x", "n2"]

    async def test_better_tiers_come_first_even_within_a_claim(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        urgent = [a_fair_job(f"u{n}", "a", priority=9) for n in (1, 2, 3)]
        assert await client.enqueue(*of_key("a", 2), *urgent) == [
            *(QUEUED, BLOCKED),
            *(QUEUED, BLOCKED, BLOCKED),
        ]
        assert ids(await worker.claim(4)) == ["u1", "u2", "u3", "a1"]
        assert (await record_of(storage, "u1")).gates == "fair:default:9\ta"

    async def test_a_key_waits_in_each_lane_by_itself(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        outcomes = await client.enqueue(a_fair_job("gpu", "a", lane="gpu"), *of_key("a", 1))
        assert outcomes == [QUEUED, QUEUED]
        assert ids(await worker.claim()) == ["a1"]

    async def test_the_lane_that_workers_have_said_is_that_of_the_turn(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await ContractIncarnation(storage, "w7", tasks={"send": "gpu"}).register()
        await client.enqueue(a_fair_job("a", "k", lane=""))
        assert (await record_of(storage, "a")).gates == "fair:gpu:5\tk"

    async def test_who_is_put_back_goes_first_and_takes_nobodys_turn(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*of_key("a", 3), *of_key("b", 2))
        a1 = await worker.claim_one()
        await storage.put_back(QUEUE, worker.name, [(a1.id, a1.claim)])
        assert await gate_counts(storage, "a", name=WINDOW) == (2, 0, 1)
        assert await started_one_by_one(worker, 5) == ["a1", "b1", "a2", "b2", "a3"]

    async def test_who_loses_its_worker_goes_first(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await client.enqueue(*of_key("a", 3), *of_key("b", 1))
        await other.claim_one()
        await other.die()
        assert await started_one_by_one(worker, 4) == ["a1", "b1", "a2", "a3"]

    async def test_a_retry_stands_behind_those_of_its_key(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(*of_key("a", 3), *of_key("b", 1))
        assert await worker.settle(await worker.claim_one(), retried(MINUTE_MS))
        await advance(MINUTE_MS)
        assert await started_one_by_one(worker, 4) == ["b1", "a2", "a3", "a1"]

    async def test_a_delayed_job_takes_its_turn_when_it_is_due(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_fair_job("later", "a", delay_ms=1_000), *of_key("a", 2))
        assert await gate_counts(storage, "a", name=WINDOW) == (1, 0, 1)
        await advance(1_000)
        assert await started_one_by_one(worker, 3) == ["a1", "a2", "later"]

    async def test_a_redriven_job_takes_a_turn_anew(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*of_key("a", 3))
        assert await worker.settle(await worker.claim_one(), failed())
        assert await storage.redrive(QUEUE, ["a1"]) == 1
        assert await state_of(storage, "a1") is JobState.BLOCKED
        assert await started_one_by_one(worker, 3) == ["a2", "a3", "a1"]

    async def test_who_waits_for_a_turn_and_has_no_place_in_a_limit_holds_up_no_other_key(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        def both(job_id: str, key: str) -> JobRequest:
            gates = [Gate("stripe", key, ONE), Gate(FAIR_LIMIT, key)]
            return a_job(job_id, gates=gates_text(gates))

        await client.enqueue(both("a1", "a"), both("a2", "a"), both("a3", "a"), both("b1", "b"))
        a1, b1 = await worker.claim()
        assert (a1.id, b1.id) == ("a1", "b1")
        assert await worker.claim() == []
        assert (await record_of(storage, "a2")).parked == "stripe\ta"
        await client.enqueue(both("b2", "b"), both("c1", "c"))
        assert await worker.settle(a1, completed())
        # It joins the tail now, behind those that came while it waited.
        assert ids(await worker.claim()) == ["c1", "a2"]
        assert await worker.settle(b1, completed())
        assert ids(await worker.claim()) == ["b2"]

    async def test_who_is_cancelled_or_purged_gives_up_its_turn(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*of_key("a", 6))
        assert await storage.cancel(QUEUE, ["a1", "a3"]) == [CancelOutcome.CANCELLED] * 2
        assert await gate_counts(storage, "a", name=WINDOW) == (1, 0, 3)
        assert await storage.purge(QUEUE, JobState.QUEUED, ["a2"]) == 1
        assert await storage.purge(QUEUE, JobState.BLOCKED, ["a5"]) == 1
        assert await started_one_by_one(worker, 2) == ["a4", "a6"]

    async def test_one_that_expires_gives_up_its_turn(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(
            a_fair_job("a1", "a", expires_in_ms=1_000),
            a_fair_job("a2", "a", expires_in_ms=1_000),
            a_fair_job("a3", "a"),
        )
        await advance(1_000)
        assert ids(await worker.claim()) == ["a3"]
        assert await state_of(storage, "a1") is JobState.FAILED
        assert await state_of(storage, "a2") is JobState.FAILED

    async def test_what_a_claim_brings_in_otherwise_waits_for_the_next(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        late = a_fair_job("late", "b", expires_in_ms=1_000, on_failed="mourn")
        await client.enqueue(*of_key("a", 2), late, *of_key("b", 1))
        await advance(1_000)
        assert ids(await worker.claim()) == ["a1", "a2", "b1"]
        assert [job.task for job in await worker.claim()] == ["mourn"]

    async def test_turns_begin_in_the_order_in_which_those_before_are_over(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*of_key("a", 3), *of_key("b", 2))
        a1 = await worker.claim_one()
        await storage.put_back(QUEUE, worker.name, [(a1.id, a1.claim)])
        # Two of one key are ready, and the turn of the other key is over between them.
        assert ids(await worker.claim()) == ["a1", "b1", "a2", "b2", "a3"]

    async def test_an_update_may_change_the_key_and_the_tier(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*of_key("a", 2), *of_key("b", 1))
        change = a_fair_job("a2", "c", priority=6, update=Update())
        assert await client.enqueue(change) == [EnqueueOutcome.UPDATED]
        record = await record_of(storage, "a2")
        assert (record.state, record.gates) == (JobState.QUEUED, "fair:default:6\tc")
        assert await started_one_by_one(worker, 3) == ["a2", "a1", "b1"]

    async def test_a_successor_takes_a_turn_when_it_enters(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_fair_job("x", "a"))
        x = await worker.claim_one()
        await client.enqueue(a_fair_job("x", "a", update=Update()), *of_key("a", 1))
        assert await worker.settle(x, completed())
        assert await state_of(storage, "x") is JobState.BLOCKED
        assert await started_one_by_one(worker, 2) == ["a1", "x"]

    async def test_the_events_tell_of_the_turn(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*of_key("a", 2))
        await worker.claim(2)
        events = [e for e in (await storage.events(QUEUE)).events if e.job_id == "a2"]
        assert [(event.kind, event.detail) for event in events] == [
            (JobEventKind.BLOCKED, "fair:default:5 a"),
            (JobEventKind.QUEUED, "admitted"),
            (JobEventKind.ACTIVE, ""),
        ]

    async def test_a_key_that_is_over_leaves_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await client.enqueue(
            a_fair_job("a", "customer-77", keep_ms=0), a_fair_job("b", "customer-77", keep_ms=0)
        )
        for _ in range(2):
            assert await worker.settle(await worker.claim_one(), completed(ttl_ms=0, keep_ms=0))
        assert not [key for key in await dump() if "customer-77" in key]

    async def test_a_repair_finds_nothing_wrong(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*of_key("a", 3), *of_key("b", 3))
        a1, _ = await worker.claim(2)
        await storage.put_back(QUEUE, worker.name, [(a1.id, a1.claim)])
        assert await repair_all(storage, is_full=True) == 0
        assert await gate_counts(storage, "a", name=WINDOW) == (2, 0, 1)
