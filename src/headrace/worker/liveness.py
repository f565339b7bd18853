"""Liveness: beats, what is known by their answers, and the fence when there are none.

Beats go from a thread of their own, so that a handler that blocks the loop keeps its worker's
lease. A loop that has not turned for too long is no worker any more: then the beats stop, loudly,
and others take the jobs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

import anyio

from headrace.errors import StorageError
from headrace.events import Emit, LoopStalled
from headrace.guard import Guard
from headrace.storage.base import Beater
from headrace.storage.incarnations import BeatReply
from headrace.worker.watch import LoopWatch

JOIN_S = 1.0

REPEATED_SOONER = 10
"""How many times sooner than the next beat one is repeated that was not answered: there is time for
one or two more before the fence."""


class Lease:
    """What one incarnation lives by: until when it may run what it has claimed.

    Args:
        queue: the queue's name.
        incarnation: its id.
        lease_s: silence after which others take its jobs.
        on_fence: called once with the cause, when its attempts must stop.
        on_cancel: called with the ids of jobs that are to be stopped, maybe more than once.

    Attributes:
        acked_at: when the last beat was sent that was answered, on the monotonic clock.
        is_gone: set by the fence.
        is_condemned: whether the storage has forgotten the incarnation.
        is_retired: set by an incarnation that ends in order: a beat on its way finds nobody then.
    """

    def __init__(
        self,
        *,
        queue: str,
        incarnation: str,
        lease_s: float,
        on_fence: Callable[[str], None],
        on_cancel: Callable[[Sequence[str]], None],
    ) -> None:
        self.queue: str = queue
        self.incarnation: str = incarnation
        self.acked_at: float = time.monotonic()
        self.is_gone: asyncio.Event = asyncio.Event()
        self.is_condemned: bool = False
        self.is_retired: bool = False
        self._lease_s = lease_s
        self._on_fence = on_fence
        self._on_cancel = on_cancel

    @property
    def fence_at(self) -> float:
        """When the attempts must have stopped, on the monotonic clock.

        The margin before the lease ends leaves time to stop them. The beat thread writes
        ``acked_at``, so a blocked loop does not read an old one.
        """
        return self.acked_at + self._lease_s - min(2.0, self._lease_s / 4)

    @property
    def is_heard(self) -> bool:
        """Whether a beat was answered within the last half of the lease: none is missing."""
        return time.monotonic() - self.acked_at < self._lease_s / 2

    def on_beat_reply(self, reply: BeatReply) -> None:
        """Act on a beat's answer."""
        if reply.is_gone and not self.is_retired:
            self.condemn()
        if reply.cancel_ids:
            self._on_cancel(reply.cancel_ids)

    def condemn(self) -> None:
        """Fence: the storage doesn't know this incarnation, so its jobs were taken back."""
        self.is_condemned = True
        self.fence("the storage does not know this incarnation: it was taken for dead")

    def fence(self, cause: str) -> None:
        """Have all attempts stopped, and no outcome of theirs recorded; safe to repeat."""
        if not self.is_gone.is_set():
            self.is_gone.set()
            self._on_fence(cause)

    async def watch(self) -> None:
        """Fence when beats went unanswered for nearly the lease."""
        while not self.is_gone.is_set():
            left_s = self.fence_at - time.monotonic()
            if left_s <= 0:
                self.fence(f"no beat was answered for {self._lease_s:g} s less the margin")
                return
            await anyio.sleep(left_s)


class Liveness:
    """The beats of a worker, for the leases of all its queues.

    Args:
        open_beater: opens the synchronous side of the storage, in the thread.
        interval_s: time between beats of an incarnation.
        max_loop_stall_s: how long the loop may stand still before beats stop.
        watch: knows how long the loop has stood still; runs as long as this.
        worker: the worker's name.
        emit: told when that is too long.
        guard: keeps the thread alive.
    """

    def __init__(
        self,
        open_beater: Callable[[], Beater],
        *,
        interval_s: float,
        max_loop_stall_s: float,
        watch: LoopWatch,
        worker: str,
        emit: Emit,
        guard: Guard,
    ) -> None:
        self._open_beater = open_beater
        self._interval_s = interval_s
        self._max_loop_stall_s = max_loop_stall_s
        self._watch = watch
        self._worker = worker
        self._emit = emit
        self._guard = guard
        self._leases: dict[str, Lease] = {}
        self._is_stalled = False
        self._is_closing = threading.Event()
        self._due = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="headrace-beat", daemon=True)

    async def __aenter__(self) -> Self:
        self._watch.start()
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End both threads; this one may take a call's time-out to be gone."""
        self._is_closing.set()
        self._due.set()
        self._watch.stop()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._thread.join, JOIN_S)
            await anyio.to_thread.run_sync(self._watch.join, JOIN_S)

    def add(self, lease: Lease) -> None:
        """Beat for an incarnation from now on, in place of an earlier one of its queue."""
        self._leases = {**self._leases, lease.queue: lease}

    def remove(self, lease: Lease) -> None:
        """Beat for an incarnation no more."""
        if self._leases.get(lease.queue) is lease:
            self._leases = {q: other for q, other in self._leases.items() if other is not lease}

    def beat_now(self) -> None:
        """Beat at once: somebody may want a job of this worker stopped.

        That word is only a hint: the beat's answer says which job. One that is lost costs a beat's
        time at most.
        """
        self._due.set()

    def _run(self) -> None:
        self._guard.keep_thread("beat", self._beat_forever, sleep=self._is_closing.wait)

    def _beat_forever(self) -> None:
        if self._is_closing.is_set():
            return
        beater = self._open_beater()
        try:
            wait_s = self._interval_s
            while not self._is_closing.is_set():
                self._due.wait(wait_s)
                self._due.clear()
                wait_s = self._interval_s
                if not self._is_closing.is_set() and self._loop_turns():
                    began_at = time.monotonic()
                    if self._beat_all(beater):
                        wait_s -= time.monotonic() - began_at
                    else:
                        wait_s /= REPEATED_SOONER
        finally:
            beater.close()

    def _loop_turns(self) -> bool:
        stalled_s = self._watch.stalled_s
        is_stalled = stalled_s > self._max_loop_stall_s
        if is_stalled and not self._is_stalled:
            self._emit(LoopStalled(worker=self._worker, stalled_s=stalled_s))
        self._is_stalled = is_stalled
        return not is_stalled

    def _beat_all(self, beater: Beater) -> bool:
        """Beat for all incarnations; whether each was answered."""
        answers = [self._beat(beater, lease) for lease in self._leases.values()]
        return all(answers)

    def _beat(self, beater: Beater, lease: Lease) -> bool:
        """Beat for one incarnation; whether that was answered."""
        sent_at = time.monotonic()
        try:
            reply = beater.beat(lease.queue, lease.incarnation)
        except StorageError:
            return False  # the fence comes when this goes on
        except Exception as error:  # the other incarnations' beats must not suffer
            self._guard.failed("beat", error, pause_s=self._interval_s)
            return True  # which another beat would not mend
        if not reply.is_gone:
            lease.acked_at = sent_at
        if reply.is_gone or reply.cancel_ids:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(lease.on_beat_reply, reply)
        return True
