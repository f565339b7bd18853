"""Process slots of a kit: in threads of the test's process, through the code of a child process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from headrace.context import Reporter
from headrace.outcome import Outcome
from headrace.task import Task
from headrace.worker.plan import Plan
from headrace.worker.process_slots.child import Handler, call_handler
from headrace.worker.process_slots.process import ASK_S
from headrace.worker.threads import Threads

Raised = Callable[[Plan, BaseException], None]
"""Takes what left a function: an outcome has only its text."""


class InnerSlots:
    """Runs the attempts of process tasks. Nothing kills a function that does not return.

    Args:
        tasks: by name.
        threads: where they run.
        raised: told the error of a function, in its thread.
    """

    def __init__(
        self, tasks: Mapping[str, Task[..., Any]], threads: Threads, *, raised: Raised
    ) -> None:
        self._tasks = tasks
        self._threads = threads
        self._raised = raised

    async def run(self, plan: Plan, reporter: Reporter, *, is_offered: bool) -> Outcome | None:
        """Run one attempt. One that is cancelled and returns soon has its own outcome, if any."""
        task = self._tasks[plan.job.task]
        outcomes: list[Outcome | None] = []
        has_ended = asyncio.Event()
        has_ended.set()

        def function(*args: Any, **kwargs: Any) -> Any:
            try:
                return task.function(*args, **kwargs)
            except BaseException as error:
                self._raised(plan, error)
                raise

        def call() -> None:
            outcomes.append(call_handler(Handler(function, task.signature), plan, reporter))

        try:
            await self._threads.run(call, on_leak=has_ended.clear, on_end=has_ended.set)
        except asyncio.CancelledError:
            with anyio.move_on_after(ASK_S):
                await has_ended.wait()
            if not outcomes:
                raise
        return outcomes[0]
