"""Contract of ``list_jobs`` and ``get``."""

from __future__ import annotations

import msgspec
import pytest

from headrace.storage import ROW_MESSAGE_LIMIT, JobRow, JobState, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ERROR,
    MINUTE_MS,
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    failed,
    retried,
)


async def all_rows(storage: Storage, state: JobState, *, limit: int) -> list[list[JobRow]]:
    """Return every page of a listing."""
    pages: list[list[JobRow]] = []
    cursor = ""
    while cursor or not pages:
        page = await storage.list_jobs(QUEUE, state, cursor=cursor, limit=limit)
        pages.append(page.rows)
        cursor = page.cursor
    return pages


class ListJobsContract(Contract):
    """Tests of ``list_jobs`` and ``get``."""

    @pytest.mark.parametrize("state", STATES)
    async def test_pages_bring_every_job_of_a_state_once(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        state: JobState,
    ) -> None:
        names = [f"{n}" for n in range(7)]
        if state is JobState.QUEUED:
            await client.enqueue(*(a_job(name, priority=int(name)) for name in names))
        else:
            for name in names:
                await bring(state, client, other if int(name) % 2 else worker, name)
        pages = await all_rows(storage, state, limit=3)
        assert sorted(row.id for page in pages for row in page) == names
        assert {row.state for page in pages for row in page} == {state}
        assert [len(page) for page in pages] == [3, 3, 1]

    @pytest.mark.parametrize("state", list(JobState))
    async def test_a_state_without_jobs_is_one_empty_page(
        self, storage: Storage, worker: ContractIncarnation, state: JobState
    ) -> None:
        assert await all_rows(storage, state, limit=10) == [[]]

    async def test_ready_jobs_are_listed_in_the_order_of_their_claims(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        for n in range(12):
            await client.enqueue(a_job(f"{n}", priority=n % 4))
        listed = [
            row.id for page in await all_rows(storage, JobState.QUEUED, limit=5) for row in page
        ]
        assert listed == [job.id for job in await worker.claim()]

    @pytest.mark.parametrize("limit", [1, 2, 5, 100])
    async def test_ready_jobs_of_all_lanes_are_listed_the_default_one_first(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, limit: int
    ) -> None:
        lanes = ["process", "Zeta", "alpha", "default", "default.2", "0"]
        for n in range(3):
            for lane in lanes:
                await client.enqueue(a_job(f"{lane} {n}", lane=lane, priority=9 if n == 2 else 1))
        pages = await all_rows(storage, JobState.QUEUED, limit=limit)
        in_order = ["default", "0", "Zeta", "alpha", "default.2", "process"]
        expected = [f"{lane} {n}" for lane in in_order for n in (2, 0, 1)]
        assert [row.id for page in pages for row in page] == expected
        # A lane that has no job any more between two pages is no end.
        page = await storage.list_jobs(QUEUE, JobState.QUEUED, limit=7)
        await worker.claim(slots={"Zeta": 9, "alpha": 9})
        page = await storage.list_jobs(QUEUE, JobState.QUEUED, cursor=page.cursor)
        assert [row.id for row in page.rows] == expected[12:]

    async def test_waiting_jobs_are_listed_by_their_due_time_and_ended_ones_newest_first(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        for job_id, delay_ms in {"c": 3000, "a": 1000, "b": 2000}.items():
            await client.enqueue(a_job(job_id, delay_ms=delay_ms))
        page = await storage.list_jobs(QUEUE, JobState.SCHEDULED)
        assert [row.id for row in page.rows] == ["a", "b", "c"]
        assert [row.due_ms - await advance(0) for row in page.rows] == [1000, 2000, 3000]
        for job_id in "xyz":
            await bring(JobState.FAILED, client, worker, job_id)
            await advance(1)
        page = await storage.list_jobs(QUEUE, JobState.FAILED)
        assert [row.id for row in page.rows] == ["z", "y", "x"]

    async def test_a_row_tells_what_a_table_shows(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        created = await advance(0)
        await client.enqueue(a_job(priority=7, payload=b"." * 1000))
        await worker.settle(await worker.claim_one(), retried(0))
        now = await advance(9)
        await worker.settle(await worker.claim_one(), failed(), run_ms=9)
        [row] = (await storage.list_jobs(QUEUE, JobState.FAILED)).rows
        assert row == JobRow(
            id="x",
            task="send",
            state=JobState.FAILED,
            priority=7,
            failures=2,
            stalls=0,
            starts=2,
            created_ms=created,
            changed_ms=now,
            due_ms=0,
            run_ms=9,
            incarnation=worker.name,
            reason="exhausted",
            error=ERROR.type,
            error_message=ERROR.message,
        )

    @pytest.mark.parametrize(
        "message",
        ["", "no such box", 'a "quoted" \\ \x1b[31m\n word', "é" * 400, "\x01" * 400, "🌊" * 2_000],
    )
    async def test_a_row_tells_the_beginning_of_what_the_last_error_said(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        message: str,
    ) -> None:
        await client.enqueue(a_job())
        await worker.settle(await worker.claim_one(), retried(0))
        error = msgspec.structs.replace(ERROR, message=message, traceback='"message":"other"')
        await worker.settle(await worker.claim_one(), failed(error=error))
        [row] = (await storage.list_jobs(QUEUE, JobState.FAILED)).rows
        assert row.error_message == message[:ROW_MESSAGE_LIMIT]

    async def test_the_retrying_and_the_scheduled_are_told_apart(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await bring(JobState.RETRYING, client, worker, "r")
        await bring(JobState.SCHEDULED, client, worker, "s")
        [row] = (await storage.list_jobs(QUEUE, JobState.RETRYING)).rows
        assert (row.id, row.failures, row.due_ms) == ("r", 1, await advance(0) + MINUTE_MS)
        [row] = (await storage.list_jobs(QUEUE, JobState.SCHEDULED)).rows
        assert (row.id, row.failures) == ("s", 0)

    async def test_left_over_entries_are_not_listed(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job("x", priority=9), a_job("y"))
        await storage.cancel(QUEUE, ["x"])
        await client.enqueue(a_job("x", priority=1))
        rows = [row for page in await all_rows(storage, JobState.QUEUED, limit=1) for row in page]
        assert [row.id for row in rows] == ["y", "x"]

    async def test_listing_and_getting_change_nothing(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        await bring(JobState.COMPLETED, client, worker)
        before = await dump()
        for state in JobState:
            await storage.list_jobs(QUEUE, state)
            await storage.list_jobs("no-such-queue", state)
        assert await storage.get(QUEUE, "x") is not None
        assert await storage.get(QUEUE, "unknown") is None
        assert await storage.get("no-such-queue", "x") is None
        assert await dump() == before

    async def test_a_record_shows_result_and_run_time_after_its_end(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job())
        await worker.settle(await worker.claim_one(), completed(b"9"), run_ms=12)
        [row] = (await storage.list_jobs(QUEUE, JobState.COMPLETED)).rows
        assert (row.run_ms, row.incarnation, row.reason, row.error) == (12, worker.name, "", "")
