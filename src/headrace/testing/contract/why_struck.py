"""Contract of ``why`` where strikes and turns of keys hold jobs back."""

from __future__ import annotations

from headrace.storage import Before, GateStanding, JobState, Storage, Strike, StrikeAction
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    ids,
)
from headrace.testing.contract.strikes import BY_ARGUMENTS, CANCELS, PAUSE, other_job
from headrace.testing.contract.turns import a_fair_job
from headrace.testing.contract.why import ONE, gate_of, situation

OF_ANY = Strike(id="strike:3", where='{"to":"b"}')
OF_ANOTHER = Strike(id="strike:4", task="print")


async def struck_by(storage: Storage, job_id: str = "x") -> list[str]:
    """Return the ids of the strikes that a job meets."""
    return [strike.id for strike in (await situation(storage, job_id)).strikes]


class WhyStruckContract(Contract):
    """Tests of ``why`` of what is struck, or takes turns."""

    async def test_those_of_its_task_and_of_any_are_told_of_a_job_that_waits(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job("runs"))
        await worker.claim_one()
        await client.enqueue(a_job("x"), a_job("later", delay_ms=MINUTE_MS))
        assert await struck_by(storage) == []
        since = []
        for strike in (CANCELS, OF_ANY, OF_ANOTHER, PAUSE, BY_ARGUMENTS):
            since.append(await advance(1))
            await storage.strike(QUEUE, strike)
        known = ["strike:2", "strike:3", "task:send", "strike:1"]
        assert await struck_by(storage) == known
        assert await struck_by(storage, "later") == known
        assert await struck_by(storage, "runs") == []
        [first, *_] = (await situation(storage)).strikes
        assert (first.task, first.where, first.action) == ("send", "", StrikeAction.CANCEL)
        assert since[0] <= first.since_ms < since[1]
        for name in known:
            await storage.lift(QUEUE, name)
        assert await struck_by(storage) == []

    async def test_in_its_line_it_says_how_many_come_before(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await client.enqueue(a_job("a"), a_job("b"), a_job("high", priority=9), other_job("c"))
        assert (await situation(storage, "b")).struck_before is None
        assert ids(await worker.claim()) == ["c"]
        found = [await situation(storage, name) for name in ("high", "a", "b")]
        assert [one.record.state for one in found] == [JobState.BLOCKED] * 3
        assert [one.struck_before for one in found] == [Before(0), Before(1), Before(2)]

    async def test_one_that_is_struck_and_limited_tells_both(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_gated_job("a", "k", ONE), a_gated_job("x", "k", ONE))
        await storage.strike(QUEUE, PAUSE)
        found = await situation(storage)
        assert (found.gates[0].before, found.struck_before) == (Before(0), None)
        # It is given the place of the one that is laid aside, and is then laid aside itself.
        assert [await worker.claim(), await worker.claim()] == [[], []]
        found = await situation(storage)
        assert (found.record.parked, found.struck_before) == ("task:send", Before(1))
        assert [(gate.ready, gate.before) for gate in found.gates] == [(0, None)]

    async def test_to_ask_why_of_what_is_struck_changes_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await client.enqueue(a_fair_job("a", "k"), a_fair_job("b", "k"), a_job("c"))
        await worker.claim()
        earlier = await dump()
        for name in "abc":
            await storage.why(QUEUE, name)
        assert await dump() == earlier

    async def test_a_key_that_has_its_turn_says_by_which_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_fair_job(name, "k") for name in ("a", "b", "c", "d")))
        await worker.claim(1)
        # What is active has no place.
        assert await gate_of(storage, "d") == GateStanding(
            name="fair:default:5",
            key="k",
            terms=None,
            ready=1,
            active=0,
            tokens=0,
            token_in_ms=None,
            before=Before(1),
            holders=["b"],
        )
        assert (await gate_of(storage, "b")).before is None
