"""Contract of ``claim``: order (G5), due times, expiry, repetition, and who may claim."""

from __future__ import annotations

import msgspec
import pytest

from headrace import StaleCall
from headrace.storage import (
    CallId,
    Claim,
    ErrorInfo,
    FailReason,
    JobRequest,
    JobState,
    Settlement,
    Storage,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    ids,
    retried,
    state_of,
)


class ClaimContract(Contract):
    """Tests of ``claim``."""

    async def test_a_claimed_job_carries_all_that_its_attempt_needs(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        created = await advance(0)
        await client.enqueue(a_job(payload=b"[1]", options=b'{"timeout_ms":5}'))
        await advance(40)
        nonce = worker.nonce()
        [job] = (await worker.ask(nonce=nonce)).jobs
        assert (job.id, job.queue, job.task, job.payload) == ("x", QUEUE, "send", b"[1]")
        assert job.options == b'{"timeout_ms":5}'
        assert (job.failures, job.stalls, job.created_ms, job.waited_ms) == (0, 0, created, 40)
        assert job.claim == Claim(1, nonce)

    async def test_a_claimed_job_is_active_and_names_its_worker(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job())
        await worker.claim_one()
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.incarnation, record.starts) == (
            JobState.ACTIVE,
            worker.name,
            1,
        )

    async def test_jobs_of_one_tier_come_in_the_order_of_their_enqueue(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"a{n}") for n in range(10)))
        await client.enqueue(*(a_job(f"b{n}") for n in range(10)))
        expected = [f"a{n}" for n in range(10)] + [f"b{n}" for n in range(10)]
        assert [(await worker.claim_one()).id for _ in range(5)] == expected[:5]
        assert ids(await worker.claim()) == expected[5:]

    async def test_tiers_come_from_nine_to_zero(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(
            *(a_job(f"{n}{tier}", priority=tier) for n in "ab" for tier in range(10))
        )
        expected = [f"{n}{tier}" for tier in range(9, -1, -1) for n in "ab"]
        assert ids(await worker.claim()) == expected

    async def test_no_more_is_claimed_than_there_are_slots(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(5)))
        reply = await worker.ask(2)
        assert ids(reply.jobs) == ["0", "1"]
        assert reply.has_more
        reply = await worker.ask(3)
        assert ids(reply.jobs) == ["2", "3", "4"]
        assert not reply.has_more

    async def test_each_lane_fills_its_own_slots(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        batch = [
            a_job(f"{lane}{n}", lane=lane) for n in range(4) for lane in ("process", "default")
        ]
        await client.enqueue(*batch)
        jobs = await worker.claim(slots={"default": 3, "process": 1})
        assert sorted(ids(jobs)) == ["default0", "default1", "default2", "process0"]

    async def test_a_lane_without_slots_never_blocks_the_jobs_behind(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"p{n}", lane="process", priority=9) for n in range(50)))
        await client.enqueue(a_job("d", priority=0))
        assert ids(await worker.claim(1)) == ["d"]
        reply = await worker.ask(5)
        # What is left is for others: to come again at once would never end.
        assert (reply.jobs, reply.has_more) == ([], False)

    async def test_a_lane_that_fills_the_call_hides_no_other(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        payload = b"." * (1024 * 1024 - 1)
        for n in range(5):
            await client.enqueue(a_job(f"{n}", payload))
        await client.enqueue(a_job("cpu", lane="process"))
        reply = await worker.ask(slots={"default": 9, "process": 1})
        assert ids(reply.jobs) == ["0", "1", "2", "3", "4"]
        assert reply.has_more
        assert ids(await worker.claim(slots={"default": 9, "process": 1})) == ["cpu"]

    async def test_what_one_lane_passes_over_keeps_no_other_from_its_jobs(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        names = [f"{n}" for n in range(1_000)]
        await client.enqueue_all(a_job(name, keep_ms=0) for name in names)
        await client.enqueue(a_job("cpu", lane="process"))
        for start in range(0, 1_000, 500):
            await storage.cancel(QUEUE, names[start : start + 500])
        assert ids(await worker.claim(slots={"default": 9, "process": 1})) == ["cpu"]

    async def test_two_incarnations_never_get_the_same_job(
        self, client: ContractClient, worker: ContractIncarnation, other: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(20)))
        first, second = await worker.claim(10), await other.claim(15)
        assert sorted(ids(first) + ids(second), key=int) == [str(n) for n in range(20)]

    async def test_one_call_takes_at_most_500_jobs(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        for start in range(0, 600, 300):
            await client.enqueue(*(a_job(f"{n}") for n in range(start, start + 300)))
        reply = await worker.ask(1000)
        assert len(reply.jobs) == 500
        assert reply.has_more
        assert ids(await worker.claim(1000)) == [str(n) for n in range(500, 600)]

    async def test_one_call_takes_about_4_mib_and_leaves_the_rest_in_order(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        payload = b"." * (1024 * 1024 - 1)
        for n in range(7):
            await client.enqueue(a_job(f"{n}", payload))
        reply = await worker.ask(7)
        assert ids(reply.jobs) == ["0", "1", "2", "3", "4"]
        assert reply.has_more
        assert ids(await worker.claim(7)) == ["5", "6"]

    async def test_a_delayed_job_never_starts_early(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job(delay_ms=MINUTE_MS))
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert record.due_ms == await advance(0) + MINUTE_MS
        await advance(MINUTE_MS - 1)
        reply = await worker.ask()
        assert (reply.jobs, reply.next_due_ms) == ([], 1)
        await advance(1)
        reply = await worker.ask()
        assert (ids(reply.jobs), reply.next_due_ms) == (["x"], None)

    async def test_a_job_runs_at_its_instant_and_a_past_one_at_once(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        now = await advance(0)
        outcomes = await client.enqueue(
            a_job("later", run_at_ms=now + 100),
            a_job("now", run_at_ms=now),
            a_job("past", run_at_ms=1),
        )
        assert outcomes == ["scheduled", "queued", "queued"]
        assert ids(await worker.claim()) == ["now", "past"]
        await advance(100)
        assert ids(await worker.claim()) == ["later"]

    async def test_due_jobs_come_in_the_order_of_their_due_times_inside_a_tier(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        due = {"c": 30, "a": 10, "urgent": 40, "b": 20}
        for job_id, delay_ms in due.items():
            await client.enqueue(
                a_job(job_id, delay_ms=delay_ms, priority=9 if job_id == "urgent" else 5)
            )
        await advance(50)
        assert ids(await worker.claim()) == ["urgent", "a", "b", "c"]

    async def test_a_due_job_goes_behind_what_was_ready_before(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        await client.enqueue(a_job("due", delay_ms=10))
        await client.enqueue(a_job("ready"))
        await advance(10)
        assert ids(await worker.claim()) == ["ready", "due"]

    async def test_waiting_is_counted_from_the_due_time_on(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        await client.enqueue(a_job(delay_ms=MINUTE_MS))
        await advance(MINUTE_MS)
        await worker.claim(slots={})  # makes it ready
        await advance(25)
        assert (await worker.claim_one()).waited_ms == 25

    async def test_fifty_thousand_jobs_due_at_one_instant_all_come_in_bounded_calls(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        # BC-64: too many for one unpack, and for one call's time.
        total = 50_000
        await client.enqueue_all(a_job(f"{n}", delay_ms=1000) for n in range(total))
        await advance(1000)
        seen: set[str] = set()
        while jobs := await worker.claim():
            assert len(jobs) <= 500
            seen.update(ids(jobs))
            done = [Settlement(job.id, job.claim, 1, completed(keep_ms=0)) for job in jobs]
            assert await worker.settle_all(*done) == [True] * len(jobs)
        assert len(seen) == total
        stats = await storage.stats(QUEUE)
        assert (stats.scheduled, stats.queued, stats.active) == (0, 0, 0)

    async def test_what_ten_thousand_cancelled_jobs_left_costs_a_few_bounded_calls(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        total = 10_000
        names = [f"{n}" for n in range(total)]
        await client.enqueue_all(a_job(name, keep_ms=0) for name in names)
        await client.enqueue(a_job("last"))
        for start in range(0, total, 500):
            await storage.cancel(QUEUE, names[start : start + 500])
        calls = 0
        while not (reply := await worker.ask(1)).jobs:
            assert reply.has_more
            calls += 1
        assert ids(reply.jobs) == ["last"]
        assert calls <= 20

    @pytest.mark.parametrize("option", ["expires_in_ms", "expires_at_ms"])
    async def test_a_job_that_waited_too_long_is_a_dead_letter_and_never_starts(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        option: str,
    ) -> None:
        base = await advance(0) if option == "expires_at_ms" else 0
        old = msgspec.structs.replace(a_job("old"), **{option: base + 50})
        await client.enqueue(old, a_job("new"))
        await advance(50)
        assert ids(await worker.claim()) == ["new"]
        record = await storage.get(QUEUE, "old")
        assert record is not None
        assert (record.state, record.reason) == (JobState.FAILED, FailReason.EXPIRED)
        assert (record.starts, record.failures) == (0, 0)

    async def test_a_job_that_is_claimed_in_time_runs_past_its_expiry(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        await client.enqueue(a_job(expires_in_ms=50))
        await advance(49)
        job = await worker.claim_one()
        await advance(10)
        assert await worker.settle(job, completed())

    async def test_a_delayed_job_that_expired_meanwhile_ends_when_it_falls_due(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job(delay_ms=100, expires_in_ms=50))
        await advance(100)
        assert await worker.claim() == []
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.reason) == (JobState.FAILED, FailReason.EXPIRED)

    async def test_jobs_of_the_same_due_time_become_ready_in_the_order_of_their_creation(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        due = await advance(0) + 100
        names = ["m", "b", "x", "a", "y", "c"]
        await client.enqueue(*(a_job(name, run_at_ms=due) for name in names[:3]))
        await client.enqueue(*(a_job(name, run_at_ms=due) for name in names[3:5]))
        await advance(10)
        await client.enqueue(a_job(names[5], delay_ms=90), a_job("first", delay_ms=89))
        await advance(90)
        assert ids(await worker.claim()) == ["first", *names]

    async def test_many_jobs_of_the_same_due_time_become_ready_in_the_order_of_their_creation(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        # More than fall due in one call, and ids that fall.
        due = await advance(0) + 100
        names = [f"{n:04}" for n in range(1_200, 0, -1)]
        for first in range(0, len(names), 400):
            chunk = names[first : first + 400]
            await client.enqueue(*(a_job(name, run_at_ms=due) for name in chunk))
        await advance(100)
        found = [ids(await worker.claim()) for _ in range(3)]
        assert [name for batch in found for name in batch] == names

    async def test_a_job_that_has_started_does_not_expire_before_its_retry(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job(expires_in_ms=50))
        await worker.settle(await worker.claim_one(), retried(100))
        await advance(100)
        assert (await worker.claim_one()).claim.epoch == 2

    async def test_a_job_that_was_put_back_does_not_expire(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job(expires_in_ms=50))
        job = await worker.claim_one()
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
        await advance(100)
        [end] = await storage.watch(QUEUE, ["x"], channel="")
        assert end.state is JobState.QUEUED
        assert (await worker.claim_one()).claim.epoch == 2

    async def test_a_repeated_claim_returns_what_it_took_and_changes_nothing(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await client.enqueue(*(a_job(f"{n}", payload=b"." * 40 * n) for n in range(5)))
        nonce = worker.nonce()
        first = await worker.ask(3, number=1, nonce=nonce)
        before = await dump()
        again = await worker.ask(3, number=1, nonce=nonce)
        assert await dump() == before
        assert sorted(again.jobs, key=lambda job: job.id) == first.jobs

    async def test_a_repeated_claim_still_tells_when_the_next_job_is_due(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        await client.enqueue(a_job(delay_ms=100))
        assert (await worker.ask(number=1)).next_due_ms == 100
        await advance(30)
        assert (await worker.ask(number=1)).next_due_ms == 70

    async def test_a_repeated_claim_returns_only_what_it_still_owns(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"{n}") for n in range(4)))
        nonce = worker.nonce()
        jobs = (await worker.ask(4, number=1, nonce=nonce)).jobs
        await worker.settle(jobs[0], completed())
        await storage.put_back(QUEUE, worker.name, [(jobs[1].id, jobs[1].claim)])
        again = await worker.ask(4, number=1, nonce=nonce)
        assert sorted(ids(again.jobs)) == ["2", "3"]
        # A later claim of the job that went back is another attempt.
        [job] = (await worker.ask(4, number=2)).jobs
        assert (job.id, job.claim.epoch) == ("1", 2)

    async def test_an_older_claim_is_stale_and_changes_nothing(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"))
        await worker.ask(1, number=2)
        before = await dump()
        with pytest.raises(StaleCall):
            await worker.ask(1, number=1)
        assert await dump() == before

    async def test_an_unknown_incarnation_is_gone_and_changes_nothing(
        self, storage: Storage, client: ContractClient, dump: Dump
    ) -> None:
        await client.enqueue(a_job(), a_job("due", delay_ms=1))
        before = await dump()
        reply = await ContractIncarnation(storage, "nobody").ask()
        assert (reply.is_gone, reply.jobs) == (True, [])
        assert await dump() == before

    async def test_a_condemned_incarnation_is_gone_and_changes_nothing(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await client.enqueue(a_job())
        await worker.reap_once()
        before = await dump()
        reply = await worker.ask()
        assert (reply.is_gone, reply.jobs) == (True, [])
        assert await dump() == before

    async def test_the_epoch_rises_with_every_start(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job())
        epochs, nonces = [], set()
        for _ in range(3):
            job = await worker.claim_one()
            epochs.append(job.claim.epoch)
            nonces.add(job.claim.nonce)
            await worker.settle(job, retried(1, ErrorInfo(type="E", message="")))
            await advance(1)
        assert epochs == [1, 2, 3]
        assert len(nonces) == 3
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.starts, record.failures) == (3, 3)

    async def test_jobs_of_another_queue_or_tenant_are_not_seen(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        job = JobRequest(id="x", queue="other", task="send", payload=b"[]")
        await storage.enqueue("other", [job], call=CallId("c1", 1))
        assert await worker.claim() == []
        assert await state_of(storage) is None

    async def test_jobs_on_their_last_chance_are_given_out_one_at_a_time(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        # BC-14: one that kills its workers must take no other along.
        await client.enqueue(*(a_job(name, max_stalls=2) for name in "abc"))
        await worker.claim()
        await worker.die()
        await client.enqueue(a_job("fresh", max_stalls=2))
        first = await other.claim()
        assert len(first) == 2
        assert first[-1].id == "fresh"
        reply = await other.ask()
        assert (reply.jobs, reply.has_more) == ([], False)
        seen = {first[0].id}
        for job in first[:1]:
            assert await other.settle(job, completed())
        for _ in range(2):
            [job] = await other.claim()
            seen.add(job.id)
            assert await other.settle(job, completed())
        assert seen == {"a", "b", "c"}
        stats = await storage.stats(QUEUE)
        assert (stats.queued, stats.active, stats.dead) == (0, 1, 0)

    async def test_an_expired_job_among_many_does_not_shorten_the_claim(
        self, client: ContractClient, worker: ContractIncarnation, advance: Advance
    ) -> None:
        batch = [a_job(f"{n}", expires_in_ms=10 if n % 3 == 0 else 0) for n in range(30)]
        await client.enqueue(*batch)
        await advance(10)
        reply = await worker.ask(15)
        assert ids(reply.jobs) == [f"{n}" for n in range(30) if n % 3][:15]
        assert reply.has_more
        assert ids(await worker.claim(15)) == [f"{n}" for n in range(30) if n % 3][15:]
