"""Says that a release of an app runs, and while it is the newest stores what it declares.

A release is alive while one of its processes has said so of late. The storage orders releases, so a
process of an older one, which does not know what a newer one declares, changes nothing.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import aclosing, suppress

import anyio

from headrace.clock import Monotonic
from headrace.errors import StorageError, StorageFull, TooManySchedules
from headrace.events import Emit
from headrace.repeat import repeat_until_answered
from headrace.scheduled import Declared
from headrace.scheduler.hold_up import HoldUp
from headrace.scheduler.sync import Sync
from headrace.storage.base import Scheduler
from headrace.storage.schedules import ReleaseStanding

JOIN_S = 5.0
"""Time between two words of a process."""

ALIVE_S = 15.0
"""How long after its last word a release counts as alive."""

LAST_WORD_S = 1.0
"""How long the storage may take to hear that a process ends."""


class Membership:
    """One process of a release, as the storage counts it.

    Args:
        storage: where the releases are known.
        declared: the release, and what it declares.
        monotonic: the clock.
    """

    def __init__(
        self, storage: Scheduler, declared: Declared, *, monotonic: Monotonic = time.monotonic
    ) -> None:
        self._storage = storage
        self._declared = declared
        self._monotonic = monotonic
        self._said_at: float | None = None
        self._absent_since = 0.0
        self._absent_until = -ALIVE_S

    @property
    def is_due(self) -> bool:
        """Whether it is time for another word."""
        return self._said_at is None or self._monotonic() - self._said_at >= JOIN_S

    async def join(self) -> ReleaseStanding:
        """Say that the release runs, and return how it stands.

        Where nothing could be said for a while, because the storage was away or this process stood
        still, other releases may not have been heard either: so long they count as alive, or the
        first to come back would take itself for the only one, and the newest.
        """
        now = self._monotonic()
        if self._said_at is not None and now - self._said_at > 2 * JOIN_S:
            self._absent_since, self._absent_until = self._said_at, now
        is_back_for_s = now - self._absent_until
        absent_s = now - self._absent_since if is_back_for_s < ALIVE_S else 0.0
        alive_ms = round((ALIVE_S + absent_s) * 1000)
        standing = await self._storage.join_release(
            self._declared.app, self._declared.release, alive_ms=alive_ms
        )
        self._said_at = now
        return standing

    async def leave(self) -> None:
        """Say that this process ends, if the storage answers soon."""
        with (
            anyio.CancelScope(shield=True),
            anyio.move_on_after(LAST_WORD_S),
            suppress(StorageError),
        ):
            await self._storage.leave_release(self._declared.app, self._declared.release)


def _is_still(standing: ReleaseStanding) -> bool:
    """Whether a release that has joined before is the newest, and the storage knows of that."""
    return standing.is_newest and not standing.is_new


class Releases:
    """Keeps the schedules of an app as this release declares them, while it is the newest.

    Args:
        storage: where they are.
        declared: what this release declares.
        emit: told what was done.
        membership: of this process; default: one by real time.
        interval_s: time between two words, at most.
    """

    def __init__(
        self,
        storage: Scheduler,
        declared: Declared,
        *,
        emit: Emit,
        membership: Membership | None = None,
        interval_s: float = JOIN_S,
    ) -> None:
        self._storage = storage
        self._declared = declared
        self._emit = emit
        self._membership = membership or Membership(storage, declared)
        self._interval_s = interval_s
        self._known: set[str] = set()
        self._synced: set[str] | None = None
        self._ended = asyncio.Event()
        self._hold_up = HoldUp(emit)

    def stop(self) -> None:
        """Have `run` return soon."""
        self._ended.set()

    async def run(self) -> None:
        """Join and synchronise until `stop`, however long the storage is away; then leave.

        Raises:
            StorageError: it can't be used; this may be called again.
        """
        while not self._ended.is_set():
            pause_s = self._interval_s * random.uniform(0.9, 1.0)  # noqa: S311 (spreads load)
            try:
                await repeat_until_answered(
                    self.turn, is_over=self._ended.is_set, pause=self._sleep
                )
                self._hold_up.ends()
            except (StorageFull, TooManySchedules) as error:
                self._hold_up.begins(error)
            await self._sleep(pause_s)
        await self._membership.leave()

    async def turn(self) -> None:
        """Say once that the release runs, and synchronise if that is due."""
        standing = await self._membership.join()
        if self._is_due(standing) and await self._synchronise(standing):
            self._synced = set(standing.alive)

    def _is_due(self, standing: ReleaseStanding) -> bool:
        """Whether this is the newest release, and has not seen to everything yet."""
        if standing.is_new or not standing.is_newest:
            self._synced = None  # others may have changed all, or the storage has lost it
        if not standing.is_newest:
            return False
        if self._synced is None or not self._synced.issubset(standing.alive):
            return True  # what a release declared that has gone may go too
        self._synced.update(standing.alive)
        return False

    async def _synchronise(self, standing: ReleaseStanding) -> bool:
        """Make a pass; False: it was left, since a newer release has come or this one ends."""
        sync = Sync(
            self._storage,
            self._declared,
            alive=standing.alive,
            known=self._known,
            emit=self._emit,
        )
        async with aclosing(sync.run()) as pieces:
            async for _ in pieces:
                if self._ended.is_set():
                    return False
                if self._membership.is_due and not _is_still(await self._membership.join()):
                    return False
        return True

    async def _sleep(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._ended.wait()
