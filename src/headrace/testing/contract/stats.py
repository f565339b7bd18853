"""Contract of ``stats``: counts now, and the work of the last minute."""

from __future__ import annotations

import pytest

from headrace.storage import JobState, QueueCounts, QueueSettings, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    EACH_STATE,
    MINUTE_MS,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
)


class StatsContract(Contract):
    """Tests of ``stats``."""

    async def test_a_queue_that_never_was_counts_nothing(
        self, storage: Storage, dump: Dump
    ) -> None:
        before = await dump()
        stats = await storage.stats("no-such-queue")
        assert stats.settings == QueueSettings()
        for field in ("queued", "scheduled", "retrying", "active", "history", "dead", "workers"):
            assert getattr(stats, field) == 0
        assert (stats.is_paused, stats.oldest_ms, stats.waits_ms, stats.runs_ms) == (
            False,
            0,
            {},
            {},
        )
        assert await dump() == before

    async def test_every_state_is_counted(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
    ) -> None:
        for state in EACH_STATE:
            await bring(state, client, worker, state.value)
        stats = await storage.stats(QUEUE)
        assert (stats.queued, stats.scheduled, stats.retrying, stats.active) == (1, 1, 1, 1)
        assert (stats.history, stats.dead, stats.workers) == (2, 1, 2)
        assert (stats.enqueued, stats.completed, stats.failed) == (7, 1, 1)
        assert (stats.retried, stats.cancelled, stats.stalled) == (1, 1, 0)

    async def test_the_last_minute_passes(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await bring(JobState.COMPLETED, client, worker)
        await advance(50_000)
        await bring(JobState.FAILED, client, worker, "y")
        stats = await storage.stats(QUEUE)
        assert (stats.enqueued, stats.completed, stats.failed) == (2, 1, 1)
        assert 50_000 <= stats.window_ms <= MINUTE_MS
        await advance(20_000)
        stats = await storage.stats(QUEUE)
        assert (stats.enqueued, stats.completed, stats.failed) == (1, 0, 1)
        await advance(MINUTE_MS)
        stats = await storage.stats(QUEUE)
        assert (stats.enqueued, stats.failed, stats.runs_ms, stats.waits_ms) == (0, 0, {}, {})

    @pytest.mark.parametrize("value_ms", [0, 1, 2, 7, 100, 999, 12_345, 3_600_000])
    async def test_a_histogram_is_at_most_a_tenth_too_high(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        value_ms: int,
    ) -> None:
        await client.enqueue(a_job())
        await advance(value_ms)
        await worker.settle(await worker.claim_one(), completed(), run_ms=value_ms)
        stats: QueueCounts = await storage.stats(QUEUE)
        for histogram in (stats.waits_ms, stats.runs_ms):
            [(bound, count)] = histogram.items()
            assert count == 1
            assert value_ms <= bound <= value_ms * 1.1 + 1

    async def test_histograms_sum_what_fell_in_the_window(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        for n in range(5):
            await client.enqueue(a_job(f"{n}"))
            await worker.settle(await worker.claim_one(), completed(), run_ms=100 if n % 2 else 5)
            await advance(9_000)
        counts = (await storage.stats(QUEUE)).runs_ms
        assert sorted(counts.values()) == [2, 3]
        assert list(counts) == sorted(counts)

    async def test_the_oldest_is_how_long_the_head_has_been_ready(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job("gone"), a_job("later", delay_ms=10))
        await advance(300)
        await client.enqueue(a_job("head"))
        await storage.cancel(QUEUE, ["gone"])
        await advance(40)
        assert (await storage.stats(QUEUE)).oldest_ms == 40
        await worker.claim()
        assert (await storage.stats(QUEUE)).oldest_ms == 0

    async def test_the_oldest_is_that_of_all_lanes(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job("cpu", lane="process"))
        await advance(30)
        await client.enqueue(a_job("io"))
        await advance(10)
        assert (await storage.stats(QUEUE)).oldest_ms == 40
        await worker.claim(slots={"process": 1})
        assert (await storage.stats(QUEUE)).oldest_ms == 10
        await worker.claim()
        assert (await storage.stats(QUEUE)).oldest_ms == 0

    async def test_lanes_beside_the_default_one_are_counted_through_every_move(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        async def counts() -> tuple[int, dict[str, int]]:
            stats = await storage.stats(QUEUE)
            return stats.queued, stats.lanes

        assert await counts() == (0, {})
        names = ["claimed", "cancelled", "purged", "expires"]
        await client.enqueue(
            *(a_job(name, lane="gpu", expires_in_ms=10 * (name == "expires")) for name in names),
            a_job("io"),
            a_job("cpu", lane="a.process"),
            a_job("due", lane="gpu", delay_ms=20),
        )
        assert await counts() == (6, {"a.process": 1, "gpu": 4})
        assert list((await counts())[1]) == ["a.process", "gpu"]
        await storage.cancel(QUEUE, ["cancelled"])
        assert await counts() == (5, {"a.process": 1, "gpu": 3})
        await storage.purge(QUEUE, JobState.QUEUED, ["purged"])
        assert await counts() == (4, {"a.process": 1, "gpu": 2})
        await advance(10)
        [job] = await worker.claim(slots={"gpu": 9})
        assert (job.id, await counts()) == ("claimed", (2, {"a.process": 1}))
        await advance(10)
        await worker.claim(slots={})
        assert await counts() == (3, {"a.process": 1, "gpu": 1})
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
        assert await counts() == (4, {"a.process": 1, "gpu": 2})
        await worker.claim(slots={"gpu": 9})
        await worker.die()
        assert await counts() == (4, {"a.process": 1, "gpu": 2})
        await storage.redrive(QUEUE, ["expires"])
        assert await counts() == (5, {"a.process": 1, "gpu": 3})
