"""Contract of ``enqueue``: what is stored, repetition (DESIGN §5.5) and dedup (G6)."""

from __future__ import annotations

import msgspec
import pytest

from headrace import StaleCall
from headrace.storage import CallId, EnqueueOutcome, JobState, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ENDED,
    MINUTE_MS,
    QUEUE,
    UNENDED,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    failed,
    ids,
    state_of,
    until,
)

QUEUED, SCHEDULED = EnqueueOutcome.QUEUED, EnqueueOutcome.SCHEDULED


DUPLICATE, COMPLETED = EnqueueOutcome.DUPLICATE, EnqueueOutcome.COMPLETED


NUMBERS = (
    b"[130775545883395173,9007199254740993,9223372036854775807,1e308,-0.0,0.1,1E5,[],{}]",
    b"\xcf\x80\x00\x00\x00\x00\x00\x00\x01\xc4\x02\x00\xff\x90\x80",
    b"[" + b"18446744073709551615," * 30 + b"0]",
)


STRANGE_IDS = [
    "123", "00123", "1e5", "a:b", "a:exp", "{x}", "}{", "*", "?", "[a-z]", "../x", "a/b", " ",
    "a b", "-1", "nil", "%s", "<b>", "📮", "é" * 128, "x" * 256,
]  # fmt: skip


