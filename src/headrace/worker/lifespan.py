"""The two ends of an app's lifespan: a user's code, which must not hold the worker for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar

from headrace.errors import LifespanTimeout
from headrace.events import Emit, LifespanOverdue
from headrace.lifespan import manager_of

T = TypeVar("T")

UNWIND_S = 5.0
"""How long an end may take to unwind once it was cancelled; then it is told to be stuck."""


class Lifespan:
    """Enters and leaves what the app's lifespan makes, as ``async with`` does, with limits.

    What is over its limit is cancelled. One that swallows that, or blocks the event loop, can't be
    ended from here: an event tells it, from a thread, and the command line ends the process.

    Args:
        make: makes the context manager; None: there is none.
        worker: the worker's name, for events.
        start_s: how long the start may take.
        end_s: how long the end may take.
        emit: told of an end that is over its limit.
    """

    def __init__(
        self,
        make: Callable[[], AbstractAsyncContextManager[Any]] | None,
        *,
        worker: str,
        start_s: float,
        end_s: float,
        emit: Emit,
    ) -> None:
        self._make = make
        self._worker = worker
        self._limits_s = {"start": start_s, "end": end_s}
        self._emit = emit
        self._manager: AbstractAsyncContextManager[Any] | None = None
        self._timeout: asyncio.Timeout | None = None
        self._alarm: threading.Timer | None = None
        self._phase = "start"
        self._is_cut = False

    def cut(self) -> None:
        """Cancel the start or the end if one of them is going on."""
        if self._timeout is not None and not self._timeout.expired():
            self._is_cut = True
            self._timeout.reschedule(asyncio.get_running_loop().time())
            self._set_alarm(UNWIND_S)

    async def __aenter__(self) -> Any:
        """Return what the lifespan yields, None if there is none.

        Raises:
            LifespanTimeout: it took longer than its limit, or was cut.
            UsageError: what is made is no context manager.
        """
        if self._make is None:
            return None
        self._manager = manager_of(self._make)
        return await self._bounded("start", self._manager.__aenter__())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if self._manager is None:
            return None
        return await self._bounded("end", self._manager.__aexit__(kind, error, traceback))

    async def _bounded(self, phase: str, call: Coroutine[Any, Any, T]) -> T:
        self._phase = phase
        limit_s = self._limits_s[phase]
        self._set_alarm(limit_s + UNWIND_S)
        try:
            # Not a cancel scope: the lifespan may open one that ends in the other phase.
            async with asyncio.timeout(limit_s) as self._timeout:
                return await call
        except TimeoutError as error:
            if self._timeout is None or not self._timeout.expired():
                raise  # one of its own
            if not (self._is_cut and phase == "start"):  # which was of no use any more
                self._report_overdue(is_stuck=False)
            raise LifespanTimeout(self._what()) from error
        finally:
            self._timeout = None
            self._set_alarm(None)

    def _set_alarm(self, after_s: float | None) -> None:
        """Replace the thread that tells when even the cancellation has not helped."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = None
        if after_s is not None:
            self._alarm = threading.Timer(after_s, self._report_overdue, kwargs={"is_stuck": True})
            self._alarm.daemon = True
            self._alarm.start()

    def _what(self) -> str:
        if self._is_cut:
            return f"the lifespan's {self._phase} was cancelled, since the worker was to end now"
        return f"the lifespan's {self._phase} took longer than {self._limits_s[self._phase]:g} s"

    def _report_overdue(self, *, is_stuck: bool) -> None:
        error = f"{self._what()}{', and it goes on' if is_stuck else ''}"
        self._emit(LifespanOverdue(worker=self._worker, error=error, is_stuck=is_stuck))
