"""Makes one step of a scheduler after another, and sleeps while nothing is due."""

from __future__ import annotations

import asyncio
import time

import anyio

from headrace.backoff import Backoff
from headrace.errors import StorageError, StorageFull
from headrace.events import Emit
from headrace.outage import ClientOutage
from headrace.repeat import repeat_until_answered
from headrace.scheduler.hold_up import HoldUp
from headrace.scheduler.step import Steps

POLL_S = 1.0
"""Time between two looks at most: what wakes a scheduler is only a hint, and may be lost."""


class SchedulerLoop:
    """Fires what is due, until it is stopped.

    Args:
        steps: what it does again and again.
        emit: told once that the storage has no room.
        outage: told of steps that go unanswered, if somebody is to be.
        poll_s: seconds between two looks at most.

    Attributes:
        is_firing: whether the last step was answered.
        turned_at: when the loop has gone round last, by the monotonic clock.
    """

    def __init__(
        self,
        steps: Steps,
        *,
        emit: Emit,
        outage: ClientOutage | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        self._steps = steps
        self._hold_up = HoldUp(emit)
        self._outage = outage
        self._poll_s = poll_s
        self._awake = asyncio.Event()
        self._is_over = False
        self.is_firing: bool = False
        self.turned_at: float = time.monotonic()

    def wake(self) -> None:
        """Look now: something may be due sooner than was thought."""
        self._awake.set()

    def stop(self) -> None:
        """Have `run` return after the step that it is at."""
        self._is_over = True
        self._awake.set()

    async def run(self) -> None:
        """Step and sleep until `stop`, however long the storage is away or full.

        Raises:
            StorageError: it can't be used; this may be called again.
        """
        backoff = Backoff()
        try:
            while not self._is_over:
                self._awake.clear()
                self.turned_at = time.monotonic()
                try:
                    next_ms = await self._step()
                except StorageFull as error:
                    self._hold_up.begins(error)
                    await self._sleep(backoff.next_s())
                    continue
                self._hold_up.ends()
                backoff.reset()
                if next_ms != 0:
                    due_s = self._poll_s if next_ms is None else next_ms / 1000
                    await self._sleep(min(due_s, self._poll_s))
        finally:
            self.is_firing = False

    async def _step(self) -> int | None:
        outage = self._outage
        next_ms = await repeat_until_answered(
            self._steps.step,
            is_over=lambda: self._is_over,
            on_failure=self._note_failure,
            on_pause=(lambda _error, _pause_s: None) if outage is None else outage.waits,
            pause=self._sleep,
        )
        if outage is not None:
            outage.ended()
        self.is_firing = True
        return next_ms

    def _note_failure(self, _error: StorageError) -> None:
        self.is_firing = False
        self.turned_at = time.monotonic()
        self._awake.clear()

    async def _sleep(self, seconds: float) -> None:
        """Wait to be woken, for so long at most."""
        if not self._is_over:
            with anyio.move_on_after(seconds):
                await self._awake.wait()
