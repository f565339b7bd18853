"""Contract of ``output``: the pieces that running attempts report, and how long they are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from headrace import InvalidOption
from headrace.storage import JobState, Outcome, Report, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import (
    ENDED,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    cancelled,
    completed,
    failed,
    retried,
    stalled,
    started,
    state_of,
    unknown_task,
    until,
)

PIECE_LIMIT = 64 * 1024
STRANGE_CURSORS = ["x", "-", "1", "1-", "-1", "1-2-3", "(1-1", "+", "$", "1.0-1", "٣-٣", "9" * 99]

EndedBy = Callable[[Storage, ContractClient, ContractIncarnation], Awaitable[object]]


async def read(storage: Storage, job_id: str = "x", *, limit: int = 64) -> list[bytes]:
    """Return all that is kept of a job's output, page by page."""
    found: list[bytes] = []
    cursor = ""
    while True:
        page = await storage.output(QUEUE, job_id, after=cursor, limit=limit)
        if not page.chunks:
            return found
        assert len(page.chunks) <= limit
        found += page.chunks
        cursor = page.cursor


async def purge(storage: Storage, client: ContractClient, worker: ContractIncarnation) -> None:
    """Delete the dead letter."""
    assert await storage.purge(QUEUE, JobState.FAILED, ["x"]) == 1


async def replace(storage: Storage, client: ContractClient, worker: ContractIncarnation) -> None:
    """Enqueue a new job with the dead letter's id."""
    assert await client.enqueue(a_job()) == ["queued"]


