"""Contract of limits of concurrency: who is held up, where, and how it goes on; see `Limiter`."""

from __future__ import annotations

import pytest

from headrace.storage import (
    CancelOutcome,
    EnqueueOutcome,
    FailReason,
    Gate,
    GateInfo,
    JobEventKind,
    JobState,
    Outcome,
    Storage,
    Terms,
    gates_text,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    HOUR_MS,
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    cancelled,
    completed,
    failed,
    gate_counts,
    ids,
    record_of,
    retried,
    snoozed,
    stalled,
    state_of,
    unknown_task,
    wrong,
)

ONE, TWO = Terms(1), Terms(2)
BLOCKED, QUEUED = EnqueueOutcome.BLOCKED, EnqueueOutcome.QUEUED
LEAVING = [completed(), retried(), failed(), cancelled(), unknown_task(), snoozed()]


class GatesContract(Contract):
    """Tests of limits of concurrency."""

    async def test_a_job_without_room_is_blocked_and_has_no_place(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        outcomes = await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        assert outcomes == [QUEUED, BLOCKED]
        record = await record_of(storage, "b")
        assert (record.state, record.gates, record.parked) == (
            JobState.BLOCKED,
            "stripe\tk",
            "stripe\tk",
        )
        assert (await record_of(storage, "a")).parked == ""
        counts = await storage.stats(QUEUE)
        assert (counts.queued, counts.blocked) == (1, 1)
        assert await storage.gate(QUEUE, "stripe", "k") == GateInfo(
            name="stripe", key="k", terms=ONE, ready=1, active=0, blocked=1, tokens=0
        )
        assert ids(await worker.claim()) == ["a"]
        assert await gate_counts(storage, "k") == (0, 1, 1)

    async def test_a_repeated_call_answers_the_same(
        self, storage: Storage, client: ContractClient
    ) -> None:
        jobs = [a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE)]
        assert await client.enqueue(*jobs, number=1) == [QUEUED, BLOCKED]
        assert await client.enqueue(*jobs, number=1) == [QUEUED, BLOCKED]
        assert await gate_counts(storage, "k") == (1, 0, 1)

    async def test_the_id_of_a_blocked_job_is_a_duplicate(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        outcomes = await client.enqueue(a_gated_job("b", "k", ONE), a_job("b"))
        assert outcomes == [EnqueueOutcome.DUPLICATE] * 2
        assert await gate_counts(storage, "k") == (1, 0, 1)

    @pytest.mark.parametrize("outcome", LEAVING, ids=lambda outcome: type(outcome).__name__)
    async def test_a_place_is_given_back_in_the_step_that_ends_the_attempt(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        outcome: Outcome,
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        job = await worker.claim_one()
        assert await worker.settle(job, outcome)
        record = await record_of(storage, "b")
        assert (record.state, record.parked) == (JobState.QUEUED, "")
        assert (record.failures, record.stalls, record.starts) == (0, 0, 0)
        assert await gate_counts(storage, "k") == (1, 0, 0)
        assert ids(await worker.claim()) == ["b"]

    async def test_a_settlement_that_is_repeated_or_stale_gives_nothing_back_again(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", TWO) for name in "abcd"))
        a, b = await worker.claim(2)
        assert not await worker.settle(a, completed(), claim=wrong(a.claim, "nonce"))
        assert await worker.settle(a, completed())
        assert await worker.settle(a, completed())
        assert await gate_counts(storage, "k") == (1, 1, 1)
        assert await worker.settle(b, completed())
        assert await gate_counts(storage, "k") == (2, 0, 0)

    async def test_who_is_put_back_stalls_or_is_retired_keeps_its_place(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        a = await worker.claim_one()
        await storage.put_back(QUEUE, worker.name, [(a.id, a.claim)])
        assert await gate_counts(storage, "k") == (1, 0, 1)
        assert await worker.settle(await worker.claim_one(), stalled())
        assert await gate_counts(storage, "k") == (1, 0, 1)
        assert ids(await worker.claim()) == ["a"]
        await worker.die()
        assert await gate_counts(storage, "k") == (1, 0, 1)
        assert ids(await other.claim()) == ["a"]
        assert await storage.retire(QUEUE, other.name) == 0
        assert await gate_counts(storage, "k") == (1, 0, 1)
        assert (await record_of(storage, "b")).state is JobState.BLOCKED

    async def test_one_that_has_stalled_too_often_gives_its_place_back(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await client.enqueue(
            a_gated_job("a", "k", ONE, max_stalls=1), a_gated_job("b", "k", ONE, max_stalls=1)
        )
        assert ids(await worker.claim()) == ["a"]
        await worker.die()
        assert await state_of(storage, "a") is JobState.FAILED
        assert ids(await other.claim()) == ["b"]
        assert await gate_counts(storage, "k") == (0, 1, 0)

    async def test_one_that_may_not_start_takes_nobodys_last_chance(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(
            a_gated_job("holder", "k", TWO),
            a_gated_job("a", "k", TWO, max_stalls=2),
            a_job("b", max_stalls=2),
        )
        _, a, b = await worker.claim(3)
        assert await worker.settle(b, stalled())
        assert await worker.settle(a, stalled())
        await storage.set_limit(QUEUE, "stripe", ONE)
        assert ids(await worker.claim()) == ["b"]
        assert await gate_counts(storage, "k") == (0, 1, 1)

    async def test_who_leaves_without_a_start_gives_its_place_back(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", ONE) for name in "abc"))
        await storage.cancel(QUEUE, ["a"])
        assert await state_of(storage, "b") is JobState.QUEUED
        assert await storage.purge(QUEUE, JobState.QUEUED, ["b"]) == 1
        assert ids(await worker.claim()) == ["c"]
        assert await gate_counts(storage, "k") == (0, 1, 0)

    async def test_a_blocked_job_leaves_the_line_when_it_is_cancelled_or_purged(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", ONE) for name in "abcd"))
        a = await worker.claim_one()
        assert await storage.cancel(QUEUE, ["b"]) == [CancelOutcome.CANCELLED]
        assert await storage.purge(QUEUE, JobState.BLOCKED, ["c"]) == 1
        assert await gate_counts(storage, "k") == (0, 1, 1)
        assert await worker.settle(a, completed())
        assert ids(await worker.claim()) == ["d"]

    async def test_other_keys_and_jobs_without_limits_pass(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        outcomes = await client.enqueue(
            a_gated_job("a1", "a", ONE),
            a_gated_job("a2", "a", ONE),
            a_gated_job("b1", "b", ONE),
            a_gated_job("n1", "", ONE),
            a_gated_job("n2", "", ONE),
            a_job("free"),
        )
        assert outcomes == [QUEUED, BLOCKED, QUEUED, QUEUED, BLOCKED, QUEUED]
        assert ids(await worker.claim()) == ["a1", "b1", "n1", "free"]

    async def test_a_line_goes_by_tier_and_then_by_who_came_first(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("first", "k", ONE))
        await client.enqueue(a_gated_job("b", "k", ONE), a_gated_job("a", "k", ONE))
        await client.enqueue(a_gated_job("urgent", "k", ONE, priority=9))
        started = []
        for _ in range(4):
            job = await worker.claim_one()
            started.append(job.id)
            assert await worker.settle(job, completed())
        assert started == ["first", "urgent", "b", "a"]

    async def test_a_job_in_one_line_holds_nobody_up_at_its_other_gates(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        both = gates_text([Gate("wide", "", TWO), Gate("stripe", "k", ONE)])
        await client.enqueue(a_job("holder", gates=both))
        await client.enqueue(a_job("waits", gates=both))
        # It is in the line of `stripe`, so `wide` has room and nobody in line.
        assert await client.enqueue(a_gated_job("passes", name="wide")) == [QUEUED]
        assert (await record_of(storage, "waits")).parked == "stripe\tk"
        job = await worker.claim_one()
        assert await worker.settle(job, completed())
        # Now it takes its places: `wide` is full.
        assert await gate_counts(storage, name="wide") == (2, 0, 0)
        assert await client.enqueue(a_gated_job("x", name="wide")) == [BLOCKED]

    async def test_with_more_places_than_slots_jobs_of_a_key_still_start_in_their_order(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        names = [f"job-{n}" for n in range(8)]
        await client.enqueue(*(a_gated_job(name, "k", Terms(3)) for name in names))
        started = []
        for _ in names:
            job = await worker.claim_one()
            started.append(job.id)
            assert await worker.settle(job, completed())
        assert started == names

    async def test_a_limit_does_not_change_a_jobs_place_in_line(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(
            a_gated_job("a1", "a", ONE),
            a_gated_job("a2", "a", ONE),
            a_job("early"),
            a_gated_job("a3", "a", ONE),
        )
        await client.enqueue(a_gated_job("b1", "b", ONE), a_job("late"))
        started = []
        for _ in range(6):
            job = await worker.claim_one()
            started.append(job.id)
            assert await worker.settle(job, completed())
        assert started == ["a1", "a2", "early", "a3", "b1", "late"]

    async def test_who_is_put_back_stands_before_those_that_came_earlier(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(
            a_gated_job("a", "k", TWO), a_job("p"), a_job("q"), a_gated_job("b", "k", TWO)
        )
        a, p = await worker.claim(2)
        await storage.put_back(QUEUE, worker.name, [(p.id, p.claim)])
        await storage.put_back(QUEUE, worker.name, [(a.id, a.claim)])
        assert ids(await worker.claim()) == ["a", "p", "q", "b"]

    async def test_who_lacks_one_place_holds_no_other(
        self, storage: Storage, client: ContractClient
    ) -> None:
        both = gates_text([Gate("one", "", ONE), Gate("two", "", ONE)])
        await client.enqueue(a_gated_job("holder", name="two", terms=ONE))
        assert await client.enqueue(a_job("x", gates=both)) == [BLOCKED]
        assert (await record_of(storage)).parked == "two\t"
        assert await gate_counts(storage, name="one") == (0, 0, 0)
        assert await client.enqueue(a_gated_job("y", name="one", terms=ONE)) == [QUEUED]

    async def test_the_head_of_a_line_moves_to_that_of_the_gate_that_holds_it_up_now(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        both = gates_text([Gate("one", "", ONE), Gate("two", "", ONE)])
        await client.enqueue(
            a_gated_job("h1", name="one", terms=ONE),
            a_gated_job("h2", name="two", terms=ONE),
            a_job("early", gates=both),
        )
        await client.enqueue(
            a_gated_job("late", name="two", terms=ONE), a_gated_job("next", name="one", terms=ONE)
        )
        h1, h2 = await worker.claim()
        assert await worker.settle(h1, completed())
        # It has waited in the line of `one` and now in that of `two`, where it is still the first.
        assert (await record_of(storage, "early")).parked == "two\t"
        assert await state_of(storage, "next") is JobState.QUEUED
        assert await worker.settle(await worker.claim_one(), completed())
        assert await worker.settle(h2, completed())
        assert ids(await worker.claim()) == ["early"]
        assert await state_of(storage, "late") is JobState.BLOCKED

    async def test_a_delayed_job_meets_its_limit_when_it_is_due(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        outcomes = await client.enqueue(
            a_gated_job("later", "k", ONE, delay_ms=1_000), a_gated_job("now", "k", ONE)
        )
        assert outcomes == [EnqueueOutcome.SCHEDULED, QUEUED]
        assert await gate_counts(storage, "k") == (1, 0, 0)
        now = await worker.claim_one()
        await advance(1_000)
        assert await worker.claim() == []
        assert await gate_counts(storage, "k") == (0, 1, 1)
        assert await worker.settle(now, completed())
        assert ids(await worker.claim()) == ["later"]

    async def test_a_retry_meets_its_limit_anew(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        assert await worker.settle(await worker.claim_one(), retried(MINUTE_MS))
        b = await worker.claim_one()
        await advance(MINUTE_MS)
        assert await worker.claim() == []
        assert await state_of(storage, "a") is JobState.BLOCKED
        assert await worker.settle(b, completed())
        [a] = await worker.claim()
        assert (a.id, a.failures) == ("a", 1)

    async def test_a_redriven_job_meets_its_limit_anew(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        assert await worker.settle(await worker.claim_one(), failed())
        assert await storage.redrive(QUEUE, ["a"]) == 1
        record = await record_of(storage, "a")
        assert (record.state, record.reason, record.failures) == (JobState.BLOCKED, "", 0)
        assert record.errors == []
        assert await worker.settle(await worker.claim_one(), completed())
        assert ids(await worker.claim()) == ["a"]

    async def test_one_that_expires_in_line_fails_when_it_would_get_its_place(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(
            a_gated_job("a", "k", ONE),
            a_gated_job("b", "k", ONE, expires_in_ms=1_000),
            a_gated_job("c", "k", ONE, expires_in_ms=1_000),
            a_gated_job("d", "k", ONE),
        )
        a = await worker.claim_one()
        await advance(1_000)
        [end] = await storage.watch(QUEUE, ["b"], channel="")
        assert (end.state, end.reason) == (JobState.FAILED, FailReason.EXPIRED)
        assert await worker.settle(a, completed())
        assert (await record_of(storage, "c")).reason == FailReason.EXPIRED
        assert ids(await worker.claim()) == ["d"]

    async def test_a_ready_job_that_expires_gives_its_place_back(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(
            a_gated_job("a", "k", ONE, expires_in_ms=1_000), a_gated_job("b", "k", ONE)
        )
        await advance(1_000)
        await worker.claim()
        assert await state_of(storage, "a") is JobState.FAILED
        assert await gate_counts(storage, "k") in [(1, 0, 0), (0, 1, 0)]

    async def test_the_events_tell_what_a_job_waited_for(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        assert await worker.settle(await worker.claim_one(), completed())
        await worker.claim_one()
        events = [e for e in (await storage.events(QUEUE)).events if e.job_id == "b"]
        assert [(event.kind, event.detail) for event in events] == [
            (JobEventKind.BLOCKED, "stripe k"),
            (JobEventKind.QUEUED, "admitted"),
            (JobEventKind.ACTIVE, ""),
        ]

    async def test_blocked_jobs_are_listed_the_oldest_first(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        for name in "abcd":
            await client.enqueue(a_gated_job(name, "k", ONE))
            await advance(1)
        page = await storage.list_jobs(QUEUE, JobState.BLOCKED, limit=2)
        assert [row.id for row in page.rows] == ["b", "c"]
        page = await storage.list_jobs(QUEUE, JobState.BLOCKED, limit=2, cursor=page.cursor)
        assert [row.id for row in page.rows] == ["d"]

    async def test_the_jobs_of_one_call_share_the_room(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        outcomes = await client.enqueue(*(a_gated_job(f"{n}", "k", Terms(3)) for n in range(10)))
        assert outcomes == [QUEUED] * 3 + [BLOCKED] * 7
        jobs = await worker.claim()
        assert await gate_counts(storage, "k") == (0, 3, 7)
        for job in jobs:
            assert await worker.settle(job, completed())
        assert ids(await worker.claim()) == ["3", "4", "5"]

    async def test_a_key_that_is_over_leaves_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await storage.set_limit(QUEUE, "stripe", ONE)
        await client.enqueue(
            a_gated_job("a", "customer-77", keep_ms=0), a_gated_job("b", "customer-77", keep_ms=0)
        )
        for _ in range(2):
            assert await worker.settle(await worker.claim_one(), completed(ttl_ms=0, keep_ms=0))
        assert not [key for key in await dump() if "customer-77" in key]
        assert await gate_counts(storage, "customer-77") == (0, 0, 0)

    async def test_a_queue_that_is_deleted_has_no_limits(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE))
        await storage.set_limit(QUEUE, "stripe", TWO)
        assert await storage.purge(QUEUE, JobState.QUEUED, ["a"]) == 1
        assert await storage.delete_queue(QUEUE, is_forced=True) == 0
        assert await storage.limits(QUEUE) == []

    async def test_a_paused_queue_still_opens_its_gates(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "k", ONE))
        a = await worker.claim_one()
        await storage.pause(QUEUE)
        assert await worker.settle(a, completed())
        assert await state_of(storage, "b") is JobState.QUEUED
        assert await worker.claim() == []
        await storage.resume(QUEUE)
        assert ids(await worker.claim()) == ["b"]

    async def test_the_keep_of_a_blocked_job_that_is_cancelled_is_its_own(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(
            a_gated_job("a", "k", ONE),
            a_gated_job("b", "k", ONE, keep_ms=0),
            a_gated_job("c", "k", ONE, keep_ms=HOUR_MS),
        )
        await storage.cancel(QUEUE, ["b", "c"])
        assert await state_of(storage, "b") is None
        assert await state_of(storage, "c") is JobState.CANCELLED
        assert (await storage.stats(QUEUE)).blocked == 0
