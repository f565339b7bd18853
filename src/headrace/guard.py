"""Keeps what works in the background alive: loops and threads whose death nobody would see.

One that ends with an error says so and starts again after a pause. Until it has run for a moment it
counts as down, so that a worker which lacks one is not ready.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

from headrace.backoff import LONGEST_S, Backoff
from headrace.description import told
from headrace.events import Emit, LoopFailed, MessageDropped, WorkerEvent
from headrace.logs.lines import log_events

SETTLED_S = 1.0
"""How long a loop that was started again must run before it counts as up."""


def log(event: WorkerEvent) -> None:
    """Log what happened in the background of a program that has no ``emit`` for it."""
    log_events()(event)


class Guard:
    """Runs loops until they return.

    Args:
        emit: told of each failure, in the loop's own thread; default: to the log.
    """

    def __init__(self, emit: Emit = log) -> None:
        self._emit = emit
        self._down: dict[str, float] = {}

    @property
    def is_whole(self) -> bool:
        """Whether no loop is down. Read from any thread."""
        now = time.monotonic()
        return all(until <= now for until in list(self._down.values()))

    async def keep(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Run a loop until it returns."""
        backoff = Backoff()
        while True:
            began_at = time.monotonic()
            try:
                return await loop()
            except Exception as error:  # whatever it was, a dead loop would go unseen
                pause_s = self._pause_s(backoff, began_at)
                self.failed(name, error, pause_s=pause_s)
            await anyio.sleep(pause_s)

    def keep_thread(
        self, name: str, loop: Callable[[], None], *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        """Do the same in this thread.

        Args:
            name: the loop's.
            loop: what runs.
            sleep: waits for so many seconds, or less when the loop is to end: it is started again,
                and returns.
        """
        backoff = Backoff()
        while True:
            began_at = time.monotonic()
            try:
                return loop()
            except Exception as error:  # likewise
                pause_s = self._pause_s(backoff, began_at)
                self.failed(name, error, pause_s=pause_s)
            sleep(pause_s)

    def failed(self, name: str, error: Exception, *, pause_s: float = 0.0) -> None:
        """Say that a loop, or one turn of it, has failed: it is down for now."""
        self._down[name] = time.monotonic() + pause_s + SETTLED_S
        # It can't be told where its own teller fails.
        with suppress(Exception):
            self._emit(LoopFailed(loop=name, error=told(error)))

    def _pause_s(self, backoff: Backoff, began_at: float) -> float:
        if time.monotonic() - began_at > LONGEST_S:
            backoff.reset()
        return backoff.next_s()


class Drops:
    """Counts the messages of a channel that nobody can read, and says so once.

    Args:
        channel: its name.
    """

    def __init__(self, channel: str) -> None:
        self.count: int = 0
        self._channel = channel

    def drop(self, error: Exception) -> None:
        """Note one; of the error only its type is told, since its text may quote the message."""
        self.count += 1
        if self.count == 1:
            with suppress(Exception):
                log(MessageDropped(channel=self._channel, error=type(error).__name__))
