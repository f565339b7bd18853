"""Contract of ``why``: how a job stands, and what may keep it from running."""

from __future__ import annotations

import pytest

from headrace.storage import (
    Before,
    Gate,
    GateStanding,
    JobState,
    NextRun,
    Situation,
    Storage,
    Terms,
    Update,
    gates_text,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ENDED,
    MINUTE_MS,
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    bring,
    completed,
    ids,
    record_of,
    retried,
    started,
)

ONE, TWO = Terms(1), Terms(2)
TWO_A_MINUTE = Terms(0, 2, MINUTE_MS, 1)


async def situation(storage: Storage, job_id: str = "x") -> Situation:
    """Return how a job stands, which must be there."""
    found = await storage.why(QUEUE, job_id)
    assert found is not None
    return found


async def before(storage: Storage, job_id: str) -> Before | None:
    """Return how many come before a job."""
    return (await situation(storage, job_id)).before


async def gate_of(storage: Storage, job_id: str) -> GateStanding:
    """Return the only gate of a job."""
    [gate] = (await situation(storage, job_id)).gates
    return gate


class WhyContract(Contract):
    """Tests of ``why``."""

    async def test_of_a_job_that_is_not_there_nothing_is_told(
        self, storage: Storage, client: ContractClient
    ) -> None:
        assert await storage.why("nothing", "x") is None
        await client.enqueue(a_job("y"))
        assert await storage.why(QUEUE, "x") is None

    @pytest.mark.parametrize("state", STATES)
    async def test_it_has_all_that_is_kept_of_the_job_and_the_time(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        state: JobState,
    ) -> None:
        await bring(state, client, worker)
        earliest = await advance(0)
        found = await situation(storage)
        assert found.record == await record_of(storage)
        assert earliest <= found.now_ms <= await advance(0)
        assert (found.before, found.next, found.gates) == (
            Before(0) if state is JobState.QUEUED else None,
            None,
            [],
        )

    async def test_to_ask_why_changes_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", ONE) for name in "abc"))
        await worker.claim()
        earlier = await dump()
        for name in "abcx":
            await storage.why(QUEUE, name)
        await storage.why("nothing", "x")
        assert await dump() == earlier

    async def test_it_says_what_holds_for_the_queue(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("a"), a_job("x"))
        found = await situation(storage)
        assert (found.is_paused, found.max_active, found.active) == (False, 0, 0)
        await worker.claim_one()
        await storage.configure(QUEUE, max_active=1)
        await storage.pause(QUEUE)
        found = await situation(storage)
        assert (found.is_paused, found.max_active, found.active) == (True, 1, 1)

    # Who comes before

    async def test_those_of_better_tiers_and_earlier_ones_come_before(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"), a_job("low", priority=0))
        await client.enqueue(a_job("high", priority=9), a_job("c"))
        await client.enqueue(a_job("elsewhere", lane="process", priority=9))
        counted = {name: await before(storage, name) for name in ("high", "a", "b", "c", "low")}
        assert counted == {name: Before(n) for n, name in enumerate(counted)}
        assert await before(storage, "elsewhere") == Before(0)
        assert ids(await worker.claim(2)) == ["high", "a"]
        assert await before(storage, "low") == Before(2)

    async def test_one_that_went_back_to_the_head_comes_before_the_others(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"))
        claimed = await worker.claim_one()
        await client.enqueue(a_job("c"))
        await storage.put_back(QUEUE, worker.name, [(claimed.id, claimed.claim)])
        assert [await before(storage, name) for name in "abc"] == [Before(n) for n in range(3)]

    async def test_those_that_were_cancelled_are_not_counted(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(10)))
        await storage.cancel(QUEUE, ["1", "3", "9"])
        await client.enqueue(a_job("1"))
        assert await before(storage, "2") == Before(1)
        assert await before(storage, "8") == Before(6)
        assert await before(storage, "1") == Before(7)

    async def test_in_a_queue_with_limits_they_are_counted_too(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"))
        await client.enqueue(a_gated_job("c", "k", ONE), a_gated_job("d", "k", ONE), a_job("e"))
        assert [await before(storage, name) for name in "abcde"] == [
            *map(Before, (0, 1, 2)),
            None,
            Before(3),
        ]
        await storage.cancel(QUEUE, ["b"])
        [_, c] = await worker.claim(2)
        assert await worker.settle(c, completed())
        # Who waited stands by when it came.
        assert [await before(storage, name) for name in "de"] == [Before(0), Before(1)]

    # Limits

    async def test_a_gate_says_who_has_its_places_and_how_many_come_before(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", TWO) for name in "ab"))
        await worker.claim(1)
        await client.enqueue(*(a_gated_job(name, "k", TWO) for name in "cde"))
        await client.enqueue(a_gated_job("other", "another", TWO))
        assert await gate_of(storage, "e") == GateStanding(
            name="stripe",
            key="k",
            terms=TWO,
            ready=1,
            active=1,
            tokens=0,
            token_in_ms=None,
            before=Before(2),
            holders=["a", "b"],
        )
        assert (await gate_of(storage, "e")).is_full
        assert (await gate_of(storage, "b")).before is None
        gate = await gate_of(storage, "other")
        assert (gate.ready, gate.active, gate.holders, gate.is_full) == (1, 0, ["other"], False)

    async def test_those_of_a_better_tier_come_before_in_a_line(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", ONE) for name in "abc"))
        await client.enqueue(a_gated_job("high", "k", ONE, priority=9))
        found = [(await gate_of(storage, name)).before for name in ("high", "b", "c")]
        assert found == [Before(0), Before(1), Before(2)]

    async def test_every_gate_of_a_blocked_job_is_told(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("b", "", ONE, name="mail"))
        both = gates_text([Gate("stripe", "k", ONE), Gate("db", "", TWO), Gate("mail", "", ONE)])
        await client.enqueue(a_job("x", gates=both))
        await worker.claim()
        gates = (await situation(storage)).gates
        assert [(gate.name, gate.is_full, gate.holders) for gate in gates] == [
            ("stripe", True, ["a"]),
            ("db", False, []),
            ("mail", True, ["b"]),
        ]
        assert [gate.before for gate in gates] == [Before(0), None, None]

    async def test_a_rate_says_when_there_is_a_token(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", TWO_A_MINUTE) for name in "abc"))
        gate = await gate_of(storage, "b")
        # As many are ready as there may be tokens: time alone brings none.
        assert (gate.tokens, gate.token_in_ms, gate.before) == (1, None, Before(0))
        await worker.claim()
        await advance(10_000)
        gate = await gate_of(storage, "c")
        assert (gate.tokens, gate.before) == (0, Before(1))
        assert gate.token_in_ms is not None
        assert 15_000 < gate.token_in_ms <= 20_000

    async def test_one_that_is_ready_may_lack_what_lets_it_start(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_gated_job(name, "k", TWO) for name in "ab"))
        await worker.claim(1)
        await storage.set_limit(QUEUE, "stripe", ONE)
        found = await situation(storage, "b")
        [gate] = found.gates
        assert (found.record.state, found.before) == (JobState.QUEUED, Before(0))
        assert (gate.terms, gate.ready, gate.active, gate.before) == (ONE, 1, 1, None)

    async def test_gates_of_a_job_that_waits_for_a_time_or_runs_are_not_told(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("x", "k", ONE))
        job = await worker.claim_one()
        assert (await situation(storage)).gates == []
        assert await worker.settle(job, retried())
        assert (await situation(storage)).gates == []

    # Another of its id

    async def test_an_active_one_says_what_follows_it(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await started(client, worker)
        asked_ms = await advance(0)
        await client.enqueue(a_job("x", update=Update(), delay_ms=MINUTE_MS))
        found = await situation(storage)
        assert found.record.has_next
        assert found.next is not None
        assert asked_ms <= found.next.created_ms <= await advance(0)
        assert found.next.due_ms - found.next.created_ms == MINUTE_MS
        await storage.cancel(QUEUE, ["x"], only_next=True)
        assert (await situation(storage)).next is None
        await client.enqueue(a_job("x", update=Update()))
        found = await situation(storage)
        assert found.next == NextRun(found.next.created_ms if found.next else 0, 0)

    # Workers

    async def test_live_workers_are_told_with_what_they_said(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job("x"))
        assert (await situation(storage)).workers == []
        await ContractIncarnation(storage, "w2", tasks={"send": "default"}).register()
        await ContractIncarnation(storage, "w1").register()
        found = await situation(storage)
        assert [worker.incarnation for worker in found.workers] == ["w1", "w2"]
        assert found.workers[1].tasks == {"send": "default"}
        assert found.owner is None
        assert not found.has_more_workers

    async def test_those_that_have_been_silent_for_their_lease_or_were_condemned_are_not(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        await client.enqueue(a_job("x"))
        await ContractIncarnation(storage, "silent", lease_ms=1_000).register()
        dead = await ContractIncarnation(storage, "dead", lease_ms=9_000).register()
        await ContractIncarnation(storage, "alive", lease_ms=60_000).register()
        await advance(1_001)
        await dead.reap_once()
        found = await situation(storage)
        assert [worker.incarnation for worker in found.workers] == ["alive"]

    async def test_an_active_one_says_who_runs_it_dead_or_alive(
        self,
        storage: Storage,
        client: ContractClient,
        other: ContractIncarnation,
        advance: Advance,
    ) -> None:
        worker = await ContractIncarnation(storage, "w9", lease_ms=1_000).register()
        await started(client, worker)
        found = await situation(storage)
        assert found.owner is not None
        assert (found.owner.incarnation, found.owner.active) == ("w9", 1)
        await advance(1_001)
        found = await situation(storage)
        assert [worker.incarnation for worker in found.workers] == ["w2"]
        assert found.owner is not None
        assert found.owner.silent_ms > found.owner.lease_ms

    @pytest.mark.parametrize("state", ENDED)
    async def test_an_ended_one_has_no_owner(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        await bring(state, client, worker)
        assert (await situation(storage)).owner is None
