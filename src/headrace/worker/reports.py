"""Passes on what handlers say of their progress and output, in batches.

Progress is thinned out to what can be looked at; output goes in order, and all of it before the
attempt's outcome. Both are lost, and no error, while the storage is away.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

import anyio

from headrace.errors import StorageError
from headrace.job import CHUNK_LIMIT_BYTES, ClaimedJob
from headrace.storage.base import Consumer
from headrace.storage.limits import BATCH_LIMIT, BATCH_LIMIT_BYTES, PIECES_LIMIT
from headrace.storage.values import Report

PROGRESS_S = 0.5
"""Least time between two reports of an attempt's progress, but for the last."""

OUTPUT_S = 0.02
"""How long output is gathered: a reader sees pieces this late, and a hundred cost one call."""

OUTPUT_LIMIT = 1_000
"""Pieces of one attempt that wait for the storage; the oldest make room."""


class Unreported:
    """What one attempt has said since the last report."""

    __slots__ = (
        *("chunks", "fraction", "is_underway", "job", "next_number", "next_progress_at"),
        *("on_reported", "text"),
    )

    def __init__(self, job: ClaimedJob) -> None:
        self.job: ClaimedJob = job
        self.fraction: float | None = None
        self.text: str = ""
        self.chunks: deque[bytes] = deque(maxlen=OUTPUT_LIMIT)
        self.next_number: int = 0
        self.next_progress_at: float = 0.0
        self.is_underway: bool = False
        self.on_reported: Callable[[], None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to report."""
        return self.fraction is None and not self.chunks

    def is_due(self, now: float) -> bool:
        """Whether something is to be reported now: output, or progress not too soon."""
        return bool(self.chunks) or self._is_progress_due(now)

    def _is_progress_due(self, now: float) -> bool:
        is_time = self.on_reported is not None or now >= self.next_progress_at
        return self.fraction is not None and is_time

    def take(self, room: int, room_bytes: int, now: float) -> tuple[Report, int]:
        """Return what fits into a call and is to be reported next, and its size."""
        self.is_underway = True
        first = self.next_number - len(self.chunks)
        chunks: list[bytes] = []
        size = 0
        while self.chunks and len(chunks) < room and size + len(self.chunks[0]) <= room_bytes:
            size += len(self.chunks[0])
            chunks.append(self.chunks.popleft())
        fraction = None
        if self._is_progress_due(now):
            fraction, self.fraction = self.fraction, None
            self.next_progress_at = now + PROGRESS_S
        return Report(self.job.id, self.job.claim, fraction, self.text, chunks, first), size


class Reports:
    """The follower of an incarnation's attempts. `progress` and `emit` may be called in any thread.

    Args:
        storage: where to.
        queue: the queue's name.
    """

    def __init__(self, storage: Consumer, *, queue: str) -> None:
        self._storage = storage
        self._queue = queue
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._turn = asyncio.Lock()  # one call at a time, so that pieces arrive in order
        self._unreported: dict[tuple[str, int], Unreported] = {}
        self._has_some = asyncio.Event()
        self._has_output = asyncio.Event()
        self._is_urgent = asyncio.Event()

    def progress(self, job: ClaimedJob, fraction: float, text: str) -> None:
        """Note how far a job's attempt is."""
        with self._lock:
            unreported = self._of(job)
            unreported.fraction, unreported.text = fraction, text
        self._note(self._has_some)

    def emit(self, job: ClaimedJob, chunk: bytes) -> None:
        """Note a piece of a job's output."""
        with self._lock:
            unreported = self._of(job)
            unreported.chunks.append(chunk)
            unreported.next_number += 1
        self._note(self._has_some, self._has_output)

    def _of(self, job: ClaimedJob) -> Unreported:
        key = (job.id, job.claim.epoch)
        unreported = self._unreported.get(key)
        if unreported is None:
            unreported = self._unreported[key] = Unreported(job)
        return unreported

    def _note(self, *events: asyncio.Event) -> None:
        # Asked after something was added, and cleared before it is taken: nothing is overlooked.
        if not all(event.is_set() for event in events):
            self._loop.call_soon_threadsafe(_set, events)

    def finish(self, job: ClaimedJob, then: Callable[[], None]) -> None:
        """Call ``then`` once all that the attempt has said is reported: at once if nothing is left.

        What a stuck handler says later is ignored by the storage.
        """
        key = (job.id, job.claim.epoch)
        with self._lock:
            unreported = self._unreported.get(key)
            if unreported is not None and unreported.is_empty and not unreported.is_underway:
                del self._unreported[key]
                unreported = None
        if unreported is None:
            then()
            return
        unreported.on_reported = then
        _set((self._has_some, self._has_output, self._is_urgent))

    @property
    def is_idle(self) -> bool:
        """Whether no attempt has anything unreported: then its end needs no `finish`."""
        return not self._unreported

    def holds(self) -> set[str]:
        """Return the ids of attempts that have ended and are not reported yet."""
        with self._lock:
            return {
                unreported.job.id
                for unreported in self._unreported.values()
                if unreported.on_reported is not None
            }

    async def run(self) -> None:
        """Report for ever."""
        while True:
            await self._has_some.wait()
            with anyio.move_on_after(PROGRESS_S):
                await self._has_output.wait()
                with anyio.move_on_after(OUTPUT_S):
                    await self._is_urgent.wait()
            await self.report_once()

    async def report_once(self) -> None:
        """Report all that was said until now, in as many calls as it takes."""
        async with self._turn:
            for event in (self._has_some, self._has_output, self._is_urgent):
                event.clear()
            with suppress(StorageError):
                while reports := self._take():
                    await self._report(reports)
            with self._lock:
                has_more = any(not unreported.is_empty for unreported in self._unreported.values())
            if has_more:
                self._has_some.set()  # progress that came too soon

    async def _report(self, reports: list[Report]) -> None:
        is_lost = True
        try:
            await self._storage.report(self._queue, reports)
            is_lost = False
        finally:
            self._finish(is_lost=is_lost)

    def _take(self) -> list[Report]:
        reports: list[Report] = []
        room, room_bytes = PIECES_LIMIT, BATCH_LIMIT_BYTES
        now = time.monotonic()
        with self._lock:
            for unreported in self._unreported.values():
                if not room or room_bytes < CHUNK_LIMIT_BYTES or len(reports) == BATCH_LIMIT:
                    break
                if unreported.is_due(now):
                    report, size = unreported.take(room, room_bytes, now)
                    reports.append(report)
                    room -= len(report.chunks)
                    room_bytes -= size
        return reports

    def _finish(self, *, is_lost: bool) -> None:
        """Let go of who has ended and has nothing left to say, or of all who have ended."""
        with self._lock:
            for unreported in self._unreported.values():
                unreported.is_underway = False
            ended = [
                key
                for key, unreported in self._unreported.items()
                if unreported.on_reported is not None and (is_lost or unreported.is_empty)
            ]
            finished = [self._unreported.pop(key) for key in ended]
        for unreported in finished:
            if unreported.on_reported is not None:
                unreported.on_reported()


def _set(events: Iterable[asyncio.Event]) -> None:
    for event in events:
        event.set()
