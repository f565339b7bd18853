"""What workers told, kept for a test to look at and to wait for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TypeVar

from headrace.clock import Duration, duration_ms
from headrace.events import AttemptEnded, WorkerEvent

E = TypeVar("E", bound=WorkerEvent)


class EventLog:
    """Keeps every worker event; pass it as ``emit=`` of a `Worker`, or take `Kit.events`.

    Attributes:
        events: all of them, in order.
    """

    def __init__(self) -> None:
        self.events: list[WorkerEvent] = []
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    def __call__(self, event: WorkerEvent) -> None:
        """Take an event, from any thread."""
        self.events.append(event)
        for loop, bell in list(self._waiting):
            with suppress(RuntimeError):  # its loop was closed
                loop.call_soon_threadsafe(bell.set)

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one type so far, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def finished(self, job_id: str) -> list[AttemptEnded]:
        """Return the recorded outcomes of one job so far, in order."""
        return [event for event in self.of(AttemptEnded) if event.job_id == job_id]

    async def wait(self, kind: type[E], count: int = 1, *, within: Duration = 10.0) -> list[E]:
        """Wait until there are ``count`` events of a type; return all of that type.

        Args:
            kind: the type.
            count: how many, default 1; those before the call count too.
            within: real seconds, default 10.

        Raises:
            AssertionError: they did not come in time.
        """
        waiting = (asyncio.get_running_loop(), asyncio.Event())
        self._waiting.add(waiting)
        try:
            async with asyncio.timeout(duration_ms(within, name="within") / 1000):
                while len(self.of(kind)) < count:
                    waiting[1].clear()
                    await waiting[1].wait()
        except TimeoutError:
            raise AssertionError(
                f"{len(self.of(kind))} {kind.__name__} of {count} came within {within} s, "
                f"among {self.events}"
            ) from None
        finally:
            self._waiting.discard(waiting)
        return self.of(kind)
