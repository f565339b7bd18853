"""Workers that died with jobs, and how they are found by the kit's clock."""

from __future__ import annotations

import math
from typing import Any

from headrace.app import App
from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption, UsageError
from headrace.events import Emit
from headrace.job import ClaimedJob
from headrace.plain import shown
from headrace.testing.clock import ManualClock
from headrace.testing.incarnation import claim, close, open_incarnation
from headrace.testing.storage import KitStorage
from headrace.worker.execute import Executor
from headrace.worker.sweep import Reaper


class DeadWorkers:
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
        self._reapers: dict[str, Reaper] = {}

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
        incarnation = await open_incarnation(
            self._app,
            self._storage,
            queue,
            runner=Executor({}, middleware=(), state=None),
            emit=self._emit,
            lease_ms=lease_ms,
        )
        claimed: list[ClaimedJob] = []
        for lane in incarnation.lanes:
            claimed += (await claim(incarnation, lane, jobs - len(claimed))).jobs
        if not claimed:
            await close(incarnation)
            raise UsageError(f"no job of queue {queue!r} is ready: there is none to crash with")
        self._dead.setdefault(queue, set()).add(incarnation.id)
        if queue not in self._reapers:
            self._reapers[queue] = self._reaper(queue)
        await self._look(queue)
        return claimed

    def _reaper(self, queue: str) -> Reaper:
        # Counted from the kit's start: seconds since 1970 leave a float no room for microseconds.
        return Reaper(
            self._storage,
            queue,
            emit=self._emit,
            monotonic=lambda: (self._clock() - self._started_ms) / 1000,
        )

    async def _look(self, queue: str) -> float:
        # At the dead alone: a living worker beats by real time, and would look dead by the kit's.
        beats = await self._storage.beats(queue)
        dead = self._dead[queue]
        return await self._reapers[queue].judge({n: b for n, b in beats.items() if n in dead})

    async def look(self) -> int | None:
        """Look for dead workers; return the ms to the next look, None if there are none."""
        next_s = [await self._look(queue) for queue in self._reapers]
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
