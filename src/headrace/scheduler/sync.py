"""Makes the stored schedules of an app what a release of it declares.

Only the newest release does so, and any number of its processes at once: each change is made only
to the schedule that was read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from headrace.description import told
from headrace.events import Emit, ScheduleConflict, ScheduleFailed, SchedulesSynced
from headrace.schedule import ScheduleBody, decode_body, encode_body
from headrace.scheduled import Declared
from headrace.storage.base import Scheduler
from headrace.storage.batches import batches
from headrace.storage.schedules import ScheduleWrite, StoredSchedule

TRIES = 3
"""How often a schedule is looked at that others change meanwhile; they are of the same release."""


class SyncChange(msgspec.Struct, frozen=True):
    """What is to be done about one schedule."""

    kind: Literal["added", "changed", "stamped", "deleted"]
    write: ScheduleWrite


class Sync:
    """One pass over the schedules of an app.

    Args:
        storage: where they are.
        declared: what this release declares.
        alive: the releases that have processes; what one of them declares stays.
        known: ids that others have, of which it was told before; new ones are added.
        emit: told what was done.
    """

    def __init__(
        self,
        storage: Scheduler,
        declared: Declared,
        *,
        alive: Collection[str],
        known: set[str],
        emit: Emit,
    ) -> None:
        self._storage = storage
        self._declared = declared
        self._alive = alive
        self._known = known
        self._emit = emit
        self._counts = {"added": 0, "changed": 0, "stamped": 0, "deleted": 0}

    async def run(self) -> AsyncGenerator[None]:
        """Make the pass, a bounded piece at a time; it may be left between two.

        Raises:
            StorageError: a piece was not done, or perhaps done; another pass does the rest.
        """
        missing = dict.fromkeys(self._declared.schedules)
        cursor, is_first = "", True
        while cursor or is_first:
            page = await self._storage.list_schedules(app=self._declared.app, cursor=cursor)
            for stored in page.schedules:
                missing.pop(stored.id, None)
            await self._settle(
                [stored.id for stored in page.schedules], page.schedules, page.now_ms
            )
            cursor, is_first = page.cursor, False
            yield
        for ids in batches(list(missing), self._size_of):
            read = await self._storage.read_schedules(ids)
            await self._settle(ids, read.schedules, read.now_ms)
            yield
        self._tell_synced()

    def _size_of(self, schedule_id: str) -> int:
        return len(self._declared.schedules[schedule_id].job.payload)

    async def _settle(
        self, ids: Sequence[str], read: Iterable[StoredSchedule], now_ms: int
    ) -> None:
        """Decide about schedules as they were read, and write that, until it holds."""
        for _ in range(TRIES):
            found = {stored.id: stored for stored in read}
            decided = (self._decide(one, found.get(one), now_ms) for one in ids)
            ids = await self._write([change for change in decided if change is not None])
            if not ids:
                return
            again = await self._storage.read_schedules(ids)
            read, now_ms = again.schedules, again.now_ms

    async def _write(self, changes: Sequence[SyncChange]) -> list[str]:
        """Make changes; return the ids of those that came too late."""
        lost = []
        for batch in batches(changes, lambda change: len(change.write.body or b"")):
            writes = [change.write for change in batch]
            versions = await self._storage.write_schedules(writes, wakes=True)
            for change, version in zip(batch, versions, strict=True):
                if version is None:
                    lost.append(change.write.id)
                else:
                    self._counts[change.kind] += 1
        return lost

    def _decide(
        self, schedule_id: str, stored: StoredSchedule | None, now_ms: int
    ) -> SyncChange | None:
        wanted = self._declared.schedules.get(schedule_id)
        if stored is None:
            if wanted is None:
                return None
            body = wanted.in_place_of(None, now_ms)
            return SyncChange("added", self._write_of(schedule_id, 0, body, now_ms))
        if stored.app != self._declared.app:
            if wanted is not None:
                self._tell_conflict(stored)
            return None
        try:
            return self._change(stored, decode_body(stored.body), wanted, now_ms)
        except Exception as error:  # one that can't be read must not keep the others up
            self._emit(ScheduleFailed(schedule=stored.id, error=told(error)))
            return None

    def _change(
        self,
        stored: StoredSchedule,
        body: ScheduleBody,
        wanted: ScheduleBody | None,
        now_ms: int,
    ) -> SyncChange | None:
        if wanted is None:
            if body.release in self._alive:
                return None
            return SyncChange("deleted", ScheduleWrite(id=stored.id, expected=stored.version))
        if body.declaration != wanted.declaration:
            new = wanted.in_place_of(body, now_ms)
            write = self._write_of(stored.id, stored.version, new, now_ms)
            return SyncChange("changed", write)
        if body.release == wanted.release:
            return None
        stamped = encode_body(replace(body, release=wanted.release))
        write = ScheduleWrite(
            id=stored.id,
            expected=stored.version,
            app=stored.app,
            due_ms=stored.due_ms,
            body=stamped,
        )
        return SyncChange("stamped", write)

    def _write_of(
        self, schedule_id: str, expected: int, body: ScheduleBody, now_ms: int
    ) -> ScheduleWrite:
        return ScheduleWrite(
            id=schedule_id,
            expected=expected,
            app=self._declared.app,
            due_ms=body.due_ms(schedule_id, now_ms),
            body=encode_body(body),
        )

    def _tell_conflict(self, stored: StoredSchedule) -> None:
        if stored.id not in self._known:
            self._known.add(stored.id)
            app = self._declared.app
            self._emit(ScheduleConflict(schedule=stored.id, app=app, owner=stored.app))

    def _tell_synced(self) -> None:
        counts = {kind: count for kind, count in self._counts.items() if kind != "stamped"}
        if self._declared.schedules or any(counts.values()):
            declared = len(self._declared.schedules)
            self._emit(SchedulesSynced(app=self._declared.app, declared=declared, **counts))
