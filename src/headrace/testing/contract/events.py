"""Contract of ``events``: one for every transition, bounded and readable in pieces."""

from __future__ import annotations

from headrace.storage import EventRecord, JobEventKind, Storage
from headrace.testing.contract.fixtures import Advance, Contract
from headrace.testing.contract.steps import (
    ERROR,
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    cancelled,
    completed,
    failed,
    retried,
    snoozed,
    unknown_task,
)


async def all_events(storage: Storage) -> list[EventRecord]:
    """Return every event that is kept."""
    return (await storage.events(QUEUE, limit=10_000)).events


Row = tuple[JobEventKind, str, int, str, int, int, str]


def row(event: EventRecord) -> Row:
    """Return what each event says, without when."""
    return (
        event.kind,
        event.job_id,
        event.start,
        event.incarnation,
        event.wait_ms,
        event.run_ms,
        event.detail,
    )


async def job_events(storage: Storage) -> list[EventRecord]:
    """Return those of jobs, without those of incarnations."""
    return [event for event in await all_events(storage) if event.task]


KIND = JobEventKind


class EventsContract(Contract):
    """Tests of ``events``."""

    async def test_every_transition_leaves_an_event_with_its_fields(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(a_job(delay_ms=10))
        await advance(10)
        await worker.claim(slots={})
        await advance(25)
        await worker.settle(await worker.claim_one(), retried(5), run_ms=3)
        await advance(5)
        job = await worker.claim_one()
        await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
        await worker.settle(await worker.claim_one(), unknown_task(5))
        await advance(5)
        await worker.settle(await worker.claim_one(), snoozed(5, "not yet"), run_ms=5)
        await advance(5)
        await worker.settle(await worker.claim_one(), failed(), run_ms=4)
        await storage.redrive(QUEUE, ["x"])
        await worker.settle(await worker.claim_one(), completed(), run_ms=6)
        w1 = worker.name
        events = await job_events(storage)
        assert [row(event) for event in events] == [
            (KIND.SCHEDULED, "x", 0, "", 0, 0, ""),
            (KIND.QUEUED, "x", 0, "", 0, 0, "due"),
            (KIND.ACTIVE, "x", 1, w1, 25, 0, ""),
            (KIND.RETRYING, "x", 1, w1, 0, 3, ERROR.type),
            (KIND.QUEUED, "x", 1, "", 0, 0, "due"),
            (KIND.ACTIVE, "x", 2, w1, 0, 0, ""),
            (KIND.PUT_BACK, "x", 2, w1, 0, 0, ""),
            (KIND.ACTIVE, "x", 3, w1, 0, 0, ""),
            (KIND.PUT_BACK, "x", 3, w1, 0, 0, "unknown_task"),
            (KIND.QUEUED, "x", 3, "", 0, 0, "due"),
            (KIND.ACTIVE, "x", 4, w1, 0, 0, ""),
            (KIND.SNOOZED, "x", 4, w1, 0, 5, "not yet"),
            (KIND.QUEUED, "x", 4, "", 0, 0, "due"),
            (KIND.ACTIVE, "x", 5, w1, 0, 0, ""),
            (KIND.FAILED, "x", 5, w1, 0, 4, "exhausted"),
            (KIND.QUEUED, "x", 5, "", 0, 0, "redriven"),
            (KIND.ACTIVE, "x", 6, w1, 0, 0, ""),
            (KIND.COMPLETED, "x", 6, w1, 0, 6, ""),
        ]
        assert {event.task for event in events} == {"send"}

    async def test_ends_without_an_outcome_of_the_worker_leave_events_too(
        self,
        storage: Storage,
        client: ContractClient,
        worker: ContractIncarnation,
        other: ContractIncarnation,
        advance: Advance,
    ) -> None:
        await client.enqueue(
            a_job("old", expires_in_ms=1), a_job("waits"), a_job("x", max_stalls=2)
        )
        await storage.cancel(QUEUE, ["waits"])
        await advance(1)
        await worker.claim()
        await worker.die()
        await other.settle(await other.claim_one(), cancelled(), run_ms=2)
        events = await job_events(storage)
        assert [row(event) for event in events[3:]] == [
            (KIND.CANCELLED, "waits", 0, "", 0, 0, ""),
            (KIND.FAILED, "old", 0, "", 0, 0, "expired"),
            (KIND.ACTIVE, "x", 1, worker.name, 1, 0, ""),
            (KIND.STALLED, "x", 1, worker.name, 0, 0, "WorkerDied"),
            (KIND.ACTIVE, "x", 2, other.name, 0, 0, ""),
            (KIND.CANCELLED, "x", 2, other.name, 0, 2, ""),
        ]

    async def test_events_are_read_on_from_the_last_seen(
        self, storage: Storage, client: ContractClient
    ) -> None:
        for n in range(50):
            await client.enqueue(*(a_job(f"{n}-{m}") for m in range(3)))
        seen: list[EventRecord] = []
        after = "0"
        while True:
            page = await storage.events(QUEUE, after=after, limit=7)
            if not page.events:
                break
            seen += page.events
            after = page.last_id
        assert [event.job_id for event in seen] == [f"{n}-{m}" for n in range(50) for m in range(3)]
        await client.enqueue(a_job("new"))
        page = await storage.events(QUEUE, after=after)
        assert [event.job_id for event in page.events] == ["new"]

    async def test_a_big_batch_leaves_an_event_for_each_job(
        self, storage: Storage, client: ContractClient
    ) -> None:
        names = [f"{n}" for n in range(500)]
        await client.enqueue(*(a_job(name) for name in names))
        assert [event.job_id for event in await all_events(storage)] == names

    async def test_events_are_bounded_as_configured(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, events=10)
        for n in range(400):
            await client.enqueue(a_job(f"{n}"))
        events = await all_events(storage)
        assert 10 <= len(events) < 300
        assert events[-1].job_id == "399"

    async def test_every_event_has_the_number_behind_that_of_the_one_before(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        # In one entry, in several of one call, and in several calls of one millisecond.
        await client.enqueue(*(a_job(f"{n}") for n in range(45)))
        await client.enqueue(a_job("one"), a_job("two"))
        await worker.settle(await worker.claim_one(), completed())
        numbers = [event.number for event in await all_events(storage)]
        assert len(numbers) >= 49
        assert numbers == list(range(1, len(numbers) + 1))

    async def test_numbers_tell_what_was_trimmed_in_the_middle_of_a_read(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, events=1)
        await client.enqueue(*(a_job(f"{n}") for n in range(20)))
        page = await storage.events(QUEUE, limit=1)
        assert [event.number for event in page.events] == list(range(1, 21))
        names = [f"more-{n}" for n in range(500)]
        await client.enqueue(*map(a_job, names))
        await client.enqueue(*(a_job(f"last-{n}") for n in range(3)))
        names += [f"last-{n}" for n in range(3)]
        next_event = (await storage.events(QUEUE, after=page.last_id, limit=1)).events[0]
        missed = next_event.number - page.events[-1].number - 1
        assert missed > 0
        assert next_event.job_id == names[missed]

    async def test_events_of_several_pages_are_numbered_on(
        self, storage: Storage, client: ContractClient
    ) -> None:
        for n in range(7):
            await client.enqueue(*(a_job(f"{n}-{m}") for m in range(3)))
        numbers: list[int] = []
        after = "0"
        while (page := await storage.events(QUEUE, after=after, limit=2)).events:
            numbers += [event.number for event in page.events]
            after = page.last_id
        assert numbers == list(range(1, 22))

    async def test_repetitions_and_refusals_leave_no_event(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await client.enqueue(a_job(), number=1)
        job = await worker.claim_one()
        await worker.settle(job, completed())
        before = await all_events(storage)
        await client.enqueue(a_job(), number=1)
        await client.enqueue(a_job())
        await worker.settle(job, failed())
        await storage.cancel(QUEUE, ["x", "unknown"])
        assert await all_events(storage) == before

    async def test_no_events_is_an_empty_page(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        page = await storage.events("no-such-queue")
        assert (page.events, page.last_id) == ([], "")
