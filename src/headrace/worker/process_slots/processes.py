"""The process slots of a worker: each has a warm child, and is replaced when that dies or is worn.

A slot is offered to the queues only while its child is idle and ready.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping

import anyio

from headrace.backoff import Backoff
from headrace.context import Reporter
from headrace.errors import UsageError
from headrace.events import Emit, ProcessEnded, ProcessFailed
from headrace.job import ErrorInfo
from headrace.outcome import Outcome, Stalled
from headrace.worker.limits import Wear
from headrace.worker.plan import Plan
from headrace.worker.process_slots.child import ChildSettings
from headrace.worker.process_slots.functions import Function
from headrace.worker.process_slots.process import ChildDied, SlotProcess

LEAST_LIFE_S = 5.0
"""A child that ran a job or was ready for this long is replaced at once, else after a pause."""


class Processes:
    """A number of slots, each with one child process after another.

    Args:
        count: how many.
        functions: by task name, where a child finds them.
        settings: for the children.
        wear: when they are replaced.
        offer: called when a slot can take a job.
        emit: told when a child ends or can't be started.
    """

    def __init__(
        self,
        count: int,
        functions: Mapping[str, Function],
        *,
        settings: ChildSettings,
        wear: Wear,
        offer: Callable[[], None],
        emit: Emit,
    ) -> None:
        self.count: int = count
        self._functions = functions
        self._settings = settings
        self._wear = wear
        self._offer = offer
        self._emit = emit
        self._idle: asyncio.Queue[SlotProcess] = asyncio.Queue()
        self._scope = anyio.CancelScope(shield=True)
        self._owed = 0  # children that were taken without an offer, or wait to be

    async def serve(self) -> None:
        """Keep a child in every slot until `close`; then none is left.

        A cancellation waits for that too: the attempts must be stopped first, or the end of their
        children would be charged to them.
        """
        with self._scope:
            async with anyio.create_task_group() as group:
                for _ in range(self.count):
                    group.start_soon(self._keep_slot)

    def close(self) -> None:
        """End all children."""
        self._scope.cancel()

    async def run(self, plan: Plan, reporter: Reporter, *, is_offered: bool) -> Outcome | None:
        """Run one attempt in the next idle child; None: its function has heeded a stop.

        A child that dies charges a stall to the job that it had begun, and to no other. When this
        is cancelled the child is asked to stop and then killed, and is gone when this returns.

        Args:
            plan: of the attempt.
            reporter: hears from the handler.
            is_offered: whether the job was claimed for a slot that `offer` told of.
        """
        if not is_offered:
            self._owed += 1
        while True:
            child = await self._next()
            try:
                reply = await child.run(plan, reporter)
            except ChildDied as death:
                if death.had_begun:
                    return Stalled(ErrorInfo("ProcessDied", str(death), "", plan.job.claim.epoch))
                self._owed += 1  # the next one is for this job
            else:
                return reply.outcome
            finally:
                self._ran(child)

    async def _next(self) -> SlotProcess:
        try:
            while True:
                child = await self._idle.get()
                if not child.is_dead:
                    child.is_busy = True
                    return child
        except asyncio.CancelledError:
            self._available()
            raise

    def _ran(self, child: SlotProcess) -> None:
        if child.is_dead:
            return  # its slot sees to it
        cause = self._wear.is_over(child.jobs, child.resident_bytes)
        if cause:
            child.retire(cause)
        else:
            child.is_busy = False
            self._idle.put_nowait(child)
            self._available()

    def _available(self) -> None:
        if self._owed:
            self._owed -= 1
        else:
            self._offer()

    async def _keep_slot(self) -> None:
        """Hold one child after another. One that dies idle leaves its offer to the next."""
        backoff = Backoff()
        is_offered = False
        while True:
            child = SlotProcess(self._functions, self._settings)
            warm_at = math.inf
            try:
                await child.warm()
                warm_at = time.monotonic()
                self._idle.put_nowait(child)
                if not is_offered:
                    self._available()
                cause = await child.retired()
                is_offered = not child.is_busy
                self._emit(ProcessEnded(pid=child.pid, cause=cause, jobs=child.jobs))
            except UsageError:
                raise
            except Exception as error:  # no room for another process, or what its imports raise
                self._emit(ProcessFailed(error=str(error)))
            finally:
                with anyio.CancelScope(shield=True):
                    await child.aclose()
            if child.jobs or time.monotonic() - warm_at > LEAST_LIFE_S:
                backoff.reset()
            else:
                await backoff.pause()
