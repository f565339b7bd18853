"""Contract of waiters: what wakes an idle consumer (DESIGN §5.3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import anyio
import pytest
import pytest_asyncio

from headrace import StorageError
from headrace.storage import JobState, Storage, Waiter
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    failed,
    ids,
    retried,
    stalled,
    until,
)

Step = Callable[[Storage, ContractClient, ContractIncarnation], Awaitable[object]]
OpenWaiter = Callable[[ContractIncarnation, str], Waiter]


async def put_back(storage: Storage, client: ContractClient, worker: ContractIncarnation) -> None:
    """Let the worker give back what it has."""
    await storage.put_back(QUEUE, worker.name, await storage.held(QUEUE, worker.name))


async def retire(storage: Storage, client: ContractClient, worker: ContractIncarnation) -> None:
    """Let the worker end."""
    assert await storage.retire(QUEUE, worker.name) == 0


async def reap(storage: Storage, client: ContractClient, worker: ContractIncarnation) -> None:
    """Let the worker die, and a sweep find it."""
    await worker.die()


class WaitContract(Contract):
    """Tests of waiters."""

    @pytest_asyncio.fixture(loop_scope="function")
    async def open_waiter(self, storage: Storage) -> AsyncIterator[OpenWaiter]:
        """Return what opens an incarnation's waiter of a lane, to be closed after the test."""
        opened = []

        def open_waiter(worker: ContractIncarnation, lane: str) -> Waiter:
            opened.append(storage.open_waiter(QUEUE, worker.name, lane))
            return opened[-1]

        yield open_waiter
        for waiter in opened:
            await waiter.aclose()

    @pytest.fixture
    def waiter(self, open_waiter: OpenWaiter, worker: ContractIncarnation) -> Waiter:
        """Return the waiter of the first incarnation."""
        return open_waiter(worker, "default")

    async def test_a_blocked_waiter_is_woken_by_an_enqueue(
        self, client: ContractClient, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        woken = []

        async def wait() -> None:
            while not await waiter.wait(2):
                pass
            woken.extend(await worker.claim())

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await client.enqueue(a_job())
        assert ids(woken) == ["x"]

    async def test_many_jobs_leave_one_token(
        self, client: ContractClient, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        for n in range(5):
            await client.enqueue(a_job(f"{n}"))
        assert await waiter.wait(1)
        assert not await waiter.wait(0.01)
        assert len(await worker.claim()) == 5

    async def test_a_waiter_without_work_times_out(self, waiter: Waiter) -> None:
        assert not await waiter.wait(0.01)

    async def test_an_interrupt_ends_a_wait_whether_it_blocks_yet_or_not(
        self, waiter: Waiter
    ) -> None:
        with anyio.fail_after(10):
            for _ in range(5):
                results: list[bool] = []

                async def wait(results: list[bool]) -> None:
                    results.append(await waiter.wait(2))

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(wait, results)
                    await anyio.lowlevel.checkpoint()
                    await waiter.interrupt()
                assert results == [False]

    async def test_a_claim_behind_a_wait_brings_the_job_that_ends_it(
        self, client: ContractClient, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiter.wait, 2)
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(client.enqueue, a_job())
            with anyio.fail_after(10):
                reply = await worker.ask_behind(waiter)
        assert ids(reply.jobs) == ["x"]
        assert not await waiter.wait(0.01), "the claim took the token too"

    async def test_a_claim_behind_a_wait_without_work_finds_nothing(
        self, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiter.wait, 0.05)
            await anyio.lowlevel.checkpoint()
            with anyio.fail_after(10):
                reply = await worker.ask_behind(waiter)
        assert reply.jobs == []
        assert not reply.has_more

    async def test_a_claim_behind_a_wait_that_is_over_is_made_at_once(
        self, client: ContractClient, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        await client.enqueue(a_job())
        assert await waiter.wait(1)
        with anyio.fail_after(1):
            assert ids((await worker.ask_behind(waiter)).jobs) == ["x"]

    async def test_a_claim_behind_a_wait_that_was_repeated_meanwhile_brings_nothing_more(
        self, client: ContractClient, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        nonce = worker.nonce()
        late = []

        async def ask() -> None:
            late.append(await worker.ask_behind(waiter, number=1, nonce=nonce))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiter.wait, 2)
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(ask)
            await anyio.lowlevel.checkpoint()
            assert (await worker.ask(1, number=1, nonce=nonce)).jobs == []
            await client.enqueue(a_job())
        assert [reply.jobs for reply in late] == [[]]
        assert ids((await worker.ask(1, number=2)).jobs) == ["x"]

    async def test_an_interrupt_ends_the_claim_behind_a_wait_too(
        self, client: ContractClient, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        async def ask() -> None:
            with suppress(StorageError):
                assert (await worker.ask_behind(waiter)).jobs == []

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(waiter.wait, 2)
                await anyio.lowlevel.checkpoint()
                tasks.start_soon(ask)
                await anyio.lowlevel.checkpoint()
                await waiter.interrupt()
            await client.enqueue(a_job())
            await ask()
        assert ids(await worker.claim()) == ["x"]

    async def test_a_token_without_a_free_slot_is_passed_on(
        self,
        open_waiter: OpenWaiter,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        waiter: Waiter,
    ) -> None:
        await client.enqueue(a_job())
        assert await waiter.wait(1)
        reply = await worker.ask(slots={})
        assert reply.jobs == []
        second = open_waiter(other, "default")
        assert await second.wait(1)
        assert ids(await other.claim()) == ["x"]

    async def test_whoever_leaves_jobs_behind_wakes_the_next(
        self, client: ContractClient, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        await client.enqueue(a_job("a"), a_job("b"))
        assert await waiter.wait(1)
        assert (await worker.ask(1)).has_more
        assert await waiter.wait(1)
        assert not (await worker.ask(1)).has_more
        assert not await waiter.wait(0.01)

    async def test_each_lane_has_a_token_of_its_own(
        self,
        open_waiter: OpenWaiter,
        client: ContractClient,
        worker: ContractIncarnation,
        waiter: Waiter,
    ) -> None:
        other_lane = open_waiter(worker, "process")
        await client.enqueue(a_job("cpu", lane="process"))
        assert not await waiter.wait(0.01)
        assert await other_lane.wait(1)
        await client.enqueue(a_job("io"))
        assert await waiter.wait(1)
        # What a claim of one lane finds and leaves in it wakes that lane only.
        assert await worker.claim(5) != []
        assert not await waiter.wait(0.01)
        assert not await other_lane.wait(0.01)
        assert ids(await worker.claim(slots={"process": 1})) == ["cpu"]

    async def test_a_due_job_wakes_its_own_lane_whoever_promotes_it(
        self,
        open_waiter: OpenWaiter,
        client: ContractClient,
        worker: ContractIncarnation,
        waiter: Waiter,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job("cpu", lane="process", delay_ms=1000))
        other_lane = open_waiter(worker, "process")
        assert await other_lane.wait(1), "its due time is the queue's first"
        assert (await worker.ask(slots={"process": 1})).next_due_ms == 1000
        await advance(1000)
        assert await worker.claim(5) == []
        assert await other_lane.wait(1)
        assert not await waiter.wait(0.01)

    async def test_a_resumed_queue_wakes_every_lane_that_has_jobs(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        waiter: Waiter,
        open_waiter: OpenWaiter,
    ) -> None:
        other_lane = open_waiter(worker, "process")
        await storage.pause(QUEUE)
        await client.enqueue(a_job("cpu", lane="process"), a_job("io"))
        await storage.resume(QUEUE)
        assert await waiter.wait(1)
        assert await other_lane.wait(1)

    async def test_only_an_earlier_due_time_wakes(
        self, client: ContractClient, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        await client.enqueue(a_job("a", delay_ms=2000))
        assert await waiter.wait(1)
        assert (await worker.ask()).next_due_ms == 2000
        await client.enqueue(a_job("later", delay_ms=3000))
        assert not await waiter.wait(0.01)
        await client.enqueue(a_job("earlier", delay_ms=1000))
        assert await waiter.wait(1)
        assert (await worker.ask()).next_due_ms == 1000

    @pytest.mark.parametrize("step", [put_back, retire, reap])
    async def test_what_makes_a_job_ready_again_wakes(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        *,
        step: Step,
        open_waiter: OpenWaiter,
    ) -> None:
        await bring(JobState.ACTIVE, client, worker)
        waiter = open_waiter(other, "default")
        await waiter.wait(0.01)
        await other.claim()
        await step(storage, client, worker)
        assert await waiter.wait(1)
        assert ids(await other.claim()) == ["x"]

    async def test_a_redrive_and_a_retry_wake(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        waiter: Waiter,
        advance: Advance,
    ) -> None:
        job = await bring(JobState.ACTIVE, client, worker)
        assert job is not None
        await waiter.wait(0.01)
        await worker.settle(job, retried())
        assert await waiter.wait(1)
        assert (await worker.ask()).next_due_ms == MINUTE_MS
        await advance(MINUTE_MS)
        await worker.settle(await worker.claim_one(), failed())
        await waiter.wait(0.01)
        await storage.redrive(QUEUE, ["x"])
        assert await waiter.wait(1)

    async def test_a_token_that_died_with_its_holder_is_left_again(
        self,
        open_waiter: OpenWaiter,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        waiter: Waiter,
    ) -> None:
        await client.enqueue(a_job())
        assert await waiter.wait(1)
        # Dead between the token and the claim: BC-05.
        await worker.die()
        second = open_waiter(other, "default")
        assert await second.wait(1)
        assert ids(await other.claim()) == ["x"]

    async def test_a_token_for_the_first_due_time_is_left_again_in_its_lane(
        self,
        open_waiter: OpenWaiter,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        waiter: Waiter,
    ) -> None:
        first = open_waiter(worker, "gpu")
        second = open_waiter(other, "gpu")
        await client.enqueue(a_job(lane="gpu", delay_ms=MINUTE_MS))
        assert await first.wait(1)
        await worker.die()
        assert await second.wait(1)
        assert (await other.ask(slots={"gpu": 1})).next_due_ms == MINUTE_MS

    async def test_a_claim_of_another_lane_does_not_take_a_lanes_token(
        self,
        open_waiter: OpenWaiter,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        process = open_waiter(other, "process")
        await client.enqueue(a_job("cpu", lane="process"))
        assert await worker.claim(5) == []
        assert await process.wait(1)
        assert ids(await other.claim(slots={"process": 1})) == ["cpu"]

    async def test_a_stalled_job_wakes_its_own_lane(
        self,
        open_waiter: OpenWaiter,
        client: ContractClient,
        worker: ContractIncarnation,
        waiter: Waiter,
    ) -> None:
        process = open_waiter(worker, "process")
        await client.enqueue(a_job(lane="process"))
        assert await process.wait(1)
        [job] = await worker.claim(slots={"process": 1})
        await worker.settle(job, stalled())
        assert await process.wait(1)
        assert not await waiter.wait(0.01)

    async def test_a_waiter_works_again_after_it_was_closed(
        self, client: ContractClient, worker: ContractIncarnation, waiter: Waiter
    ) -> None:
        await waiter.aclose()
        await client.enqueue(a_job())

        async def has_token() -> bool:
            return await waiter.wait(0.5)

        await until(has_token)
        assert ids(await worker.claim()) == ["x"]
