"""Watches the event loop from a thread: how late it is, and what it runs while it stands still."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from contextlib import suppress
from types import FrameType

from headrace.description import without_runners
from headrace.events import Emit, LoopBlocked
from headrace.guard import Guard
from headrace.job import ClaimedJob
from headrace.worker.execute import job_of

INTERVAL_S = 0.5
BLOCKED_S = 0.5
STACK_LIMIT = 4_000


class LoopWatch:
    """Asks the running loop for a sign of life, again and again.

    Args:
        worker: the worker's name.
        emit: told once of every time that the loop stood still for half a second.
        guard: keeps the thread alive.
        interval_s: time between two questions.
    """

    def __init__(
        self, *, worker: str, emit: Emit, guard: Guard, interval_s: float = INTERVAL_S
    ) -> None:
        self._worker = worker
        self._emit = emit
        self._guard = guard
        self._interval_s = interval_s
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._asked_at = 0.0
        self._answered = threading.Event()
        self._answered.set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-watch", daemon=True)
        self.lag_s: float = 0.0

    @property
    def stalled_s(self) -> float:
        """How long the loop has owed an answer, 0 if it owes none."""
        return 0.0 if self._answered.is_set() else time.monotonic() - self._asked_at

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self._answered.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to be gone."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        self._guard.keep_thread("watch", self._ask_forever, sleep=self._ended.wait)

    def _ask_forever(self) -> None:
        while not self._ended.wait(self._interval_s):
            self._asked_at = time.monotonic()
            self._answered.clear()
            if self._ended.is_set():
                return  # `stop` has just said so, and would not again
            try:
                self._loop.call_soon_threadsafe(self._answer)
            except RuntimeError:
                return  # the loop was closed
            if not self._answered.wait(BLOCKED_S):
                self._report()
                self._answered.wait()

    def _answer(self) -> None:
        self.lag_s = time.monotonic() - self._asked_at
        self._answered.set()

    def _report(self) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 (documented in sys)
        stack, job = ("", None) if frame is None else _what_runs(frame)
        blocked_ms = round((time.monotonic() - self._asked_at) * 1000)
        self._emit(
            LoopBlocked(
                worker=self._worker,
                blocked_ms=blocked_ms,
                stack=stack[-STACK_LIMIT:],
                job_id=job.id if job else "",
                task=job.task if job else "",
                queue=job.queue if job else "",
            )
        )


def _what_runs(frame: FrameType) -> tuple[str, ClaimedJob | None]:
    """Return the calls that lead to a frame, and the job whose handler is among them.

    Then the calls begin with the handler, else with the thread's own.
    """
    calls: list[tuple[FrameType, int]] = []
    job = None
    for caller, line in traceback.walk_stack(frame):
        job = job_of(caller)
        if job is not None:
            break
        calls.append((caller, line))
    stack = ""
    with suppress(Exception):  # a module's own loader is asked for its source
        frames = without_runners(traceback.StackSummary.extract(reversed(calls)))
        stack = "".join(traceback.format_list(frames))
    return stack, job