class EnqueueContract(Contract):
    """Tests of ``enqueue``."""

    @pytest.mark.parametrize("size", [10, 1_000, 100_000])
    async def test_a_duplicate_that_waits_has_the_result_kept_for_a_minute(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        size: int,
    ) -> None:
        channel = storage.open_channel().name
        await client.enqueue(a_job("x", keep_ms=0))
        assert await client.enqueue(a_job("x", keep_ms=0, channel=channel)) == [DUPLICATE]
        await client.enqueue(a_job("y", keep_ms=0), a_job("y", keep_ms=0, channel=channel))
        for job in await worker.claim():
            await worker.settle(job, completed(b"." * size, ttl_ms=0, keep_ms=0))
        await advance(MINUTE_MS - 1)
        for job_id in ("x", "y"):
            record = await storage.get(QUEUE, job_id)
            assert record is not None
            assert record.result == b"." * size
            assert await client.enqueue(a_job(job_id, channel=channel)) == [COMPLETED]

    async def test_a_duplicate_that_waits_for_nothing_changes_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(keep_ms=0), a_job(keep_ms=0))
        await worker.settle(await worker.claim_one(), completed(keep_ms=0))
        assert await state_of(storage) is None

    async def test_a_stored_job_shows_all_that_was_asked(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        now = await advance(0)
        job = a_job(
            payload=b'["a"]', priority=9, lane="process", max_stalls=1, options=b"{}", keep_ms=9
        )
        assert await client.enqueue(job) == [QUEUED]
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.id, record.queue, record.task) == ("x", QUEUE, "send")
        assert (record.state, record.priority, record.lane) == (JobState.QUEUED, 9, "process")
        assert (record.failures, record.stalls, record.starts) == (0, 0, 0)
        assert (record.created_ms, record.changed_ms, record.due_ms) == (now, now, 0)
        assert (record.payload, record.options, record.result) == (b'["a"]', b"{}", None)
        assert (record.incarnation, record.cancel_requested, record.errors) == ("", False, [])
        assert (record.max_stalls, record.keep_ms) == (1, 9)

    async def test_a_plain_job_is_the_same_as_one_with_every_default_spelt_out(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job("a", is_plain=True), a_job("b"))
        plain, full = await storage.get(QUEUE, "a"), await storage.get(QUEUE, "b")
        assert plain is not None
        assert full is not None
        assert msgspec.structs.replace(plain, id="b") == full

    async def test_a_lane_that_is_left_open_is_what_workers_say_and_counts_for_all(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        worker = await ContractIncarnation(storage, "w1", tasks={"send": "process"}).register()
        await client.enqueue(a_job("said", lane="default"), a_job("open", lane=""))
        await client.enqueue(a_job("late", lane="", delay_ms=10))
        assert ids(await worker.claim(9)) == ["said"]
        assert ids(await worker.claim(slots={"process": 9})) == ["open"]
        await advance(10)
        assert ids(await worker.claim(slots={"process": 9})) == ["late"]

    async def test_each_job_of_a_batch_has_its_own_verdict(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await bring(JobState.COMPLETED, client, worker, "done")
        await bring(JobState.ACTIVE, client, worker, "runs")
        batch = [a_job("new"), a_job("runs"), a_job("later", delay_ms=1), a_job("done")]
        assert await client.enqueue(*batch) == [QUEUED, DUPLICATE, SCHEDULED, COMPLETED]

    async def test_an_empty_batch_stores_nothing(
        self, storage: Storage, client: ContractClient, dump: Dump
    ) -> None:
        assert await client.enqueue() == []
        assert (await storage.stats(QUEUE)).enqueued == 0
        await client.enqueue(a_job())
        before = await dump(with_calls=False)
        assert await client.enqueue() == []
        assert await dump(with_calls=False) == before

    @pytest.mark.parametrize("size", [0, 1, 64, 65, 1024 * 1024])
    async def test_a_payload_of_any_size_comes_back_as_it_was(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, size: int
    ) -> None:
        payload = bytes(index % 256 for index in range(size))
        await client.enqueue(a_job(payload=payload))
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert record.payload == payload
        assert (await worker.claim_one()).payload == payload

    @pytest.mark.parametrize("payload", NUMBERS, ids=["json", "msgpack", "long"])
    async def test_a_payload_is_opaque_through_delay_retry_and_put_back(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        payload: bytes,
    ) -> None:
        # BC-60: numbers that a double can't hold.
        await client.enqueue(a_job(payload=payload, delay_ms=10))
        await advance(10)
        job = await worker.claim_one()
        assert job.payload == payload
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
        job = await worker.claim_one()
        assert job.payload == payload
        await worker.settle(job, failed())
        assert await storage.redrive(QUEUE, ["x"]) == 1
        job = await worker.claim_one()
        assert job.payload == payload
        await worker.settle(job, completed(payload))
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.payload, record.result) == (payload, payload)

    async def test_ids_of_any_form_stay_apart_and_come_back_as_they_were(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        # BC-66: digits, separators, globs, paths and the longest ones.
        big = b"." * 100
        batch = [a_job(job_id, big + job_id.encode(), delay_ms=5) for job_id in STRANGE_IDS]
        assert await client.enqueue(*batch) == [SCHEDULED] * len(batch)
        assert await client.enqueue(*batch) == [DUPLICATE] * len(batch)
        await advance(5)
        jobs = await worker.claim()
        assert {job.id: job.payload for job in jobs} == {job.id: job.payload for job in batch}
        held = await storage.held(QUEUE, worker.name)
        assert sorted(held, key=lambda pair: pair[0]) == sorted((j.id, j.claim) for j in jobs)
        for job in jobs[::2]:
            assert await worker.settle(job, failed())
        for job in jobs[1::2]:
            assert await worker.settle(job, completed(job.id.encode()))
            record = await storage.get(QUEUE, job.id)
            assert record is not None
            assert (record.id, record.result) == (job.id, job.id.encode())
        listed = (await storage.list_jobs(QUEUE, JobState.FAILED, limit=100)).rows
        assert {row.id for row in listed} == {job.id for job in jobs[::2]}

    async def test_a_repeated_call_answers_the_same_and_changes_nothing(
        self, client: ContractClient, dump: Dump
    ) -> None:
        batch = [a_job("a"), a_job("b", delay_ms=5), a_job("a")]
        answer = await client.enqueue(*batch, number=1)
        assert answer == [QUEUED, SCHEDULED, DUPLICATE]
        before = await dump()
        assert await client.enqueue(*batch, number=1) == answer
        assert await dump() == before

    async def test_a_repeated_call_says_queued_even_when_the_job_has_ended_meanwhile(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await client.enqueue(a_job(keep_ms=0), number=1)
        await worker.settle(await worker.claim_one(), completed(keep_ms=0))
        before = await dump()
        assert await client.enqueue(a_job(keep_ms=0), number=1) == [QUEUED]
        assert await dump() == before

    async def test_two_calls_in_flight_may_arrive_in_either_order(
        self, client: ContractClient, dump: Dump
    ) -> None:
        # Call 1 is lost on its way; call 2 is done; call 1 comes again.
        assert await client.enqueue(a_job("second"), number=2) == [QUEUED]
        assert await client.enqueue(a_job("first"), number=1) == [QUEUED]
        before = await dump()
        assert await client.enqueue(a_job("first"), number=1) == [QUEUED]
        assert await client.enqueue(a_job("second"), number=2) == [QUEUED]
        assert await dump() == before

    @pytest.mark.parametrize("was_done", [True, False])
    async def test_a_call_two_behind_is_stale_whether_it_was_done_or_not(
        self, client: ContractClient, dump: Dump, *, was_done: bool
    ) -> None:
        if was_done:
            await client.enqueue(a_job("first"), number=1)
        await client.enqueue(a_job("second"), number=2)
        await client.enqueue(a_job("third"), number=3)
        before = await dump()
        with pytest.raises(StaleCall):
            await client.enqueue(a_job("first"), number=1)
        assert await dump() == before
        assert await client.enqueue(a_job("second"), number=2) == [QUEUED]
        assert await dump() == before

    async def test_clients_and_queues_are_numbered_apart(
        self, storage: Storage, client: ContractClient
    ) -> None:
        assert await client.enqueue(a_job("a"), number=5) == [QUEUED]
        assert await ContractClient(storage, "c2").enqueue(a_job("b"), number=1) == [QUEUED]
        elsewhere = await storage.enqueue("other", [a_job("a")], call=CallId("c1", 1))
        assert elsewhere == [QUEUED]

    @pytest.mark.parametrize("state", UNENDED)
    async def test_an_id_that_has_not_ended_changes_nothing(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump, state: JobState
    ) -> None:
        await bring(state, client, worker)
        before = await dump(with_calls=False)
        assert await client.enqueue(a_job(payload=b"[2]", priority=9)) == [DUPLICATE]
        assert await dump(with_calls=False) == before

    async def test_a_completed_id_that_is_kept_changes_nothing(
        self, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await bring(JobState.COMPLETED, client, worker)
        before = await dump(with_calls=False)
        assert await client.enqueue(a_job(payload=b"[2]")) == [COMPLETED]
        assert await dump(with_calls=False) == before

    @pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
    async def test_a_failed_or_cancelled_record_is_replaced(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        await bring(state, client, worker, payload=b"." * 100)
        assert await client.enqueue(a_job(payload=b"[2]")) == [QUEUED]
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert (record.state, record.payload) == (JobState.QUEUED, b"[2]")
        assert (record.failures, record.starts, record.errors, record.reason) == (0, 0, [], "")
        stats = await storage.stats(QUEUE)
        assert (stats.history, stats.dead, stats.queued) == (0, 0, 1)
        assert (await worker.claim_one()).payload == b"[2]"

    @pytest.mark.parametrize("beside", [0, 2])
    @pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
    async def test_any_record_stands_if_that_is_asked(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        state: JobState,
        beside: int,
    ) -> None:
        await bring(state, client, worker)
        before = await storage.get(QUEUE, "x")
        jobs = [a_job("x", b"[2]", channel=storage.open_channel().name, replaces_ended=False)]
        jobs += [a_job(f"y{n}", replaces_ended=False) for n in range(beside)]
        assert await client.enqueue(*jobs) == [DUPLICATE] + [QUEUED] * beside
        assert await storage.get(QUEUE, "x") == before
        assert await client.enqueue(a_job(payload=b"[3]")) == [QUEUED]

    async def test_a_record_that_stands_for_one_job_makes_room_for_the_next_of_the_call(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await bring(JobState.FAILED, client, worker, "a")
        await bring(JobState.CANCELLED, client, worker, "b")
        staying = {job_id: a_job(job_id, replaces_ended=False) for job_id in ("a", "b")}
        batch = [staying["a"], a_job("a"), staying["a"], a_job("b"), staying["b"]]
        assert await client.enqueue(*batch) == [DUPLICATE, QUEUED, DUPLICATE, QUEUED, DUPLICATE]
        assert (await storage.stats(QUEUE)).queued == 2
        assert ids(await worker.claim()) == ["a", "b"]

    @pytest.mark.parametrize("is_plain", [True, False], ids=["plain", "asking"])
    @pytest.mark.parametrize("replaces_ended", [True, False], ids=["replacing", "staying"])
    async def test_each_of_many_alike_has_its_own_verdict(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        *,
        is_plain: bool,
        replaces_ended: bool,
    ) -> None:
        states = (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.QUEUED)
        for state in states:
            await bring(state, client, worker, state.value)
        asked = ["new", *(state.value for state in states), "new", "newer"]
        anew = QUEUED if replaces_ended else DUPLICATE
        verdicts = await client.enqueue(
            *(
                a_job(job_id, b"[2]", is_plain=is_plain, replaces_ended=replaces_ended)
                for job_id in asked
            )
        )
        assert verdicts == [QUEUED, COMPLETED, anew, anew, DUPLICATE, DUPLICATE, QUEUED]
        stored = [
            job_id for job_id, verdict in zip(asked, verdicts, strict=True) if verdict is QUEUED
        ]
        assert ids(await worker.claim()) == [JobState.QUEUED.value, *stored]
        assert (await storage.stats(QUEUE)).enqueued == len(states) + len(stored)

    @pytest.mark.parametrize("size", [9, 85])
    @pytest.mark.parametrize("is_new_id", [True, False], ids=["drawn", "own"])
    async def test_many_jobs_that_are_alike_are_stored_as_they_came(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        *,
        is_new_id: bool,
        size: int,
    ) -> None:
        batch = [
            a_job(f"n{n}", b"%d" % n + b"." * size, priority=7, is_plain=True, is_new_id=is_new_id)
            for n in range(500)
        ]
        assert await client.enqueue(*batch) == [QUEUED] * 500
        assert await client.enqueue(*batch, number=1) == [QUEUED] * 500
        assert await client.enqueue(a_job("n7"), a_job("n400")) == [DUPLICATE] * 2
        record = await storage.get(QUEUE, "n499")
        assert record is not None
        assert (record.task, record.priority, record.payload) == ("send", 7, batch[-1].payload)
        claimed = await worker.claim(500)
        assert [(job.id, job.payload) for job in claimed] == [(j.id, j.payload) for j in batch]
        assert (await storage.stats(QUEUE)).enqueued == 500

    async def test_an_id_is_free_again_when_nothing_is_kept(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job())
        await worker.settle(await worker.claim_one(), completed(keep_ms=0))
        assert await storage.get(QUEUE, "x") is None
        assert await client.enqueue(a_job(payload=b"[2]")) == [QUEUED]
        assert (await worker.claim_one()).payload == b"[2]"

    async def test_an_id_is_free_again_when_its_record_has_ended(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        # BC-24, BC-25: dedup and record end together.
        await client.enqueue(a_job())
        await worker.settle(await worker.claim_one(), completed(ttl_ms=500, keep_ms=500))
        assert await client.enqueue(a_job()) == [COMPLETED]
        await advance(501)

        async def is_gone() -> bool:
            return await storage.get(QUEUE, "x") is None

        await until(is_gone)
        assert await client.enqueue(a_job(payload=b"[2]")) == [QUEUED]
        assert (await worker.claim_one()).payload == b"[2]"

    @pytest.mark.parametrize("state", ENDED)
    async def test_an_id_is_free_again_when_its_record_was_purged(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        # BC-26.
        await bring(state, client, worker)
        assert await storage.purge(QUEUE, state, ["x"]) == 1
        assert await client.enqueue(a_job(payload=b"[2]")) == [QUEUED]
        assert (await worker.claim_one()).payload == b"[2]"

    async def test_the_same_id_twice_in_a_batch_is_stored_once(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        batch = [a_job(payload=b"[1]"), a_job(payload=b"[2]", priority=9)]
        assert await client.enqueue(*batch) == [QUEUED, DUPLICATE]
        assert [job.payload for job in await worker.claim()] == [b"[1]"]

    @pytest.mark.parametrize("state", [JobState.QUEUED, JobState.SCHEDULED])
    async def test_a_job_enqueued_again_after_its_cancel_runs_once_as_last_asked(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        state: JobState,
    ) -> None:
        # BC-28, with another tier too, so that the old entry is met first.
        await bring(state, client, worker, payload=b"[1]", priority=9)
        await storage.cancel(QUEUE, ["x"])
        assert await client.enqueue(a_job(payload=b"[2]", priority=1)) == [QUEUED]
        await advance(2 * MINUTE_MS)
        assert [job.payload for job in await worker.claim()] == [b"[2]"]
        assert await worker.claim() == []

    async def test_the_same_id_in_another_queue_is_another_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(payload=b"[1]"))
        assert await storage.enqueue("other", [a_job()], call=CallId("c1", 1)) == [QUEUED]
        assert await storage.cancel("other", ["x"]) == ["cancelled"]
        assert await state_of(storage) is JobState.QUEUED
        assert ids(await worker.claim()) == ["x"]

    async def test_a_random_id_is_stored_as_any_other(
        self, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        batch = [a_job(f"r{n}", is_new_id=True, is_plain=n % 2 == 0) for n in range(6)]
        assert await client.enqueue(*batch) == [QUEUED] * 6
        assert ids(await worker.claim()) == [job.id for job in batch]
