"""Contract of ``delete_queue``: a queue goes as a whole, and never while there is a job in it."""

from __future__ import annotations

import time

import pytest

from headrace.storage import (
    CommitOutcome,
    EnqueueOutcome,
    JobState,
    QueueSettings,
    Settlement,
    Storage,
    Terms,
)
from headrace.testing.contract.bulk_steps import ContractWriter, commit_stages, publish_all
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    DAY_MS,
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    bring,
    completed,
    ids,
)


async def delete(storage: Storage, *, is_forced: bool = False) -> int | None:
    """Delete the queue to the end."""
    while left := await storage.delete_queue(QUEUE, is_forced=is_forced):
        pass
    return left


def next_millisecond() -> None:
    """Return in another millisecond: ids of events may be times, counted from 0 in each."""
    now_ms = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == now_ms:
        pass


class DeleteQueueContract(Contract):
    """Tests of ``delete_queue``."""

    async def test_an_empty_queue_goes_with_all_that_it_was(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job())
        await storage.cancel(QUEUE, ["x"])
        await storage.purge(QUEUE, JobState.CANCELLED, ["x"])
        await storage.pause(QUEUE)
        await storage.configure(QUEUE, history=7)
        await storage.retire(QUEUE, worker.name)
        assert await delete(storage) == 0
        assert await storage.queues() == []
        stats = await storage.stats(QUEUE)
        assert (stats.is_paused, stats.settings) == (False, QueueSettings())
        assert (await storage.events(QUEUE)).events == []

    async def test_the_tokens_that_its_jobs_took_from_many_gates_are_there_again(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        once_a_day = Terms(0, 1, DAY_MS, 1)
        batches = [[f"{n}" for n in range(first, first + 400)] for first in (0, 400)]
        for names in batches:
            await client.enqueue(*(a_gated_job(name, name, once_a_day) for name in names))
            ended = completed(ttl_ms=0, keep_ms=0)
            jobs = await worker.claim(400)
            await worker.settle_all(*(Settlement(job.id, job.claim, 7, ended) for job in jobs))
        [seen] = await client.enqueue(a_gated_job("too soon", "799", once_a_day))
        assert seen is EnqueueOutcome.BLOCKED
        await storage.purge(QUEUE, JobState.BLOCKED, ["too soon"])
        await storage.retire(QUEUE, worker.name)
        assert await delete(storage) == 0
        for names in batches:
            outcomes = await client.enqueue(*(a_gated_job(n, n, once_a_day) for n in names))
            assert set(outcomes) == {EnqueueOutcome.QUEUED}

    async def test_what_comes_afterwards_makes_a_new_queue(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job())
        await storage.cancel(QUEUE, ["x"])
        await storage.purge(QUEUE, JobState.CANCELLED, ["x"])
        await storage.retire(QUEUE, worker.name)
        seen = (await storage.events(QUEUE)).last_id
        assert await delete(storage) == 0
        next_millisecond()
        assert await client.enqueue(a_job()) == [EnqueueOutcome.QUEUED]
        assert await storage.queues() == [QUEUE]
        # Who followed it hears of the new one too, and sees by the number that it is another.
        assert [e.number for e in (await storage.events(QUEUE, after=seen)).events] == [1]
        assert ids(await (await ContractIncarnation(storage, "later").register()).claim()) == ["x"]

    @pytest.mark.parametrize("is_forced", [False, True])
    @pytest.mark.parametrize("state", STATES)
    async def test_a_queue_with_a_job_in_any_state_stays_as_it_is(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        state: JobState,
        *,
        is_forced: bool,
    ) -> None:
        await bring(state, client, worker)
        before = await dump()
        assert await storage.delete_queue(QUEUE, is_forced=is_forced) is None
        assert await dump() == before
        assert await storage.queues() == [QUEUE]

    async def test_an_ended_job_stands_in_the_way_until_it_is_pruned(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await bring(JobState.FAILED, client, worker)
        await storage.retire(QUEUE, worker.name)
        await advance(31 * DAY_MS)
        assert await storage.delete_queue(QUEUE) is None
        cursor = await storage.prune(QUEUE)
        while cursor:
            cursor = await storage.prune(QUEUE, cursor=cursor)
        assert await delete(storage) == 0

    async def test_an_incarnation_stands_in_the_way_unless_that_is_forced(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        before = await dump()
        assert await storage.delete_queue(QUEUE) is None
        assert await dump() == before
        assert await delete(storage, is_forced=True) == 0
        assert await storage.workers(QUEUE) == []
        await client.enqueue(a_job())
        assert (await worker.ask()).is_gone
        assert ids(await (await ContractIncarnation(storage, "anew").register()).claim()) == ["x"]

    async def test_entries_of_cancelled_jobs_are_nobodys_later(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(f"{n}", lane="process", priority=n % 10) for n in range(20)))
        await storage.cancel(QUEUE, [f"{n}" for n in range(20)])
        await storage.purge(QUEUE, JobState.CANCELLED, [f"{n}" for n in range(20)])
        assert await delete(storage, is_forced=True) == 0
        await client.enqueue(a_job("0", lane="process"))
        later = await ContractIncarnation(storage, "later").register()
        assert ids(await later.claim(slots={"process": 9})) == ["0"]

    async def test_a_long_history_of_events_goes_in_pieces(
        self, storage: Storage, client: ContractClient
    ) -> None:
        for n in range(30):
            await client.enqueue(a_job(f"{n}"))
        await storage.cancel(QUEUE, [f"{n}" for n in range(30)])
        await storage.purge(QUEUE, JobState.CANCELLED, [f"{n}" for n in range(30)])
        assert await delete(storage) == 0
        assert (await storage.events(QUEUE)).events == []

    async def test_a_queue_that_never_was_and_a_second_call_are_no_error(
        self, storage: Storage
    ) -> None:
        assert await storage.delete_queue(QUEUE) == 0
        assert await storage.delete_queue(QUEUE, is_forced=True) == 0
        assert await storage.queues() == []

    async def test_what_is_committed_and_not_published_goes_along(self, storage: Storage) -> None:
        for n in range(3):
            writer = ContractWriter(storage, f"w{n}")
            for m in range(30):
                await writer.stage(a_job(f"{n}-{m}"))
            await writer.commit()
        assert await delete(storage) == 0
        assert await storage.publish(QUEUE) == 0
        assert [await storage.read_write(QUEUE, f"w{n}") for n in range(3)] == [None] * 3
        assert await storage.queues() == []

    async def test_what_is_staged_and_writes_that_are_published_stay(
        self, storage: Storage
    ) -> None:
        loose = ContractWriter(storage, "loose")
        await commit_stages(storage, write_id="published")
        await loose.stage(a_job())
        assert await delete(storage) == 0
        assert await storage.read_write(QUEUE, "published") is not None
        assert await loose.commit() is CommitOutcome.COMMITTED
        await publish_all(storage)
        assert await storage.queues() == [QUEUE]
