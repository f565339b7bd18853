"""Contract of ``event_lines``, ``event_span`` and ``event_place``: events for who reads many."""

from __future__ import annotations

import pytest

from headrace import InvalidOption
from headrace.storage import (
    EVENT_LINES_LIMIT,
    EventLines,
    EventPlace,
    EventRecord,
    EventSpan,
    JobState,
    Storage,
    read_lines,
)
from headrace.testing.contract.delete_queue import delete
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import QUEUE, ContractClient, ContractIncarnation, a_job

BAD_IDS = ["x", "-1", "1-2-3", "1-", "\u0661", "9" * 20, " 1"]


def ms_of(place: EventLines | EventPlace) -> int:
    """Return when the events of an entry happened."""
    return int(place.stream_id.partition("-")[0])


def read(entries: list[EventLines]) -> list[EventRecord]:
    """Return the events of entries."""
    return [
        event
        for entry in entries
        for event in read_lines(
            entry.lines.decode(), stream_id=entry.stream_id, at_ms=ms_of(entry), last=entry.last
        )
    ]


async def all_lines(storage: Storage) -> list[EventLines]:
    """Return all entries that are kept, page by page."""
    found: list[EventLines] = []
    while page := await storage.event_lines(
        QUEUE, after=found[-1].stream_id if found else "0", limit=EVENT_LINES_LIMIT
    ):
        found += page
    return found


async def make_events(client: ContractClient, *counts: int) -> None:
    """Make so many events in a call each."""
    for number, count in enumerate(counts):
        await client.enqueue(*(a_job(f"{number}-{n}") for n in range(count)))


async def at_instants(
    storage: Storage, client: ContractClient, advance: Advance, *steps_ms: int
) -> list[EventLines]:
    """Return the entries of events that happened at several instants, some in one.

    Args:
        storage: where they happen.
        client: enqueues.
        advance: moves the clock, by which not every storage tells when events happened.
        steps_ms: how far it is moved between two calls.
    """
    number = 0
    while True:
        for ms in steps_ms:
            await client.enqueue(*(a_job(f"{number}-{n}") for n in range(25)))
            await advance(ms)
            number += 1
        entries = await all_lines(storage)
        if len({ms_of(entry) for entry in entries}) > 4:
            return entries


