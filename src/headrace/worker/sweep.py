"""Watches the other incarnations of a queue, takes back dead ones' jobs, prunes and repairs.

Liveness is observed, not read off a clock: an incarnation is dead when its beat has not moved for
its whole lease by the watcher's own monotonic time, in which three of the watcher's own reads
succeeded. A paused or restarted server, or a stepped clock, condemns nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from headrace.events import JobsReconciled, QueueRepaired, WorkerReaped
from headrace.job import Claim, ErrorInfo
from headrace.storage.values import Beat
from headrace.worker.session import Session

LEAST_READS = 3
ROUNDING_S = 1e-6


class Sighting(msgspec.Struct):
    """What was seen of one incarnation: its beat, when last, and how long it has stood still."""

    count: int
    read_at: float
    silent_s: float = 0.0


class Sweeper:
    """The sweep of one session.

    Args:
        session: whose queue; its own incarnation is never condemned by it.
        interval_s: time between sweeps.
        monotonic: the clock.
    """

    def __init__(
        self,
        session: Session,
        *,
        interval_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._sightings: dict[str, Sighting] = {}
        self._strangers: set[tuple[str, Claim]] = set()
        self._cursor = ""
        self._repaired = ""

    async def sweep_once(self) -> float:
        """Look once, act on it, and return the seconds until the next look is due."""
        session = self._session
        beats = await session.storage.beats(session.queue)
        now = self._monotonic()
        self._sightings = {name: s for name, s in self._sightings.items() if name in beats}
        next_s = self._interval_s
        for incarnation, beat in beats.items():
            if incarnation != session.incarnation:
                next_s = min(next_s, await self._judge(incarnation, beat, now))
        await self._reconcile()
        self._cursor = await session.storage.prune(session.queue, cursor=self._cursor)
        await self._repair()
        return next_s

    async def _repair(self) -> None:
        """Go on with the walk that finds what lost records have left; in an orderly queue, none."""
        session = self._session
        done = await session.storage.repair(
            session.queue, cursor=self._repaired, lanes=session.lanes.keys()
        )
        self._repaired = done.cursor
        if done.mended:
            session.emit(QueueRepaired(queue=session.queue, count=done.mended))

    async def _judge(self, incarnation: str, beat: Beat, now: float) -> float:
        sighting = self._sightings.get(incarnation)
        if sighting is None or sighting.count != beat.count:
            self._sightings[incarnation] = Sighting(beat.count, now)
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
            await self._take_back(incarnation, beat)
            await self._session.storage.forget(self._session.queue, incarnation)
        elif await self._take_back(incarnation, beat):
            self._session.emit(WorkerReaped(queue=self._session.queue, incarnation=incarnation))
        del self._sightings[incarnation]
        return lease_s / LEAST_READS

    async def _take_back(self, incarnation: str, beat: Beat) -> bool:
        """Reap until nothing is left; whether it was dead."""
        session = self._session
        error = ErrorInfo(
            type="WorkerDied",
            message=f"worker {incarnation} stopped beating for its lease of {beat.lease_ms} ms",
        )
        while True:
            left = await session.storage.reap(
                session.queue, incarnation, seen=beat.count, error=error
            )
            if left is None:
                return False
            if left == 0:
                return True

    async def _reconcile(self) -> None:
        """Hand back what the storage counts as ours but we don't have: seen in two looks running.

        It comes from a restored backup, or from a claim whose answer never arrived.
        """
        session = self._session
        held = await session.storage.held(session.queue, session.incarnation)
        known = session.knows()
        # A claim whose answer was lost is being repeated, and will bring its jobs.
        asking = session.claims.nonce
        strangers = {job for job in held if job[0] not in known and job[1].nonce != asking}
        lost = list(strangers & self._strangers)
        self._strangers = strangers
        if lost:
            await session.storage.put_back(session.queue, session.incarnation, lost[:500])
            session.emit(JobsReconciled(queue=session.queue, count=len(lost)))
