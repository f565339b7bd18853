"""Beats from a thread of its own, so that a handler that blocks the loop keeps its worker's lease.

A loop that has not turned for too long is no worker any more: then the beats stop, loudly, and
others take the jobs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from headrace.errors import StorageError
from headrace.events import Emit, LoopStalled
from headrace.guard import Guard
from headrace.storage.base import Beater
from headrace.worker.incarnation import Incarnation

REPEATED_SOONER = 10
"""How many times sooner than the next beat one is repeated that was not answered: there is time for
one or two more before the fence."""


class Beats:
    """The beat thread of a worker.

    Args:
        open_beater: opens the synchronous side of the storage, in the thread.
        interval_s: time between beats of an incarnation.
        max_loop_stall_s: how long the loop may stand still before beats stop.
        stalled_s: how long the loop has stood still.
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
        stalled_s: Callable[[], float],
        worker: str,
        emit: Emit,
        guard: Guard,
    ) -> None:
        self._open_beater = open_beater
        self._interval_s = interval_s
        self._max_loop_stall_s = max_loop_stall_s
        self._stalled_s = stalled_s
        self._worker = worker
        self._emit = emit
        self._guard = guard
        self._incarnations: dict[str, Incarnation] = {}
        self._is_stalled = False
        self._is_closing = threading.Event()
        self._due = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="headrace-beat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def beat_now(self) -> None:
        """Beat now, out of turn: somebody asks for a job to be stopped."""
        self._due.set()

    def add(self, incarnation: Incarnation) -> None:
        """Beat for an incarnation from now on, in place of an earlier one of its queue."""
        self._incarnations = {**self._incarnations, incarnation.queue: incarnation}

    def remove(self, incarnation: Incarnation) -> None:
        """Beat for an incarnation no more."""
        if self._incarnations.get(incarnation.queue) is incarnation:
            self._incarnations = {
                q: s for q, s in self._incarnations.items() if s is not incarnation
            }

    def stop(self) -> None:
        """End the thread; it may take one call's time-out to be gone."""
        self._is_closing.set()
        self._due.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to be gone."""
        self._thread.join(timeout_s)

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
        stalled_s = self._stalled_s()
        is_stalled = stalled_s > self._max_loop_stall_s
        if is_stalled and not self._is_stalled:
            self._emit(LoopStalled(worker=self._worker, stalled_s=stalled_s))
        self._is_stalled = is_stalled
        return not is_stalled

    def _beat_all(self, beater: Beater) -> bool:
        """Beat for all incarnations; whether each was answered."""
        answers = [self._beat(beater, incarnation) for incarnation in self._incarnations.values()]
        return all(answers)

    def _beat(self, beater: Beater, incarnation: Incarnation) -> bool:
        """Beat for one incarnation; whether that was answered."""
        sent_at = time.monotonic()
        try:
            reply = beater.beat(incarnation.queue, incarnation.id)
        except StorageError:
            return False  # the incarnation fences itself when this goes on
        except Exception as error:  # the other incarnations' beats must not suffer
            self._guard.failed("beat", error, pause_s=self._interval_s)
            return True  # which another beat would not mend
        if not reply.is_gone:
            incarnation.acked_at = sent_at
        if reply.is_gone or reply.cancel_ids:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(incarnation.on_beat_reply, reply)
        return True
