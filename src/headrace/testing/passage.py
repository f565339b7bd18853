"""Time as it passes in a kit: on the way dead workers are found, and schedules are fired."""

from __future__ import annotations

from headrace.testing.clock import ManualClock
from headrace.testing.crash import DeadWorkers
from headrace.testing.schedules import KitSchedules, Upcoming
from headrace.testing.storage import KitStorage


class Passage:
    """What moves the clock during one call of a kit.

    Args:
        clock: the kit's.
        storage: the kit's.
        dead: the kit's dead workers.
        schedules: the kit's.
        limit: most instants at which schedules may fall due on the way.
    """

    def __init__(
        self,
        clock: ManualClock,
        storage: KitStorage,
        *,
        dead: DeadWorkers,
        schedules: KitSchedules,
        limit: int,
    ) -> None:
        self._clock = clock
        self._storage = storage
        self._dead = dead
        self._schedules = schedules
        self._limit = limit
        self._stops = 0

    async def arrive(self) -> None:
        """See to what is due now."""
        await self._dead.look()
        await self._schedules.fire()
        for queue in await self._storage.queues():
            self._storage.wake(queue)

    async def step(self, ms: int) -> int:
        """Move the clock on to the next instant at which there is something to do, and do it.

        Dead workers are looked for as often as a worker would, and schedules fired at each instant.

        Args:
            ms: how far at most.

        Returns:
            How far; 0 if something is due now.

        Raises:
            AssertionError: schedules have fallen due too often.
        """
        upcoming = await self._schedules.upcoming()
        step_ms = ms
        if (pause_ms := await self._dead.look()) is not None:
            step_ms = min(step_ms, pause_ms)
        if upcoming is not None and upcoming.due_ms - self._clock() <= step_ms:
            step_ms = max(0, upcoming.due_ms - self._clock())
            self._count(upcoming)
        self._clock.advance_ms(step_ms)
        await self.arrive()
        return step_ms

    def _count(self, upcoming: Upcoming) -> None:
        if self._stops >= self._limit:
            raise AssertionError(
                f"schedules fell due at {self._limit:,} instants and will again, next "
                f"{upcoming.id!r} ({upcoming.timing}): move less at once, pause the schedule with "
                "app.schedules.pause, use Kit(app, schedules=False) if the test is not about those "
                "that the app declares, or raise limit= if so many are meant"
            )
        self._stops += 1
