"""Contract of ``acknowledge``, ``forget_reader`` and ``readers``: what named readers hold back."""

from __future__ import annotations

import pytest

from headrace import InvalidOption, TooManyReaders
from headrace.storage import (
    READER_TTL_MS,
    READERS_LIMIT,
    EventPage,
    EventRecord,
    ReaderInfo,
    SettingChanges,
    Storage,
)
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job

NOTHING = "0"
"""The stream id of a reader that has seen nothing."""

LITTLE = SettingChanges(events=1, events_cap=1_000)
"""Of a queue that would soon trim its events."""


async def make_events(client: ContractClient, first: int, count: int) -> None:
    """Make events, 20 an entry, of jobs that are named by their numbers."""
    names = [f"{n}" for n in range(first, first + count)]
    await client.enqueue_all(map(a_job, names))


async def kept(storage: Storage) -> list[EventRecord]:
    """Return the events that are kept."""
    return (await storage.events(QUEUE, limit=100_000)).events


async def page_to(storage: Storage, number: int) -> EventPage:
    """Return the events up to the end of the entry that has this number."""
    entries = -(-number // 20)
    return await storage.events(QUEUE, limit=entries)


async def info(storage: Storage, name: str = "archive") -> ReaderInfo:
    """Return what is known of a reader."""
    [found] = [reader for reader in await storage.readers(QUEUE) if reader.name == name]
    return found


class ReadersContract(Contract):
    """Tests of the verbs of readers."""

    async def test_a_reader_is_known_by_how_far_it_has_come(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        await make_events(client, 1, 45)
        now_ms = await advance(0)
        page = await page_to(storage, 40)
        await storage.acknowledge(QUEUE, "archive", page.last_id)
        for behind in (5, 8):
            known = ReaderInfo(
                name="archive", stream_id=page.last_id, number=40, behind=behind, at_ms=now_ms
            )
            assert await storage.readers(QUEUE) == [known]
            await make_events(client, 46, 3)

    async def test_readers_are_listed_by_name(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await make_events(client, 1, 1)
        for name in ("b", "a.2", "C"):
            await storage.acknowledge(QUEUE, name, NOTHING)
        assert [reader.name for reader in await storage.readers(QUEUE)] == ["C", "a.2", "b"]

    async def test_what_a_reader_has_not_acknowledged_is_kept(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, **LITTLE)
        await storage.acknowledge(QUEUE, "archive", NOTHING)
        await make_events(client, 1, 3_000)
        assert [event.number for event in await kept(storage)] == list(range(1, 3_001))

    async def test_but_no_more_than_the_cap(self, storage: Storage, client: ContractClient) -> None:
        await storage.configure(QUEUE, events=1, events_cap=10)
        await storage.acknowledge(QUEUE, "archive", NOTHING)
        await make_events(client, 1, 4_000)
        numbers = [event.number for event in await kept(storage)]
        assert 200 <= len(numbers) < 3_000
        assert numbers[-1] == 4_000

    async def test_with_a_cap_below_the_ordinary_number_that_one_counts(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, events=100, events_cap=1)
        await storage.acknowledge(QUEUE, "archive", NOTHING)
        await make_events(client, 1, 2_000)
        assert len(await kept(storage)) == 2_000

    async def test_what_all_have_acknowledged_is_trimmed(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, **LITTLE)
        for name in ("archive", "alerts"):
            await storage.acknowledge(QUEUE, name, NOTHING)
        await make_events(client, 1, 3_000)
        page = await page_to(storage, 2_000)
        await storage.acknowledge(QUEUE, "archive", page.last_id)
        assert (await kept(storage))[0].number == 1
        await storage.acknowledge(QUEUE, "alerts", (await page_to(storage, 1_500)).last_id)
        first = (await kept(storage))[0].number
        assert 1_000 < first <= 1_501
        # The other one reads on, and misses nothing.
        later = await storage.events(QUEUE, after=page.last_id)
        assert later.events[0].number == 2_001

    async def test_the_ordinary_number_of_entries_is_kept_though_all_have_seen_them(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, events=50)
        await storage.acknowledge(QUEUE, "archive", NOTHING)
        await make_events(client, 1, 3_000)
        await storage.acknowledge(QUEUE, "archive", (await page_to(storage, 3_000)).last_id)
        numbers = [event.number for event in await kept(storage)]
        assert 1_000 <= len(numbers) < 2_000
        assert numbers[-1] == 3_000

    async def test_an_entry_that_is_seen_in_part_is_kept(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, **LITTLE)
        await storage.acknowledge(QUEUE, "archive", NOTHING)
        await make_events(client, 1, 1_000)
        events = (await page_to(storage, 520)).events
        seen = next(event for event in events if event.number == 507)
        await storage.acknowledge(QUEUE, "archive", seen.stream_id, number=507)
        known = await info(storage)
        assert (known.number, known.behind) == (507, 493)
        rest = [e.number for e in (await storage.events(QUEUE, after=known.stream_id)).events]
        assert [number for number in rest if number > known.number] == list(range(508, 1_001))

    async def test_the_last_event_of_an_entry_stands_for_all_of_it(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await make_events(client, 1, 30)
        last = (await page_to(storage, 20)).events[-1]
        await storage.acknowledge(QUEUE, "archive", last.stream_id, number=last.number)
        known = await info(storage)
        assert (known.stream_id, known.number) == (last.stream_id, 20)

    async def test_a_reader_goes_on_and_never_back(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        await make_events(client, 1, 60)
        first, second = (await page_to(storage, 20)).last_id, (await page_to(storage, 40)).last_id
        await storage.acknowledge(QUEUE, "archive", second)
        before = await info(storage)
        now_ms = await advance(1_000)
        for earlier, number in ((first, 0), (NOTHING, 0), (second, 33)):
            await storage.acknowledge(QUEUE, "archive", earlier, number=number)
            known = await info(storage)
            assert (known.stream_id, known.number) == (before.stream_id, before.number)
            assert known.at_ms == now_ms

    async def test_within_an_entry_a_reader_goes_on_too(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await make_events(client, 1, 20)
        entry = (await page_to(storage, 20)).last_id
        for number, reached in ((5, 5), (9, 9), (7, 9), (20, 20), (3, 20)):
            await storage.acknowledge(QUEUE, "archive", entry, number=number)
            assert (await info(storage)).number == reached

    async def test_who_names_what_is_not_there_yet_has_seen_all_there_is(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, **LITTLE)
        await make_events(client, 1, 20)
        last_id = (await page_to(storage, 20)).last_id
        ms, _, seq = last_id.partition("-")
        for ahead in (f"{int(ms) + 10**6}-{int(seq) + 1}", f"{'9' * 19}-{'9' * 19}"):
            await storage.acknowledge(QUEUE, "archive", ahead)
            known = await info(storage)
            assert (known.stream_id, known.number, known.behind) == (last_id, 20, 0)
        await make_events(client, 21, 2_000)
        assert (await info(storage)).behind == 2_000
        assert len((await storage.events(QUEUE, after=last_id, limit=1_000)).events) == 2_000

    async def test_a_new_reader_is_not_behind_by_what_was_trimmed_before(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.acknowledge(QUEUE, "early", NOTHING)
        known = await info(storage, "early")
        assert (known.stream_id, known.number, known.behind) == ("0-0", 0, 0)
        await storage.forget_reader(QUEUE, "early")
        await storage.configure(QUEUE, events=1)
        await make_events(client, 1, 2_000)
        await storage.acknowledge(QUEUE, "late", NOTHING)
        events = await kept(storage)
        assert len(events) < 2_000
        known = await info(storage, "late")
        assert (known.number, known.behind) == (events[0].number - 1, len(events))

    @pytest.mark.parametrize(
        "bad",
        [
            "",
            "x",
            "-",
            "1-",
            "-1",
            "1-2-3",
            "1-x",
            " 1-1",
            "1-1\n",
            "\u0661-\u0661",
            "1" * 20,
            "$",
            "+",
        ],
    )
    async def test_what_is_no_stream_id_is_refused(
        self, storage: Storage, client: ContractClient, dump: Dump, bad: str
    ) -> None:
        await make_events(client, 1, 1)
        before = await dump()
        with pytest.raises(InvalidOption, match="stream_id"):
            await storage.acknowledge(QUEUE, "archive", bad)
        with pytest.raises(InvalidOption, match="stream_id"):
            await storage.events(QUEUE, after=bad)
        assert await dump() == before

    async def test_a_reader_that_is_forgotten_holds_nothing_back(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, **LITTLE)
        await storage.acknowledge(QUEUE, "archive", NOTHING)
        await make_events(client, 1, 2_000)
        assert await storage.forget_reader(QUEUE, "archive") is True
        assert await storage.readers(QUEUE) == []
        assert await storage.forget_reader(QUEUE, "archive") is False
        await make_events(client, 2_001, 500)
        assert len(await kept(storage)) < 2_000

    async def test_other_readers_go_on_holding_theirs(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, **LITTLE)
        await make_events(client, 1, 20)
        last_id = (await page_to(storage, 20)).last_id
        await storage.acknowledge(QUEUE, "archive", last_id)
        await storage.acknowledge(QUEUE, "alerts", NOTHING)
        await make_events(client, 21, 2_000)
        await storage.forget_reader(QUEUE, "alerts")
        later = await storage.events(QUEUE, after=last_id, limit=1_000)
        assert [event.number for event in later.events] == list(range(21, 2_021))

    async def test_silent_readers_are_dropped_after_seven_days(
        self, storage: Storage, client: ContractClient, advance: Advance
    ) -> None:
        await storage.configure(QUEUE, **LITTLE)
        await storage.acknowledge(QUEUE, "archive", NOTHING)
        await advance(1)
        await storage.acknowledge(QUEUE, "alerts", NOTHING)
        await advance(READER_TTL_MS - 2)
        await storage.prune(QUEUE)
        assert len(await storage.readers(QUEUE)) == 2
        await advance(1)
        await storage.prune(QUEUE)
        assert [reader.name for reader in await storage.readers(QUEUE)] == ["alerts"]
        await storage.acknowledge(QUEUE, "alerts", NOTHING)  # it lives
        await advance(READER_TTL_MS - 1)
        await make_events(client, 1, 2_000)
        await storage.prune(QUEUE)
        assert len(await kept(storage)) == 2_000
        await advance(1)
        await storage.prune(QUEUE)
        await make_events(client, 2_001, 500)
        assert await storage.readers(QUEUE) == []
        assert len(await kept(storage)) < 2_000

    async def test_readers_go_with_their_queue(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.acknowledge(QUEUE, "archive", NOTHING)
        assert await storage.queues() == [QUEUE]
        assert await storage.delete_queue(QUEUE) == 0
        assert await storage.readers(QUEUE) == []
        assert await storage.queues() == []

    async def test_there_is_a_bound_to_their_number(self, storage: Storage, dump: Dump) -> None:
        for n in range(READERS_LIMIT):
            await storage.acknowledge(QUEUE, f"reader-{n}", NOTHING)
        before = await dump()
        with pytest.raises(TooManyReaders, match=f"{READERS_LIMIT} readers"):
            await storage.acknowledge(QUEUE, "one-more", NOTHING)
        assert await dump() == before
        await storage.acknowledge(QUEUE, "reader-0", NOTHING)
        await storage.forget_reader(QUEUE, "reader-0")
        await storage.acknowledge(QUEUE, "one-more", NOTHING)

    async def test_looking_for_readers_leaves_no_trace(self, storage: Storage, dump: Dump) -> None:
        before = await dump()
        assert await storage.readers(QUEUE) == []
        assert await storage.forget_reader(QUEUE, "archive") is False
        assert await dump() == before

    async def test_readers_of_another_queue_or_tenant_hold_nothing_back_here(
        self, storage: Storage, client: ContractClient
    ) -> None:
        await storage.configure(QUEUE, **LITTLE)
        other = storage.for_tenant("other")
        await storage.acknowledge("another", "archive", NOTHING)
        await other.acknowledge(QUEUE, "archive", NOTHING)
        await make_events(client, 1, 2_000)
        assert len(await kept(storage)) < 2_000
        assert await storage.readers(QUEUE) == []
        assert len(await other.readers(QUEUE)) == len(await storage.readers("another")) == 1
        await other.aclose()
