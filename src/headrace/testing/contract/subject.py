"""What the contract's tests need beside a storage's verbs: to move its clock and look inside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

import msgspec

from headrace.storage import (
    BATCH_LIMIT,
    SCHEDULES_LIMIT,
    EventRecord,
    JobRow,
    JobState,
    Storage,
    StoredSchedule,
    keeps_schedules,
)


class Subject(Protocol):
    """A storage under contract, and what the tests may do behind its back.

    Derive from it, open an empty storage in ``__init__``, and write `advance`; the other methods
    have defaults.

    Attributes:
        storage: the storage; nothing is in it.
        schedules_limit: how many schedules a tenant may have in it, 600 or more; with fewer than a
            storage takes by default, the tests are done sooner.
    """

    storage: Storage
    schedules_limit: int = SCHEDULES_LIMIT

    async def advance(self, ms: int) -> int:
        """Move the storage's clock on and return its time, in milliseconds since the epoch.

        The clock stands still otherwise, so that the tests can tell times exactly; with 0 the call
        only tells the time. A storage that expires records by a clock of its server's own may let
        that one run on: the tests wait for such ends.
        """

    async def dump(self, *, with_calls: bool = True) -> Mapping[str, Any]:
        """Return all that is stored, by keys that name what they hold.

        The tests compare one dump with another, so it must not change by itself. The key of
        whatever belongs to an incarnation contains its name. This one takes what the storage's own
        reads show; a dump of everything in the database finds more.

        Args:
            with_calls: False leaves out what is remembered of numbered calls.
        """
        return await read_all(self.storage)

    async def problems(self) -> list[str]:
        """Return which rules the stored data break, as text; looked at after every test.

        Such rules are: counts equal what they count, nothing is left that nobody deletes.
        """
        return []

    async def aclose(self) -> None:
        """Close the storage and what else is open; the test is over."""
        await self.storage.aclose()


async def read_all(storage: Storage) -> dict[str, Any]:
    """Return all that a storage's reads show, but for what changes with the clock alone."""
    queues = await storage.queues()
    found: dict[str, Any] = {"queues": queues} if queues else {}
    for queue in queues:
        stats = await storage.stats(queue)
        found[f"stats:{queue}"] = msgspec.structs.replace(stats, oldest_ms=0, window_ms=0)
        async for row in _all_rows(storage, queue):
            found[f"job:{queue}:{row.id}"] = await storage.get(queue, row.id)
            output = await storage.output(queue, row.id)
            if output.chunks:
                found[f"output:{queue}:{row.id}"] = output
        for name, beat in (await storage.beats(queue)).items():
            held = await storage.held(queue, name)
            found[f"incarnation:{queue}:{name}"] = (beat, sorted(held, key=lambda pair: pair[0]))
        for info in await storage.workers(queue):
            shown = msgspec.structs.replace(info, silent_ms=0)
            found[f"worker:{queue}:{info.incarnation}"] = shown
        events = [event async for event in _all_events(storage, queue)]
        if events:
            found[f"events:{queue}"] = events
    if keeps_schedules(storage):
        async for schedule in _all_schedules(storage):
            history = await storage.schedule_history(schedule.id)
            found[f"schedule:{schedule.id}"] = (schedule, history)
    return found


async def _all_rows(storage: Storage, queue: str) -> AsyncIterator[JobRow]:
    for state in JobState:
        cursor = ""
        while True:
            page = await storage.list_jobs(queue, state, cursor=cursor, limit=BATCH_LIMIT)
            for row in page.rows:
                yield row
            cursor = page.cursor
            if not cursor:
                break


async def _all_events(storage: Storage, queue: str) -> AsyncIterator[EventRecord]:
    after = "0"
    while True:
        page = await storage.events(queue, after=after, limit=BATCH_LIMIT)
        if not page.events:
            break
        for event in page.events:
            yield event
        after = page.last_id


async def _all_schedules(storage: Storage) -> AsyncIterator[StoredSchedule]:
    cursor = ""
    while True:
        page = await storage.list_schedules(cursor=cursor)
        for schedule in page.schedules:
            yield schedule
        cursor = page.cursor
        if not cursor:
            break
