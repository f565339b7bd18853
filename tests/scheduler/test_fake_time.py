"""Any number of schedulers: one job an occurrence, by a clock that the test moves."""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from headrace.job import EnqueueOutcome
from headrace.schedule import occurrence_id
from headrace.scheduler.step import HOLD_MS, Steps
from headrace.storage import Occurrence
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing import EventLog, ManualClock
from headrace.timing import Every
from tests.support.schedules import QUEUE, put

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)
SPAN_MS = 10 * 60_000
SCHEDULERS = 10


class Death(Exception):
    """A scheduler has died after it has fired."""


class Deadly(SqliteStorage):
    """A storage where one in so many schedulers dies between firing and moving on.

    Jobs end as soon as they are there, so none is kept from coming twice by being there.
    """

    death_rate: float = 0.0

    def prepare(self, seed: int) -> None:
        """Begin to count."""
        self.random = random.Random(seed)
        self.brought: Counter[str] = Counter()

    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        """Fire, end the jobs, and perhaps kill who has fired."""
        outcomes = await super().fire(queue, occurrences, until_ms=until_ms)
        assert outcomes is not None
        ids = [each.job.id for each in occurrences]
        pairs = zip(ids, outcomes, strict=True)
        self.brought.update(job_id for job_id, outcome in pairs if outcome == "queued")
        await self.cancel(QUEUE, ids)
        if self.random.random() < self.death_rate:
            raise Death
        return outcomes


class Place:
    """Where one scheduler follows another that has died."""

    def __init__(self, storage: Deadly, number: int) -> None:
        self._storage = storage
        self._steps = Steps(storage, emit=EventLog())
        self.next_at_ms: int = NOON_MS + 97 * number

    async def look(self, now_ms: int) -> None:
        """Make steps until nothing is due; the next look is a second later."""
        try:
            while await self._steps.step() == 0:
                pass
        except Death:
            self._steps = Steps(self._storage, emit=EventLog())
        self.next_at_ms = now_ms + 1000


@pytest.mark.parametrize("death_rate", [0.0, 0.1])
@pytest.mark.parametrize("interval_s", [1, 0.4, 7])
async def test_ten_schedulers_bring_exactly_one_job_an_occurrence(
    interval_s: float, death_rate: float
) -> None:
    # BC-42: staggered looks for ten minutes; it is remembered by occurrence, not by the job.
    clock = ManualClock(NOON)
    storage = Deadly(f"memory://fake-{secrets.token_hex(6)}", clock=clock)
    storage.prepare(seed=7)
    await put(storage, "tick", Every(interval_s))
    first_ms = Every(interval_s).after(NOON_MS)
    assert first_ms is not None
    storage.death_rate = death_rate
    places = [Place(storage, number) for number in range(SCHEDULERS)]
    while clock() < NOON_MS + SPAN_MS:
        first = min(places, key=lambda place: place.next_at_ms)
        clock.advance_ms(max(0, first.next_at_ms - clock()))
        await first.look(clock())
    storage.death_rate = 0.0
    clock.advance_ms(HOLD_MS)  # after which nobody holds what the last dead have left
    await places[0].look(clock())
    instants = range(first_ms, clock() + 1, round(interval_s * 1000))
    assert storage.brought == Counter(occurrence_id("tick", instant) for instant in instants)
    await storage.aclose()
