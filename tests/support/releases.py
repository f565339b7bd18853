"""Several releases of a program on one storage, whose clock is set by hand."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from headrace import App
from headrace.app import clients_of
from headrace.testing import EventLog, ManualClock
from headrace.testing.attempts import FinishedAttempt
from headrace.testing.storage import KitStorage
from headrace.testing.worker import KitWorker
from tests.support.openings import opening


class Releases:
    """What a rolling deploy brings together.

    Args:
        apps: the releases. Each enqueues as usual; its worker runs when it is told to.
    """

    def __init__(self, *apps: App[Any]) -> None:
        self.clock = ManualClock()
        self.storage = KitStorage(
            tenant=apps[0].tenant,
            clock=self.clock,
            stored=lambda _job, _occurrence: None,
            stopping=lambda _queue, _ids: None,
        )
        self._apps = apps
        self._stack = ExitStack()
        for app in apps:
            self._stack.enter_context(clients_of(app).replaced(opening(lambda: self.storage)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for app in self._apps:
            await app.aclose()
        self._stack.close()
        self.storage.close()

    async def work(self, app: App[Any], *queues: str) -> list[str]:
        """Let a worker of one release run all that is ready, and return what the attempts came to.

        A result stands for ``completed``. By default the worker serves all queues.
        """

        async def served() -> Sequence[str]:
            return queues or await self.storage.queues()

        worker = KitWorker(
            app, self.storage, emit=EventLog(), incarnations={}, state=None, limit=100
        )
        async with worker:
            await worker.work_off(served)
        return [_told(attempt) for attempt in worker.finished]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(seconds)


def _told(attempt: FinishedAttempt) -> str:
    return str(attempt.result) if attempt.outcome == "completed" else attempt.outcome
