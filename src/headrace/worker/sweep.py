"""Watches the other incarnations of a queue, takes back dead ones' jobs, prunes and repairs.

It also publishes what was committed by writers that did not come to it themselves.

Liveness is observed, not read off a clock: an incarnation is dead when its beat has not moved for
its whole lease by the watcher's own monotonic time, in which three of the watcher's own reads
succeeded. A paused or restarted server, or a stepped clock, condemns nobody, and neither does one
that can be read but not written: a watcher whose own beats go unanswered judges nobody.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from headrace.errors import ReplyLost, StorageError, StorageFull, StorageUnavailable
from headrace.events import Emit, JobsReconciled, QueueRepaired, WorkerReaped
from headrace.job import Claim, ErrorInfo
from headrace.storage.base import Maintenance, writes_in_bulk
from headrace.storage.incarnations import Beat
from headrace.worker.incarnation import Incarnation

LEAST_READS = 3
PUBLISHED_A_SWEEP = 20
"""Calls that publish in one sweep, of up to 500 jobs each; then it looks at the beats again."""

ROUNDING_S = 1e-6


class Sighting(msgspec.Struct):
    """What was seen of one incarnation: its beat, when last, and how long it has stood still."""

    count: int
    read_at: float
    silent_s: float = 0.0


class Reaper:
    """Tells by their beats which incarnations of a queue are dead, and takes back their jobs.

    Args:
        storage: where the queue is.
        queue: its name.
        emit: told of the dead.
        monotonic: the clock.
    """

    def __init__(
        self,
        storage: Maintenance,
        queue: str,
        *,
        emit: Emit,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._queue = queue
        self._emit = emit
        self._monotonic = monotonic
        self._sightings: dict[str, Sighting] = {}

    async def judge(self, beats: Mapping[str, Beat]) -> float:
        """Act on what was just read; return the seconds until the next look is due, if any is."""
        now = self._monotonic()
        self._sightings = {name: s for name, s in self._sightings.items() if name in beats}
        next_s = math.inf
        for other, beat in beats.items():
            next_s = min(next_s, await self._judge(other, beat, now))
        return next_s

    def forget(self) -> float:
        """Begin anew, since nobody may have been able to beat; return as `judge` does."""
        self._sightings.clear()
        return math.inf

    async def _judge(self, other: str, beat: Beat, now: float) -> float:
        sighting = self._sightings.get(other)
        if sighting is None or sighting.count != beat.count:
            self._sightings[other] = Sighting(beat.count, now)
            return beat.lease_ms / 1000 / LEAST_READS
        lease_s = beat.lease_ms / 1000
        # One read vouches for a third of the lease at most: while the server or this watcher stood
        # still, nobody could beat, and reads in quick succession after that prove nothing.
        longest_s = lease_s / LEAST_READS
        sighting.silent_s += min(now - sighting.read_at, longest_s)
        sighting.read_at = now
        left_s = lease_s - sighting.silent_s
        if left_s > ROUNDING_S:
            return max(0.01, min(left_s, longest_s))
        if beat.is_condemned:
            # Listed for one more lease, in case something of it arrived late.
            await self._take_back(other, beat)
            await self._storage.forget(self._queue, other)
        elif await self._take_back(other, beat):
            self._emit(WorkerReaped(queue=self._queue, incarnation=other))
        del self._sightings[other]
        return lease_s / LEAST_READS

    async def _take_back(self, other: str, beat: Beat) -> bool:
        """Reap until nothing is left; whether it was dead."""
        error = ErrorInfo(
            type="WorkerDied",
            message=f"worker {other} stopped beating for its lease of {beat.lease_ms} ms",
        )
        while True:
            left = await self._storage.reap(self._queue, other, seen=beat.count, error=error)
            if left is None:
                return False
            if left == 0:
                return True


class Sweeper:
    """The sweep of one incarnation.

    Args:
        incarnation: whose queue; it never condemns itself.
        interval_s: time between sweeps.
        monotonic: the clock.
    """

    def __init__(
        self,
        incarnation: Incarnation,
        *,
        interval_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._incarnation = incarnation
        self._interval_s = interval_s
        self._reaper = Reaper(
            incarnation.storage, incarnation.queue, emit=incarnation.emit, monotonic=monotonic
        )
        self._publishes = writes_in_bulk(incarnation.storage)
        self._strangers: set[tuple[str, Claim]] = set()
        self._cursor = ""
        self._repaired = ""

    async def sweep_once(self) -> float:
        """Look once, act on it, and return the seconds until the next look is due."""
        try:
            next_s = await self._look()
        except (StorageUnavailable, ReplyLost):
            raise
        except StorageError:
            self._incarnation.note_published()  # no burst is to wait until somebody mends this
            raise
        if next_s > 0:
            self._incarnation.note_published()
        return next_s

    async def _look(self) -> float:
        own = self._incarnation
        beats = await own.storage.beats(own.queue)
        if own.lease.is_heard:
            next_s = await self._reaper.judge({n: b for n, b in beats.items() if n != own.id})
        else:
            next_s = self._reaper.forget()
        await self._reconcile()
        self._cursor = await own.storage.prune(own.queue, cursor=self._cursor)
        await self._repair()
        if self._publishes and not await self._publish():
            return 0
        return min(self._interval_s, next_s)

    async def _publish(self) -> bool:
        """Publish a number of pieces; whether nothing is left, or there is no room for it now."""
        own = self._incarnation
        with suppress(StorageFull):
            for _ in range(PUBLISHED_A_SWEEP):
                if not await own.storage.publish(own.queue):
                    return True
            return False
        return True

    async def _repair(self) -> None:
        """Go on with the walk that finds what lost records have left; in an orderly queue, none."""
        own = self._incarnation
        done = await own.storage.repair(own.queue, cursor=self._repaired, lanes=own.lanes.keys())
        self._repaired = done.cursor
        if done.mended:
            own.emit(QueueRepaired(queue=own.queue, count=done.mended))

    async def _reconcile(self) -> None:
        """Hand back what the storage counts as ours but we don't have: seen in two looks running.

        It comes from a restored backup, or from a claim whose answer never arrived.
        """
        own = self._incarnation
        held = await own.storage.held(own.queue, own.id)
        known = own.knows()
        # A claim whose answer was lost is being repeated, and will bring its jobs.
        asking = own.claims.nonce
        strangers = {job for job in held if job[0] not in known and job[1].nonce != asking}
        lost = list(strangers & self._strangers)
        self._strangers = strangers
        if lost:
            await own.storage.put_back(own.queue, own.id, lost[:500])
            own.emit(JobsReconciled(queue=own.queue, count=len(lost)))
