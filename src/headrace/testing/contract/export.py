"""Contract of ``export``: ended jobs are read back, page by page and later on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace import InvalidOption
from headrace.storage import (
    BATCH_LIMIT,
    BATCH_LIMIT_BYTES,
    EXPORT_LOOKS,
    EXPORT_PAGE_LIMIT,
    ExportPage,
    JobState,
    Outcome,
    Settlement,
    Storage,
    cursor_behind,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ENDED,
    HOUR_MS,
    QUEUE,
    UNENDED,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    cancelled,
    completed,
    failed,
    record_of,
    started,
    until,
)

OUTCOMES = {
    JobState.COMPLETED: completed(),
    JobState.FAILED: failed(),
    JobState.CANCELLED: cancelled(),
}


class Archive:
    """Reads the ended jobs of a state, from where it has stopped."""

    def __init__(
        self, storage: Storage, state: JobState = JobState.COMPLETED, *, limit: int = 2
    ) -> None:
        self.pages: list[ExportPage] = []
        self._storage = storage
        self._state = state
        self._limit = limit
        self._cursor = ""

    async def page(self) -> list[str]:
        """Return the ids of one page."""
        page = await self._storage.export(
            QUEUE, self._state, cursor=self._cursor, limit=self._limit
        )
        self.pages.append(page)
        self._cursor = page.cursor
        return [record.id for record in page.records]

    async def read(self) -> list[str]:
        """Return the ids of all pages that there are now."""
        found = await self.page()
        while self.pages[-1].has_more:
            found += await self.page()
        return found


async def end(
    client: ContractClient,
    worker: ContractIncarnation,
    names: Sequence[str],
    outcome: Outcome | None = None,
) -> None:
    """Let new jobs end in one call."""
    await client.enqueue(*map(a_job, names))
    jobs = {job.id: job for job in await worker.claim()}
    how = outcome or completed()
    await worker.settle_all(*(Settlement(name, jobs[name].claim, 7, how) for name in names))


class ExportContract(Contract):
    """Tests of ``export``."""

    @pytest.mark.parametrize("state", ENDED)
    async def test_ended_jobs_come_with_all_that_is_kept_in_the_order_of_their_ends(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        dump: Dump,
        *,
        state: JobState,
    ) -> None:
        names = ["c", "a", "d", "b", "e"]
        for number, name in enumerate(names):
            await bring(
                state,
                client,
                worker,
                name,
                payload=b"." * number,
                options=b'{"n":1}',
                keep_ms=HOUR_MS + number,
                max_stalls=number + 2,
            )
            await advance(1)
        expected = [await record_of(storage, name) for name in names]
        before = await dump()
        archive = Archive(storage, state)
        assert await archive.read() == names
        assert await dump() == before
        assert [r for page in archive.pages for r in page.records] == expected
        assert [(r.keep_ms - HOUR_MS, r.max_stalls - 2) for r in expected] == list(
            zip(range(5), range(5), strict=True)
        )
        assert [page.has_more for page in archive.pages] == [True, True, False]

    async def test_a_job_that_ended_in_this_very_millisecond_waits_for_a_later_call(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        archive = Archive(storage)
        await end(client, worker, ["a"])
        await advance(1)
        await end(client, worker, ["c"])
        assert await archive.read() == ["a"]
        assert not archive.pages[-1].has_more
        await end(client, worker, ["b"])
        assert await archive.read() == []
        await advance(1)
        assert await archive.read() == ["b", "c"]

    async def test_jobs_of_one_millisecond_come_by_their_ids_as_bytes(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        names = ["b:2", "é", "b", "B", "1", "b:10", "日", "%62", "b "]
        await end(client, worker, names)
        await advance(1)
        assert await Archive(storage).read() == sorted(names, key=str.encode)

    async def test_who_goes_on_from_the_last_cursor_gets_each_job_once(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        archive, found = Archive(storage), list[str]()
        ended: list[str] = []
        for number in range(12):
            names = [f"{(7 * number + n) % 60:02}" for n in range(number % 4)]
            await end(client, worker, names)
            ended += names
            if number % 3 == 0:
                await advance(1)
            # One page only, so that jobs end between pages too.
            found += await archive.page()
        await advance(1)
        found += await archive.read()
        assert sorted(found) == sorted(ended)
        assert await archive.read() == []
        assert [r.changed_ms for page in archive.pages for r in page.records] == sorted(
            r.changed_ms for page in archive.pages for r in page.records
        )

    async def test_one_goes_on_behind_any_job_of_a_page(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        names = ["a", "b:1", "c", "é"]
        await end(client, worker, names[:2], failed())
        await advance(1)
        await end(client, worker, names[2:], failed())
        await advance(1)
        page = await storage.export(QUEUE, JobState.FAILED)
        assert page.cursor == cursor_behind(page.records[-1])
        for n, record in enumerate(page.records, 1):
            rest = await storage.export(QUEUE, JobState.FAILED, cursor=cursor_behind(record))
            assert rest.records == page.records[n:]
            assert rest.cursor == page.cursor

    async def test_as_many_as_one_call_can_end_in_a_millisecond_come_in_pages(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        names = [f"{n:03}" for n in range(BATCH_LIMIT)]
        await end(client, worker, names[::-1])
        await advance(1)
        archive = Archive(storage, limit=10 * EXPORT_PAGE_LIMIT)
        assert await archive.read() == names
        sizes = [len(page.records) for page in archive.pages]
        assert max(sizes) == EXPORT_PAGE_LIMIT

    async def test_each_state_has_its_own_export(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        for n in range(6):
            await end(client, worker, [f"{n}"], OUTCOMES[ENDED[n % 3]])
            await advance(1)
        for n, state in enumerate(ENDED):
            assert await Archive(storage, state).read() == [f"{n}", f"{n + 3}"]

    async def test_what_is_taken_out_between_two_pages_is_passed_over(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        names = [f"{n}" for n in range(9)]
        for name in names:
            await end(client, worker, [name], failed())
            await advance(1)
        archive = Archive(storage, JobState.FAILED)
        assert await archive.page() == ["0", "1"]
        # The last that was read too: the place is found again without it.
        assert await storage.purge(QUEUE, JobState.FAILED, ["1", "3"]) == 2
        assert await storage.redrive(QUEUE, ["4"]) == 1
        assert await client.enqueue(a_job("5")) == ["queued"]
        assert await archive.page() == ["2", "6"]
        for job in await worker.claim():
            await worker.settle(job, failed())
        await advance(1)
        assert await archive.read() == ["7", "8", "4", "5"]

    async def test_records_that_are_over_are_passed_over_pruned_or_not(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        for n in range(6):
            await end(client, worker, [f"{n}"], completed(keep_ms=50) if n % 2 else completed())
        await advance(1)
        archive = Archive(storage, limit=1)
        assert await archive.page() == ["0"]
        await advance(50)

        async def are_over() -> bool:
            return await Archive(storage).read() == ["0", "2", "4"]

        await until(are_over)
        assert await archive.page() == ["2"]
        await storage.prune(QUEUE)
        assert await archive.read() == ["4"]

    async def test_long_arguments_and_results_are_read_as_long_as_they_are_kept(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        long = b"\x00line\xff" * 1000
        ends = {"a": completed(long), "b": completed(long, ttl_ms=50), "c": completed(ttl_ms=0)}
        for name, outcome in ends.items():
            await client.enqueue(a_job(name, payload=long))
            await worker.settle(await worker.claim_one(), outcome)
        await advance(50)

        async def are_read() -> bool:
            page = await storage.export(QUEUE, JobState.COMPLETED)
            assert [record.payload for record in page.records] == [long] * 3
            return [record.result for record in page.records] == [long, None, None]

        await until(are_read)

    async def test_a_page_keeps_to_the_bytes_of_a_call_but_for_its_first_job(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        largest = b"." * 1024 * 1024
        for n in range(6):
            await client.enqueue(a_job(f"{n}", payload=largest))
            await worker.settle(await worker.claim_one(), completed(largest))
            await advance(1)
        archive = Archive(storage, limit=EXPORT_PAGE_LIMIT)
        assert await archive.read() == [f"{n}" for n in range(6)]
        for page in archive.pages:
            size = sum(len((r.payload or b"") + (r.result or b"")) for r in page.records)
            assert 0 < size <= BATCH_LIMIT_BYTES
        assert len(archive.pages) > 2

    async def test_a_page_that_meets_none_of_its_state_stops_and_goes_on(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await end(client, worker, [f"{n:03}" for n in range(BATCH_LIMIT)], cancelled())
        await end(client, worker, [f"{n:03}" for n in range(EXPORT_LOOKS, 600)], cancelled())
        await advance(1)
        await end(client, worker, ["x"])
        await advance(1)
        archive = Archive(storage, limit=EXPORT_PAGE_LIMIT)
        assert await archive.read() == ["x"]
        assert len(archive.pages) <= 2
        assert len(await Archive(storage, JobState.CANCELLED).read()) == 600

    @pytest.mark.parametrize("state", ENDED)
    async def test_where_nothing_has_ended_there_is_one_empty_page_from_which_one_goes_on(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        dump: Dump,
        *,
        state: JobState,
    ) -> None:
        before = await dump()
        page = await storage.export("never-was", state)
        assert page == ExportPage(records=[], cursor="", has_more=False)
        assert await dump() == before
        archive = Archive(storage, state)
        assert await archive.read() == []
        await end(client, worker, ["a"], OUTCOMES[state])
        await advance(1)
        assert await archive.read() == ["a"]

    @pytest.mark.parametrize("state", UNENDED)
    async def test_a_state_that_does_not_end_a_job_is_refused(
        self, storage: Storage, state: JobState
    ) -> None:
        with pytest.raises(InvalidOption, match=f"{state.value} jobs can't be exported"):
            await storage.export(QUEUE, state)

    async def test_a_cursor_of_another_export_is_refused(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await started(client, worker)
        await storage.retire(QUEUE, worker.name)
        await storage.cancel(QUEUE, ["x"])
        await advance(1)
        cursor = (await storage.export(QUEUE, JobState.CANCELLED)).cursor
        other = cursor.replace(QUEUE, "sms")
        for queue, state, wrong in (
            ("sms", JobState.CANCELLED, cursor),
            (QUEUE, JobState.COMPLETED, cursor),
            (QUEUE, JobState.CANCELLED, other),
        ):
            with pytest.raises(InvalidOption, match="is not one of an export"):
                await storage.export(queue, state, cursor=wrong)

    @pytest.mark.parametrize(
        "place", ["", "1", ":", "1:", "x:1", "1:\ud800", "%", "%0", "%zz"], ids=ascii
    )
    async def test_a_cursor_of_nowhere_is_refused(self, storage: Storage, place: str) -> None:
        with pytest.raises(InvalidOption, match="is not one of an export of failed jobs"):
            await storage.export(QUEUE, JobState.FAILED, cursor=f"failed:{QUEUE}:{place}")
