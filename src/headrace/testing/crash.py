"""Workers that died with jobs, and the sweep that finds them by the kit's clock."""

from __future__ import annotations

import math
from typing import Any

from headrace.app import App
from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption, UsageError
from headrace.events import Emit
from headrace.job import ClaimedJob, new_job_id
from headrace.plain import shown
from headrace.testing.clock import ManualClock
from headrace.testing.place import LANES, Place
from headrace.testing.storage import Graveyard, KitStorage
from headrace.worker.execute import Executor
from headrace.worker.incarnation import Incarnation
from headrace.worker.sweep import Sweeper


class Crashes:
    """The dead workers of a kit.

    Args:
        app: the tasks.
        storage: the kit's.
        clock: the kit's.
        emit: told when a dead worker is found.
    """

    def __init__(
        self, app: App[Any], storage: KitStorage, clock: ManualClock, *, emit: Emit
    ) -> None:
        self._app = app
        self._storage = storage
        self._clock = clock
        self._started_ms = clock()
        self._emit = emit
        self._dead: dict[str, set[str]] = {}
        self._sweepers: dict[str, Sweeper] = {}

    async def crash(self, queue: str, *, jobs: int, lease: Duration) -> list[ClaimedJob]:
        """Let a worker claim up to ``jobs`` jobs and die; return them.

        Raises:
            UsageError: no job is ready.
            InvalidOption: the lease is out of bounds.
        """
        lease_ms = duration_ms(lease, name="lease", least_ms=500)
        if lease_ms > 3_600_000:
            raise InvalidOption(
                f"lease={shown(lease)} is out of bounds: use 0.5 seconds to an hour"
            )
        place = await Place.register(self._app, self._storage, queue, lease_ms=lease_ms)
        claimed: list[ClaimedJob] = []
        for lane in LANES:
            claimed += (await place.claim(lane, jobs - len(claimed))).jobs
        if not claimed:
            await place.close()
            raise UsageError(f"no job of queue {queue!r} is ready: there is none to crash with")
        self._dead.setdefault(queue, set()).add(place.id)
        if queue not in self._sweepers:
            self._sweepers[queue] = self._sweeper(queue)
        await self._sweepers[queue].sweep_once()
        return claimed

    def _sweeper(self, queue: str) -> Sweeper:
        incarnation = Incarnation(
            Graveyard(self._storage, self._dead[queue]),
            queue=queue,
            incarnation=f"sweep-{new_job_id()}",
            lease_s=math.inf,
            executor=Executor({}, middleware=(), state=None),
            lanes={},
            emit=self._emit,
        )
        # Counted from the kit's start: seconds since 1970 leave a float no room for microseconds.
        return Sweeper(
            incarnation,
            interval_s=math.inf,
            monotonic=lambda: (self._clock() - self._started_ms) / 1000,
        )

    async def sweep(self) -> int | None:
        """Look for dead workers; return the ms to the next look, None if there are none."""
        next_s = [await sweeper.sweep_once() for sweeper in self._sweepers.values()]
        earliest_s = min(next_s, default=math.inf)
        # Rounded down, since a silence counts in full only if it was looked at often enough.
        return None if earliest_s == math.inf else max(1, math.floor(earliest_s * 1000))

    async def holds(self, queue: str, job_id: str) -> bool:
        """Whether a dead worker, not found yet, has this job."""
        return job_id in await self._held(queue)

    async def hold_any(self) -> bool:
        """Whether a dead worker, not found yet, has any job."""
        for queue in self._dead:
            if await self._held(queue):
                return True
        return False

    async def _held(self, queue: str) -> set[str]:
        held: set[str] = set()
        for incarnation in self._dead.get(queue, ()):
            held.update(job_id for job_id, _ in await self._storage.held(queue, incarnation))
        return held
