"""Contract of ``strike``, ``lift`` and ``strikes``: which jobs are not run, and how they go on."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import TooManyStrikes
from headrace.storage import (
    STRIKES_LIMIT,
    EnqueueOutcome,
    JobEventKind,
    JobRequest,
    JobState,
    Storage,
    Strike,
    StrikeAction,
    StrikeList,
    Struck,
    Update,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    gate_counts,
    ids,
    record_of,
    retried,
    state_of,
)

PAUSE = Strike(id="task:send", task="send")
BY_ARGUMENTS = Strike(id="strike:1", task="send", where='{"to":"a"}')
ONE_AT_ONCE = "stripe\t\t1 0 0 0"
CANCELS = Strike(id="strike:2", task="send", action=StrikeAction.CANCEL)


def other_job(job_id: str, *, task: str = "print", **options: Any) -> JobRequest:
    """Return a job of another task of the test's queue."""
    return JobRequest(id=job_id, queue=QUEUE, task=task, payload=b"[]", **options)


class StrikesContract(Contract):
    """Tests of what keeps jobs from being run."""

    async def test_a_struck_task_waits_and_others_pass(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("a"), other_job("b"), a_job("c"))
        await storage.strike(QUEUE, PAUSE)
        assert await client.enqueue(a_job("d"), other_job("e")) == [EnqueueOutcome.QUEUED] * 2
        assert ids(await worker.claim()) == ["b", "e"]
        counts = await storage.stats(QUEUE)
        assert (counts.queued, counts.blocked, counts.active) == (0, 3, 2)
        record = await record_of(storage, "a")
        assert (record.state, record.parked) == (JobState.BLOCKED, "task:send")
        assert (record.failures, record.stalls, record.starts) == (0, 0, 0)
        assert await worker.claim() == []
        assert await storage.lift(QUEUE, PAUSE.id)
        assert ids(await worker.claim()) == ["a", "c", "d"]
        assert await storage.strikes(QUEUE) == StrikeList(0, [])

    async def test_what_a_strike_is_lifted_from_stands_where_it_came(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await client.enqueue(a_job("a"), other_job("b"), a_job("c", priority=9), a_job("d"))
        assert ids(await worker.claim()) == ["b"]
        await client.enqueue(other_job("e"), a_job("f"))
        await storage.lift(QUEUE, PAUSE.id)
        assert ids(await worker.claim()) == ["c", "a", "d", "e", "f"]

    async def test_what_was_in_line_before_the_first_strike_keeps_its_order(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"), other_job("c"), a_job("d"), other_job("e"))
        await storage.strike(QUEUE, PAUSE)
        [c] = await worker.claim(1)
        assert c.id == "c"
        await storage.lift(QUEUE, PAUSE.id)
        await client.enqueue(a_job("f"))
        queued = await storage.list_jobs(QUEUE, JobState.QUEUED)
        assert [row.id for row in queued.rows] == ["a", "b", "d", "e", "f"]
        [a] = await worker.claim(1)
        await storage.put_back(QUEUE, worker.name, [(a.id, a.claim), (c.id, c.claim)])
        assert ids(await worker.claim()) == ["a", "c", "b", "d", "e", "f"]

    async def test_an_active_job_goes_on_and_its_retry_waits(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"))
        a, b = await worker.claim()
        await storage.strike(QUEUE, PAUSE)
        assert await worker.settle(a, completed())
        assert await worker.settle(b, retried(MINUTE_MS))
        await advance(MINUTE_MS)
        assert await worker.claim() == []
        assert await state_of(storage, "b") is JobState.BLOCKED
        await storage.lift(QUEUE, PAUSE.id)
        [again] = await worker.claim()
        assert (again.id, again.failures) == ("b", 1)

    async def test_events_say_what_holds_a_job_and_that_it_goes_on(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await client.enqueue(a_job())
        await worker.claim()
        await storage.lift(QUEUE, PAUSE.id)
        events = (await storage.events(QUEUE)).events
        told = [(event.kind, event.detail) for event in events if event.job_id == "x"]
        assert told == [
            (JobEventKind.QUEUED, ""),
            (JobEventKind.BLOCKED, "task:send"),
            (JobEventKind.QUEUED, "admitted"),
        ]

    async def test_a_strike_that_cancels_does_so_as_a_claim_comes_to_the_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("a"), other_job("b"))
        await storage.strike(QUEUE, CANCELS)
        assert await state_of(storage, "a") is JobState.QUEUED
        assert ids(await worker.claim()) == ["b"]
        record = await record_of(storage, "a")
        assert (record.state, record.reason, record.starts) == (JobState.CANCELLED, "struck", 0)
        await storage.lift(QUEUE, CANCELS.id)
        await client.enqueue(a_job("c"))
        assert ids(await worker.claim()) == ["c"]

    async def test_of_several_strikes_of_a_task_the_first_holds(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await advance(1)
        await storage.strike(QUEUE, CANCELS)
        assert [one.id for one in (await storage.strikes(QUEUE)).strikes] == [PAUSE.id, CANCELS.id]
        await client.enqueue(a_job())
        assert await worker.claim() == []
        assert await state_of(storage) is JobState.BLOCKED
        await storage.lift(QUEUE, PAUSE.id)
        assert await worker.claim() == []
        assert await state_of(storage) is JobState.CANCELLED

    async def test_the_line_of_a_strike_opens_into_that_of_another(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await client.enqueue(a_job("a"), a_job("b"))
        assert await worker.claim() == []
        await storage.strike(QUEUE, Strike(id="strike:3", task="send"))
        await storage.lift(QUEUE, PAUSE.id)
        assert await worker.claim() == []
        assert (await record_of(storage, "a")).parked == "strike:3"
        await storage.lift(QUEUE, "strike:3")
        assert ids(await worker.claim()) == ["a", "b"]

    async def test_a_struck_job_gives_its_places_back(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("a", gates=ONE_AT_ONCE), other_job("b", gates=ONE_AT_ONCE))
        assert await gate_counts(storage) == (1, 0, 1)
        await storage.strike(QUEUE, PAUSE)
        started = ids(await worker.claim()) or ids(await worker.claim())
        assert started == ["b"]
        assert await gate_counts(storage) == (0, 1, 0)
        await storage.lift(QUEUE, PAUSE.id)
        assert await gate_counts(storage) == (0, 1, 1)
        assert (await record_of(storage, "a")).parked == "stripe\t"

    async def test_a_job_that_has_expired_fails_where_it_is_struck(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await client.enqueue(a_job("a", expires_in_ms=50), a_job("b", expires_in_ms=50))
        assert await worker.claim() == []
        await advance(50)
        await client.enqueue(a_job("c", expires_in_ms=50))
        await storage.lift(QUEUE, PAUSE.id)
        assert ids(await worker.claim()) == ["c"]
        assert (await record_of(storage, "a")).reason == "expired"

    async def test_a_struck_job_is_cancelled_purged_and_updated_as_any_that_waits(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await client.enqueue(*(a_job(name) for name in "abcd"))
        assert await worker.claim() == []
        assert await storage.cancel(QUEUE, ["a"]) == ["cancelled"]
        assert await storage.purge(QUEUE, JobState.BLOCKED, ["b"]) == 1
        assert await client.enqueue(a_job("c", update=Update(data=False))) == ["updated"]
        assert await state_of(storage, "c") is JobState.BLOCKED
        # With other data it may be another task's.
        assert await client.enqueue(other_job("c", update=Update())) == ["updated"]
        assert ids(await worker.claim()) == ["c"]
        await storage.lift(QUEUE, PAUSE.id)
        assert ids(await worker.claim()) == ["d"]

    async def test_a_repeated_strike_or_lift_is_one(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await client.enqueue(a_job())
        for strike in (PAUSE, BY_ARGUMENTS):
            await storage.strike(QUEUE, strike)
        assert await worker.claim() == []
        await storage.strike(QUEUE, PAUSE)
        counts = await storage.stats(QUEUE)
        assert (counts.paused_tasks, counts.strikes) == (["send"], 1)
        assert await storage.lift(QUEUE, PAUSE.id)
        before = await dump()
        assert not await storage.lift(QUEUE, PAUSE.id)
        assert await dump() == before
        assert await storage.lift(QUEUE, BY_ARGUMENTS.id)

    async def test_strikes_are_listed_with_what_they_say(
        self, storage: Storage, advance: Advance
    ) -> None:
        assert await storage.strikes(QUEUE) == StrikeList(0, [])
        first_ms = await advance(1)
        await storage.strike(QUEUE, BY_ARGUMENTS)
        second_ms = await advance(7)
        await storage.strike(QUEUE, CANCELS)
        found = await storage.strikes(QUEUE)
        assert found.version > 0
        for strike, one, at_ms in zip(
            found.strikes, (BY_ARGUMENTS, CANCELS), (first_ms, second_ms), strict=True
        ):
            said = (one.id, one.task, one.where, one.action)
            assert (strike.id, strike.task, strike.where, strike.action) == said
            assert strike.since_ms >= at_ms
        assert await storage.queues() == [QUEUE]

    async def test_a_queue_has_so_many_strikes(self, storage: Storage) -> None:
        for n in range(STRIKES_LIMIT):
            await storage.strike(QUEUE, Strike(id=f"task:task {n}", task=f"task {n}"))
        with pytest.raises(TooManyStrikes, match=f"{STRIKES_LIMIT} strikes"):
            await storage.strike(QUEUE, PAUSE)
        await storage.strike(QUEUE, Strike(id="task:task 7", task="task 7"))
        await storage.lift(QUEUE, "task:task 7")
        await storage.strike(QUEUE, PAUSE)

    async def test_a_queue_that_is_deleted_has_no_strikes(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await storage.strike(QUEUE, BY_ARGUMENTS)
        assert await storage.delete_queue(QUEUE) == 0
        assert await storage.strikes(QUEUE) == StrikeList(0, [])
        counts = await storage.stats(QUEUE)
        assert (counts.paused_tasks, counts.strikes) == ([], 0)
        worker = await ContractIncarnation(storage, "w3").register()
        await client.enqueue(a_job())
        reply = await worker.ask()
        assert (ids(reply.jobs), reply.strikes) == (["x"], 0)

    async def test_many_struck_jobs_in_front_do_not_hold_up_others_for_long(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        names = [f"{n:04}" for n in range(1_500)]
        await client.enqueue_all(map(a_job, names))
        await client.enqueue(other_job("behind"))
        await storage.strike(QUEUE, PAUSE)
        claims = 0
        while True:
            reply = await worker.ask(10)
            claims += 1
            if reply.jobs:
                break
            assert reply.has_more
        assert (ids(reply.jobs), claims <= 20) == (["behind"], True)
        await storage.lift(QUEUE, PAUSE.id)
        started: list[str] = []
        while len(started) < 1_500:
            claimed = ids(await worker.claim(100))
            assert claimed
            started += claimed
        assert started == names

    async def test_jobs_of_every_lane_come_again(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, PAUSE)
        await client.enqueue(a_job("a"), a_job("b", lane="gpu"))
        slots = {"default": 5, "gpu": 5}
        assert await worker.claim(slots=slots) == []
        waiter = storage.open_waiter(QUEUE, worker.name, "gpu")
        try:
            await storage.lift(QUEUE, PAUSE.id)
            assert await waiter.wait(2)
        finally:
            await waiter.aclose()
        assert ids(await worker.claim(slots=slots)) == ["a", "b"]


class StruckContract(Contract):
    """Tests of jobs that a strike meets by their arguments."""

    async def test_a_claim_tells_the_version_of_strikes_with_conditions(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        assert (await worker.ask()).strikes == 0
        await storage.strike(QUEUE, PAUSE)
        assert (await worker.ask()).strikes == 0
        await storage.strike(QUEUE, BY_ARGUMENTS)
        await client.enqueue(other_job("a"))
        nonce = worker.nonce()
        first = await worker.ask(number=9, nonce=nonce)
        assert first.strikes == (await storage.strikes(QUEUE)).version > 0
        again = await worker.ask(number=9, nonce=nonce)
        assert (ids(again.jobs), again.strikes) == (["a"], first.strikes)
        await storage.strike(QUEUE, Strike(id="strike:9", where='{"to":"b"}'))
        second = await worker.ask(number=10)
        assert second.strikes not in (0, first.strikes)
        await storage.lift(QUEUE, BY_ARGUMENTS.id)
        third = await worker.ask(number=11)
        assert third.strikes not in (0, first.strikes, second.strikes)
        await storage.lift(QUEUE, "strike:9")
        assert (await worker.ask(number=12)).strikes == 0

    async def test_a_struck_job_waits_uncharged_until_that_is_lifted(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, BY_ARGUMENTS)
        await client.enqueue(*(a_job(name) for name in "abcde"))
        a, b, c = await worker.claim(3)
        assert await worker.settle(a, Struck(BY_ARGUMENTS.id))
        assert await worker.settle(b, completed())
        assert await worker.settle(c, Struck(BY_ARGUMENTS.id))
        record = await record_of(storage, "a")
        assert (record.state, record.parked) == (JobState.BLOCKED, BY_ARGUMENTS.id)
        assert (record.failures, record.stalls, record.starts) == (0, 0, 1)
        # It has been settled.
        assert not await worker.settle(a, completed())
        assert ids(await worker.claim(1)) == ["d"]
        await storage.lift(QUEUE, BY_ARGUMENTS.id)
        assert ids(await worker.claim()) == ["a", "c", "e"]

    async def test_one_whose_strike_is_lifted_meanwhile_goes_back_to_the_head(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, BY_ARGUMENTS)
        await client.enqueue(a_job("a"), a_job("b"))
        a = await worker.claim_one()
        await storage.lift(QUEUE, BY_ARGUMENTS.id)
        assert await worker.settle(a, Struck(BY_ARGUMENTS.id))
        assert await state_of(storage, "a") is JobState.QUEUED
        assert ids(await worker.claim()) == ["a", "b"]

    async def test_one_that_was_asked_to_stop_ends_cancelled(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, BY_ARGUMENTS)
        await client.enqueue(a_job())
        job = await worker.claim_one()
        await storage.cancel(QUEUE, ["x"])
        assert await worker.settle(job, Struck(BY_ARGUMENTS.id))
        assert await state_of(storage) is JobState.CANCELLED

    async def test_one_with_a_successor_is_changed_by_it(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, BY_ARGUMENTS)
        await client.enqueue(a_job())
        job = await worker.claim_one()
        await client.enqueue(a_job(payload=b"[2]", update=Update()))
        assert await worker.settle(job, Struck(BY_ARGUMENTS.id))
        assert await state_of(storage) is JobState.QUEUED
        [again] = await worker.claim()
        assert again.payload == b"[2]"

    async def test_places_in_gates_are_given_back_and_asked_for_again(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await storage.strike(QUEUE, BY_ARGUMENTS)
        await client.enqueue(a_job("a", gates=ONE_AT_ONCE), a_job("b", gates=ONE_AT_ONCE))
        a = await worker.claim_one()
        assert await worker.settle(a, Struck(BY_ARGUMENTS.id))
        assert await gate_counts(storage) == (1, 0, 0)
        b = await worker.claim_one()
        await storage.lift(QUEUE, BY_ARGUMENTS.id)
        assert (await record_of(storage, "a")).parked == "stripe\t"
        assert await worker.settle(b, completed())
        assert ids(await worker.claim()) == ["a"]

    async def test_a_worker_that_dies_before_it_settles_loses_none(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        await storage.strike(QUEUE, BY_ARGUMENTS)
        await client.enqueue(a_job("a"), a_job("b"))
        a, _ = await worker.claim()
        assert await worker.settle(a, Struck(BY_ARGUMENTS.id))
        await worker.die()
        assert ids(await other.claim()) == ["b"]
        await storage.lift(QUEUE, BY_ARGUMENTS.id)
        assert ids(await other.claim()) == ["a"]
