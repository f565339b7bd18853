"""Contract of ``watch`` and of channels: a waiter is told of every end (G11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from headrace.storage import Channel, End, FailReason, JobState, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ERROR,
    MINUTE_MS,
    QUEUE,
    STATES,
    UNENDED,
    WAITING,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    cancelled,
    completed,
    failed,
    retried,
)

MESSAGE_LIMIT = 64 * 1024


@asynccontextmanager
async def open_channel(storage: Storage) -> AsyncIterator[Channel]:
    """Open an channel that is ready to hear."""
    channel = storage.open_channel()
    try:
        assert await channel.receive() is None
        yield channel
    finally:
        await channel.aclose()


async def next_end(channel: Channel) -> End:
    """Return the next end that an channel hears of."""
    with anyio.fail_after(5):
        end = await channel.receive()
    assert end is not None
    return end


class WatchContract(Contract):
    """Tests of ``watch`` and of channels."""

    @pytest.mark.parametrize("state", STATES)
    async def test_watch_says_how_a_job_stands(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        state: JobState,
    ) -> None:
        await bring(state, client, worker)
        before = await dump()
        [end] = await storage.watch(QUEUE, ["x"], channel="")
        assert (end.queue, end.id, end.state) == (QUEUE, "x", state)
        assert end.result == (b"1" if state is JobState.COMPLETED else None)
        assert await dump() == before

    async def test_an_unknown_job_has_no_state_and_leaves_no_trace(
        self, storage: Storage, worker: ContractIncarnation, dump: Dump
    ) -> None:
        before = await dump()
        ends = await storage.watch(QUEUE, ["x", "y"], channel=storage.open_channel().name)
        assert [(end.id, end.state) for end in ends] == [("x", None), ("y", None)]
        assert await dump() == before

    async def test_a_watched_job_that_completes_is_told_with_its_result(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        async with open_channel(storage) as channel:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            await worker.settle(job, completed(b"line 1\nline 2\x00\xff"))
            end = await next_end(channel)
        assert end == End(QUEUE, "x", JobState.COMPLETED, result=b"line 1\nline 2\x00\xff")

    async def test_a_watched_job_that_fails_is_told_with_reason_and_error(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        async with open_channel(storage) as channel:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            await worker.settle(job, failed(FailReason.PERMANENT))
            end = await next_end(channel)
        assert (end.state, end.reason) == (JobState.FAILED, FailReason.PERMANENT)
        assert end.error is not None
        assert (end.error.type, end.error.message) == (ERROR.type, ERROR.message)

    @pytest.mark.parametrize("state", WAITING)
    async def test_a_watched_job_that_is_cancelled_is_told(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        # BC-51.
        await bring(state, client, worker)
        async with open_channel(storage) as channel:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            await storage.cancel(QUEUE, ["x"])
            assert await next_end(channel) == End(QUEUE, "x", JobState.CANCELLED)

    @pytest.mark.parametrize("state", WAITING)
    async def test_a_watched_job_that_is_purged_is_told_as_gone(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        # BC-51.
        await bring(state, client, worker)
        async with open_channel(storage) as channel:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            assert await storage.purge(QUEUE, state, ["x"]) == 1
            assert await next_end(channel) == End(QUEUE, "x", None)

    async def test_a_watched_job_that_stalls_for_the_last_time_is_told(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await bring(JobState.ACTIVE, client, worker, max_stalls=1)
        async with open_channel(storage) as channel:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            await worker.die()
            end = await next_end(channel)
        assert (end.state, end.reason) == (JobState.FAILED, FailReason.STALLED)

    async def test_a_watched_job_that_expires_is_told(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job(expires_in_ms=10))
        async with open_channel(storage) as channel:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            await advance(10)
            await worker.claim()
            end = await next_end(channel)
        assert (end.state, end.reason, end.error) == (JobState.FAILED, FailReason.EXPIRED, None)

    @pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.QUEUED])
    async def test_watch_itself_ends_a_job_that_is_overdue_to_start(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        state: JobState,
    ) -> None:
        # A queue without workers must not hang its waiters.
        await bring(state, client, worker, expires_in_ms=10)
        async with open_channel(storage) as channel:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            await advance(10)
            [end] = await storage.watch(QUEUE, ["x"], channel="")
            assert (end.state, end.reason) == (JobState.FAILED, FailReason.EXPIRED)
            told = await next_end(channel)
        assert (told.state, told.reason) == (JobState.FAILED, FailReason.EXPIRED)
        await advance(2 * MINUTE_MS)
        assert await worker.claim() == []

    async def test_watch_leaves_a_job_alone_that_has_started_in_time(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await bring(JobState.RETRYING, client, worker, expires_in_ms=10)
        await advance(10)
        [end] = await storage.watch(QUEUE, ["x"], channel="")
        assert end.state is JobState.RETRYING

    async def test_watch_leaves_an_overdue_job_alone_while_it_runs(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker, expires_in_ms=10)
        assert job is not None
        await advance(10)
        [end] = await storage.watch(QUEUE, ["x"], channel="")
        assert end.state is JobState.ACTIVE
        assert await worker.settle(job, completed())

    async def test_enqueue_registers_a_channel_in_the_same_step(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        async with open_channel(storage) as channel:
            await client.enqueue(a_job(channel=channel.name))
            await worker.settle(await worker.claim_one(), completed(b"1"))
            assert (await next_end(channel)).result == b"1"

    @pytest.mark.parametrize("state", UNENDED)
    async def test_a_duplicate_registers_its_channel_too(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        state: JobState,
    ) -> None:
        job = await bring(state, client, worker)
        async with open_channel(storage) as channel, open_channel(storage) as second:
            await storage.watch(QUEUE, ["x"], channel=channel.name)
            assert await client.enqueue(a_job(channel=second.name)) == ["duplicate"]
            if state is not JobState.ACTIVE or job is None:
                await advance(MINUTE_MS)
                job = await worker.claim_one()
            await worker.settle(job, completed(b"1"))
            assert (await next_end(channel)).result == b"1"
            assert (await next_end(second)).result == b"1"

    async def test_a_channel_survives_retries_and_hears_the_end_once(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        async with open_channel(storage) as channel:
            await client.enqueue(a_job("x", channel=channel.name), a_job("y"))
            for _ in range(3):  # every reconnect watches again
                await storage.watch(QUEUE, ["x", "y"], channel=channel.name)
            jobs = {job.id: job for job in await worker.claim()}
            await worker.settle(jobs["x"], retried(0))
            await worker.settle(await worker.claim_one(), cancelled())
            await worker.settle(jobs["y"], completed())
            ends = [await next_end(channel) for _ in range(2)]
        assert [(end.id, end.state) for end in ends] == [("x", "cancelled"), ("y", "completed")]

    @pytest.mark.parametrize("excess", [0, 1])
    async def test_a_result_over_64_kib_is_cut_from_the_message_and_read_instead(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, excess: int
    ) -> None:
        result = b"." * (MESSAGE_LIMIT + excess)
        async with open_channel(storage) as channel:
            await client.enqueue(a_job(channel=channel.name))
            await worker.settle(await worker.claim_one(), completed(result))
            end = await next_end(channel)
        assert (end.is_cut, end.result) == (bool(excess), None if excess else result)
        record = await storage.get(QUEUE, "x")
        assert record is not None
        assert record.result == result

    @pytest.mark.parametrize("keep_ms", [0, 1000])
    async def test_a_result_that_is_not_kept_is_still_told(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, keep_ms: int
    ) -> None:
        async with open_channel(storage) as channel:
            await client.enqueue(a_job(channel=channel.name))
            await worker.settle(
                await worker.claim_one(), completed(b"1", ttl_ms=0, keep_ms=keep_ms)
            )
            assert (await next_end(channel)).result == b"1"

    async def test_a_crowd_of_waiters_is_bounded_and_all_can_still_read(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        for _ in range(100):
            await storage.watch(QUEUE, ["x"], channel=storage.open_channel().name)
        before = await dump()
        async with open_channel(storage) as late:
            await storage.watch(QUEUE, ["x"], channel=late.name)
        assert await dump() == before
        await worker.settle(job, completed(b"1"))
        [end] = await storage.watch(QUEUE, ["x"], channel="")
        assert end.result == b"1"

    async def test_a_redriven_job_tells_no_earlier_waiter(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        async with open_channel(storage) as channel:
            await client.enqueue(a_job(channel=channel.name))
            await worker.settle(await worker.claim_one(), failed())
            assert (await next_end(channel)).state is JobState.FAILED
            await storage.redrive(QUEUE, ["x"])
            await worker.settle(await worker.claim_one(), completed())
            await client.enqueue(a_job("y", channel=channel.name))
            await storage.cancel(QUEUE, ["y"])
            assert (await next_end(channel)).id == "y"