class EventPagesContract(Contract):
    """Tests of the verbs that read many events."""

    async def test_lines_are_what_events_are_read_from(
        self, storage: Storage, client: ContractClient, worker: ContractIncarnation
    ) -> None:
        await make_events(client, 45, 1, 20)
        await worker.claim_one()
        entries = await storage.event_lines(QUEUE)
        page = await storage.events(QUEUE)
        assert read(entries) == page.events
        assert entries[-1].stream_id == page.last_id
        assert entries[0].lines.split(b"\t")[:2] == [b"joined", b"w1"]

    async def test_a_page_is_behind_one_entry_and_up_to_another(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await make_events(client, 3, 45, 1, 1)
        entries = await all_lines(storage)
        ids = [entry.stream_id for entry in entries]
        assert [entry.last for entry in entries] == [3, 23, 43, 48, 49, 50]
        for first in range(-1, len(ids)):
            after = ids[first] if first >= 0 else "0"
            for last in range(len(ids)):
                page = await storage.event_lines(QUEUE, after=after, until=ids[last])
                assert page == entries[first + 1 : last + 1]
        assert await storage.event_lines(QUEUE, until="0") == []
        assert await storage.event_lines(QUEUE, until="0-0") == []

    async def test_a_page_has_no_more_entries_than_are_asked_for(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await make_events(client, *[1] * 7)
        entries = await all_lines(storage)
        assert await storage.event_lines(QUEUE, limit=3) == entries[:3]
        page = await storage.event_lines(
            QUEUE, after=entries[2].stream_id, until=entries[5].stream_id, limit=2
        )
        assert page == entries[3:5]

    async def test_a_page_is_bounded(self, storage: Storage, client: ContractClient) -> None:
        await make_events(client, *[500] * (EVENT_LINES_LIMIT // 25 + 1))
        page = await storage.event_lines(QUEUE, limit=10 * EVENT_LINES_LIMIT)
        assert [entry.last for entry in page] == list(range(20, 20 * EVENT_LINES_LIMIT + 1, 20))

    @pytest.mark.parametrize("stream_id", BAD_IDS)
    async def test_what_is_no_id_of_an_entry_is_refused(
        self, storage: Storage, *, stream_id: str
    ) -> None:
        with pytest.raises(InvalidOption, match="stream_id"):
            await storage.event_lines(QUEUE, after=stream_id)
        with pytest.raises(InvalidOption, match="stream_id"):
            await storage.event_lines(QUEUE, until=stream_id)

    async def test_a_queue_that_never_was_has_no_events(
        self, storage: Storage, worker: ContractIncarnation
    ) -> None:
        assert await storage.event_lines("nowhere", until="9-9") == []
        assert await storage.event_span("nowhere") == EventSpan(None, None)
        assert await storage.event_place("nowhere", 10**13) is None

    async def test_a_span_has_the_numbers_of_the_first_and_the_last_entry(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await make_events(client, 3)
        [only] = await all_lines(storage)
        place = EventPlace(only.stream_id, 1, 3)
        assert only.place == place
        assert await storage.event_span(QUEUE) == EventSpan(place, place)
        await client.enqueue(*(a_job(f"more-{n}") for n in range(21)))
        last = (await all_lines(storage))[-1]
        assert await storage.event_span(QUEUE) == EventSpan(
            place, EventPlace(last.stream_id, 24, 24)
        )

    async def test_numbers_are_exact_after_trimming(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, events=1)
        await make_events(client, *[500] * 4, 7)
        span = await storage.event_span(QUEUE)
        entries = await all_lines(storage)
        events = read(entries)
        assert events == (await storage.events(QUEUE, limit=1_000)).events
        assert events[0].number > 1
        assert span == EventSpan(
            EventPlace(events[0].stream_id, events[0].number, entries[0].last),
            EventPlace(events[-1].stream_id, 2_001, 2_007),
        )
        # What was trimmed is no place to read on from, and none to find.
        assert await storage.event_lines(QUEUE, until="1-1") == []
        assert await storage.event_lines(QUEUE, after="0-1") == entries
        assert await storage.event_place(QUEUE, ms_of(entries[0]) - 1) is None

    async def test_what_a_reader_holds_is_in_the_span(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, events=1, events_cap=1_000)
        await storage.acknowledge(QUEUE, "archive", "0")
        await make_events(client, *[500] * 4)
        entries = await all_lines(storage)
        assert await storage.event_span(QUEUE) == EventSpan(entries[0].place, entries[-1].place)
        assert (entries[0].place.first, entries[-1].last) == (1, 2_000)
        await storage.acknowledge(QUEUE, "archive", entries[-1].stream_id)
        left = await all_lines(storage)
        assert await storage.event_span(QUEUE) == EventSpan(left[0].place, left[-1].place)
        assert left[0].place.first > 1

    async def test_events_of_a_queue_that_was_deleted_begin_anew(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await client.enqueue(a_job())
        await storage.purge(QUEUE, JobState.QUEUED, ["x"])
        assert await delete(storage) == 0
        assert await storage.event_span(QUEUE) == EventSpan(None, None)
        await client.enqueue(a_job("new"))
        span = await storage.event_span(QUEUE)
        assert span.first == span.last
        assert span.last is not None
        assert (span.last.first, span.last.last) == (1, 1)

    async def test_a_place_is_the_last_entry_that_is_no_later(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        entries = await at_instants(storage, client, advance, 0, 3, 7)
        assert await storage.event_place(QUEUE, ms_of(entries[0]) - 1) is None
        assert await storage.event_place(QUEUE, 0) is None
        assert await storage.event_place(QUEUE, -1) is None
        for ms in {ms_of(entry) + more for entry in entries for more in (0, 1)}:
            *_, last = (entry for entry in entries if ms_of(entry) <= ms)
            assert await storage.event_place(QUEUE, ms) == last.place
        for ms in (ms_of(entries[-1]) + 10**9, 2**63 - 1, 10**30):
            assert await storage.event_place(QUEUE, ms) == entries[-1].place

    async def test_behind_a_place_it_is_later_though_the_clock_was_set_back(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        entries = await at_instants(storage, client, advance, 5, 9, -8, 2, -3)
        places = [entry.place for entry in entries]
        for ms in range(min(map(ms_of, entries)) - 1, max(map(ms_of, entries)) + 2):
            place = await storage.event_place(QUEUE, ms)
            at = -1 if place is None else places.index(place)
            assert at < 0 or ms_of(entries[at]) <= ms
            assert at + 1 == len(entries) or ms_of(entries[at + 1]) > ms

    async def test_looking_changes_nothing(
        self, storage: Storage, client: ContractClient, dump: Dump
    ) -> None:
        await make_events(client, 3)
        before = await dump()
        await storage.event_lines(QUEUE)
        await storage.event_span(QUEUE)
        await storage.event_place(QUEUE, 1)
        assert await dump() == before