class OutputContract(Contract):
    """Tests of ``output``."""

    async def test_pieces_come_back_in_order_and_as_they_were(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        pieces = [b"", b"1", b"\x00\n\r\t\xff", b"[" + b"1," * 1000 + b"2]", b"last"]
        assert await worker.report(job, chunks=pieces[:2])
        assert await worker.report(job, chunks=pieces[2:], first=2)
        for limit in (1, 2, 64, 1000):
            assert await read(storage, limit=limit) == pieces
        await worker.settle(job, completed())
        assert await read(storage) == pieces

    async def test_a_reader_goes_on_where_it_was(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        page = await storage.output(QUEUE, "x")
        assert page.chunks == []
        for n in range(3):
            # The cursor of an empty page is as good as any.
            page = await storage.output(QUEUE, "x", after=page.cursor)
            await worker.report(job, chunks=[b"a%d" % n, b"b%d" % n], first=2 * n)
            page = await storage.output(QUEUE, "x", after=page.cursor)
            assert page.chunks == [b"a%d" % n, b"b%d" % n]

    async def test_a_page_of_the_largest_pieces_keeps_to_the_bytes_of_a_call(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        pieces = [b"%02d" % n * (PIECE_LIMIT // 2) for n in range(70)]
        for first in (0, 35):
            await worker.report(job, chunks=pieces[first : first + 35], first=first)
        page = await storage.output(QUEUE, "x", limit=500)
        assert page.chunks == pieces[:64]
        assert await read(storage) == pieces

    async def test_pieces_that_are_there_already_are_passed(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, chunks=[b"0", b"1", b"2"])
        await worker.report(job, chunks=[b"1", b"2", b"3"], first=1)
        assert await read(storage) == [b"0", b"1", b"2", b"3"]
        # What was lost on the way stays lost: a piece behind the last is never put before it.
        await worker.report(job, chunks=[b"7"], first=7)
        assert await worker.report(job, chunks=[b"5"], first=5)
        assert await read(storage) == [b"0", b"1", b"2", b"3", b"7"]

    async def test_the_newest_thousand_pieces_are_kept(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        job = await started(client, worker)
        for first, last in [(0, 1000), (1000, 1001), (1001, 1500)]:
            numbers = range(first, last)
            await worker.report(job, chunks=[b"%d" % n for n in numbers], first=first)
        assert await read(storage) == [b"%d" % n for n in range(500, 1500)]
        # What made room does not come again.
        before = await dump()
        await worker.report(job, chunks=[b"%d" % n for n in range(500)])
        assert await dump() == before

    @pytest.mark.parametrize(
        "outcome", [retried(0), stalled(), unknown_task(0)], ids=lambda o: type(o).__name__
    )
    async def test_the_next_attempts_first_piece_makes_room_of_all_before(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        outcome: Outcome,
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, chunks=[b"old"] * 3)
        cursor = (await storage.output(QUEUE, "x")).cursor
        await worker.settle(job, outcome)
        job = await worker.claim_one()
        await worker.report(job, 0.5)
        assert await read(storage) == [b"old"] * 3
        await worker.report(job, chunks=[b"new 0", b"new 1"])
        assert await read(storage) == [b"new 0", b"new 1"]
        # Who had read all of the old attempt reads all of the new one.
        page = await storage.output(QUEUE, "x", after=cursor)
        assert page.chunks == [b"new 0", b"new 1"]

    async def test_a_redriven_job_keeps_its_output_until_its_next_attempt_has_some(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, chunks=[b"old"])
        await worker.settle(job, failed())
        await storage.redrive(QUEUE, ["x"])
        assert await read(storage) == [b"old"]
        await worker.report(await worker.claim_one(), chunks=[b"new"])
        assert await read(storage) == [b"new"]

    async def test_output_outlives_what_its_dead_letter_would_have_had(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await storage.configure(QUEUE, dead_letter_ttl_ms=2_000)
        await client.enqueue(a_job("x"), a_job("y"))
        jobs = await worker.claim(2)
        for job in jobs:
            await worker.report(job, chunks=[b"1"])
            await worker.settle(job, failed())
        assert await storage.redrive(QUEUE, ["x"]) == 1
        await advance(2_000)
        # Its neighbour, which stays a dead letter, ends after it would have.

        async def is_gone() -> bool:
            return await state_of(storage, "y") is None

        await until(is_gone)
        assert await read(storage) == [b"1"]

    @pytest.mark.parametrize("state", ENDED)
    async def test_output_stays_with_the_record_of_an_ended_job(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, state: JobState
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, chunks=[b"1"])
        outcome = {"completed": completed(), "failed": failed(), "cancelled": cancelled()}[state]
        await worker.settle(job, outcome)
        assert await read(storage) == [b"1"]

    @pytest.mark.parametrize("outcome", [completed(keep_ms=0), cancelled(keep_ms=0)])
    async def test_with_nothing_kept_its_output_goes_with_the_job(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        dump: Dump,
        outcome: Outcome,
    ) -> None:
        await worker.settle(await started(client, worker), outcome)
        before = set(await dump(with_calls=False))
        job = await started(client, worker)
        await worker.report(job, 0.5, chunks=[b"1"])
        await worker.settle(job, outcome)
        assert await read(storage) == []
        assert set(await dump(with_calls=False)) == before

    @pytest.mark.parametrize("ended_by", [purge, replace])
    async def test_output_goes_with_the_record(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        ended_by: EndedBy,
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, chunks=[b"1"])
        await worker.settle(job, failed())
        await ended_by(storage, client, worker)
        assert await read(storage) == []

    @pytest.mark.parametrize("had_payload", [False, True])
    async def test_output_never_outlives_its_record(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
        *,
        had_payload: bool,
    ) -> None:
        # It would pass for that of a later job with the same id.
        job = await started(client, worker, payload=b"." * (1000 if had_payload else 2))
        await worker.report(job, chunks=[b"old"] * 9)
        await worker.settle(job, completed(ttl_ms=30, keep_ms=30))
        await advance(31)

        async def is_gone() -> bool:
            return await state_of(storage) is None and await read(storage) == []

        await until(is_gone)
        job = await started(client, worker)
        assert await worker.report(job, chunks=[b"new"])
        assert await read(storage) == [b"new"]

    async def test_each_job_has_its_own_output(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(*(a_job(name) for name in "abc"))
        reports = [
            Report(job.id, job.claim, None, "", [job.id.encode(), b"2"], 0)
            for job in await worker.claim()
        ]
        assert await storage.report(QUEUE, reports) == [True] * 3
        for name in "abc":
            assert await read(storage, name) == [name.encode(), b"2"]

    async def test_reading_output_changes_nothing_and_knows_queues_that_never_were(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation, dump: Dump
    ) -> None:
        job = await started(client, worker)
        await worker.report(job, chunks=[b"1"])
        before = await dump()
        await storage.output(QUEUE, "x")
        assert (await storage.output(QUEUE, "unknown")).chunks == []
        assert (await storage.output("no-such-queue", "x")).chunks == []
        assert await dump() == before

    @pytest.mark.parametrize("cursor", STRANGE_CURSORS)
    async def test_an_output_cursor_of_nowhere_is_refused(
        self, storage: Storage, cursor: str
    ) -> None:
        with pytest.raises(InvalidOption, match="is not one of a page of output"):
            await storage.output(QUEUE, "x", after=cursor)
