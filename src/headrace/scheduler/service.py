"""What a process does for schedules while it runs: as a part of a worker, or alone."""

from __future__ import annotations

import time

import anyio

from headrace.events import Emit
from headrace.guard import Guard
from headrace.outage import ClientOutage
from headrace.scheduled import Declared
from headrace.scheduler.loop import POLL_S, SchedulerLoop
from headrace.scheduler.releases import Releases
from headrace.scheduler.step import SchedulerStorage, Steps
from headrace.storage.values import End

LAST_STEP_S = 3.0
"""How long what it is at may take once it was stopped."""


def is_hint(message: End) -> bool:
    """Whether a message of a channel says that a schedule is due sooner; else it is about a job."""
    return not message.id and not message.queue


class SchedulerService:
    """Fires a tenant's schedules, and keeps those of an app as it declares them.

    Args:
        storage: where they are.
        declared: what the app declares; None: there is no app.
        channel: whose messages come to `hear`; "" for none.
        emit: told what happens.
        guard: keeps its loops alive.
        outage: told of steps that go unanswered, if somebody is to be.
        poll_s: seconds between two looks at most.
    """

    def __init__(
        self,
        storage: SchedulerStorage,
        declared: Declared | None,
        *,
        channel: str = "",
        emit: Emit,
        guard: Guard,
        outage: ClientOutage | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        steps = Steps(storage, channel=channel, emit=emit)
        self._loop = SchedulerLoop(steps, emit=emit, outage=outage, poll_s=poll_s)
        self._releases = None if declared is None else Releases(storage, declared, emit=emit)
        self._guard = guard
        self._ended = anyio.Event()

    @property
    def is_firing(self) -> bool:
        """Whether its last step was answered."""
        return self._loop.is_firing

    @property
    def stalled_s(self) -> float:
        """For how long it has not gone round; it does so every few seconds."""
        return time.monotonic() - self._loop.turned_at

    def wake(self) -> None:
        """Look now: something may be due sooner than was thought."""
        self._loop.wake()

    def hear(self, message: End | None) -> None:
        """Look now if a message says that a schedule is due sooner, or None that one may have."""
        if message is None or is_hint(message):
            self.wake()

    def stop(self) -> None:
        """Have `run` return soon; in the loop, and safe to repeat."""
        self._loop.stop()
        if self._releases is not None:
            self._releases.stop()
        self._ended.set()

    async def run(self) -> None:
        """Run until `stop`, whether or not the storage answers then."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._guard.keep, "schedules", self._loop.run)
            if self._releases is not None:
                group.start_soon(self._guard.keep, "releases", self._releases.run)
            await self._ended.wait()
            group.cancel_scope.deadline = anyio.current_time() + LAST_STEP_S
