"""A worker without loops: it claims when it is told to, until nothing is ready.

Incarnations and what runs their attempts are a worker's own; here is no loop that fetches, beats or
sweeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

import anyio
import msgspec

from headrace.app import App
from headrace.context import Context
from headrace.events import AttemptEnded, ClaimLost, Emit, WorkerEvent
from headrace.job import ClaimedJob
from headrace.middleware import CallNext
from headrace.outcome import Outcome
from headrace.storage.base import Storage
from headrace.storage.incarnations import ClaimReply
from headrace.storage.limits import BATCH_LIMIT
from headrace.testing.attempts import FinishedAttempt, read_attempt
from headrace.testing.incarnation import claim, close, open_incarnation
from headrace.testing.inner import InnerSlots
from headrace.worker.attempt import Attempt, Done, Follower, StopReason
from headrace.worker.execute import ChildError, Executor
from headrace.worker.incarnation import STOP_S, Incarnation
from headrace.worker.other_release import told_apart
from headrace.worker.plan import Plan
from headrace.worker.slots import Slot
from headrace.worker.strikes import KnownStrikes
from headrace.worker.threads import Threads

LOOK_S = 0.01
"""What handlers say of their progress while they run can be seen so soon."""

THREADS = 10_000
"""As many as attempts may run at once: whatever may start has a thread."""

Key = tuple[str, str, int]
"""An attempt: queue, job and number."""

Queues = Callable[[], Awaitable[Sequence[str]]]

Incarnations = dict[Incarnation, asyncio.AbstractEventLoop]

inside: ContextVar[KitWorker] = ContextVar("headrace_testing_worker")
"""The worker whose handler runs this code."""


class KitWorker:
    """Runs what is ready, from the first job to the last; an async context manager.

    The app's lifespan is entered before the first handler and left at the end. A worker that
    begins inside a handler of another uses that one's state.

    Args:
        app: the tasks.
        storage: where their jobs are.
        emit: told every worker event.
        incarnations: incarnations are listed here while they are held.
        state: the handlers' state; UNSET: what the lifespan yields.
        concurrency: attempts at once in a queue.
        limit: attempts in all.
    """

    def __init__(
        self,
        app: App[Any],
        storage: Storage,
        *,
        emit: Emit,
        incarnations: Incarnations,
        state: Any,
        concurrency: int = 1,
        limit: int,
    ) -> None:
        self.app: App[Any] = app
        self.is_open: bool = False
        self.state: Any = state
        self.finished: list[FinishedAttempt] = []
        self.due_in_ms: dict[str, int] = {}
        self._storage = storage
        self._emit = emit
        self._incarnations = incarnations
        self._concurrency = concurrency
        self._limit = limit
        self._started = 0
        self._served: dict[str, Incarnation] = {}
        self._stack = AsyncExitStack()
        self._executor: Executor | None = None
        self._threads: Threads | None = None
        self._raised: dict[Key, BaseException] = {}
        self._unrecorded: dict[Key, FinishedAttempt] = {}
        self._bell = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            for queue in list(self._served):
                await self._leave(queue)
        if self._threads is not None:
            self._threads.close()
        self.is_open = False
        await self._stack.__aexit__(kind, error, traceback)

    async def work_off(self, queues: Queues) -> int:
        """Run all that is ready now, queue by queue, and what that enqueues; return how many.

        Args:
            queues: names the queues; asked before each turn, since handlers use new ones.

        Raises:
            AssertionError: the limit is reached, and more is ready.
        """
        first = self._started
        before = -1
        while before != self._started:
            before = self._started
            for queue in await queues():
                await self._serve(queue)
        return self._started - first

    async def run_alone(self, job: ClaimedJob) -> FinishedAttempt:
        """Run the handler of a job that is in no storage."""
        await self._prepare()
        ended = asyncio.Event()
        attempt = self.start(job, lambda _attempt, _outcome: ended.set())
        try:
            await ended.wait()
        finally:
            if not ended.is_set():
                attempt.stop(StopReason.SHUTDOWN)
                with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_S):
                    await ended.wait()
        return self._unrecorded.pop((job.queue, job.id, job.claim.epoch))

    async def _serve(self, queue: str) -> None:
        """Claim from one queue, run and record, until nothing is ready there."""
        incarnation = self._served.get(queue)
        if incarnation is None:
            incarnation = self._served[queue] = await self._open(queue)
        while await self.step(incarnation):
            pass

    async def step(self, incarnation: Incarnation) -> bool:
        """Start what is ready, as far as there is room, and record the next that ends.

        False: nothing is ready, and nothing runs.
        """
        is_gone = await self._fill(incarnation)
        if incarnation.attempts or self._bell.is_set():
            await self._next_end(incarnation)
            return True
        if is_gone:
            # A real worker took it for dead: the next turn registers anew.
            await self._leave(incarnation.queue)
        return False

    async def _fill(self, incarnation: Incarnation) -> bool:
        """Start what is ready, as far as there is room; whether the incarnation is gone."""
        is_gone = False
        for lane in incarnation.lanes:
            free = max(0, min(self._concurrency - incarnation.held, BATCH_LIMIT))
            reply = await claim(incarnation, lane, free)
            self._note(incarnation.queue, reply)
            if reply.jobs:
                await self._prepare()
            for job in reply.jobs:
                incarnation.start(job, lane)
            is_gone = reply.is_gone
        return is_gone

    async def _next_end(self, incarnation: Incarnation) -> None:
        """Wait until an attempt has ended, and record it."""
        while not self._bell.is_set():
            with anyio.move_on_after(LOOK_S):
                await self._bell.wait()
            await incarnation.reports.report_once()
        self._bell.clear()
        await incarnation.record()

    async def _open(self, queue: str) -> Incarnation:
        incarnation = await open_incarnation(
            self.app,
            self._storage,
            queue,
            runner=self,
            emit=self._told,
        )
        self._incarnations[incarnation] = asyncio.get_running_loop()
        return incarnation

    async def _leave(self, queue: str) -> None:
        incarnation = self._served.pop(queue)
        try:
            await close(incarnation)
        finally:
            del self._incarnations[incarnation]

    def _note(self, queue: str, reply: ClaimReply) -> None:
        self.due_in_ms.pop(queue, None)
        if reply.next_due_ms is not None:
            self.due_in_ms[queue] = reply.next_due_ms
        if self._started + len(reply.jobs) > self._limit:
            last = ", ".join(attempt.task for attempt in self.finished[-3:])
            raise AssertionError(
                f"{self._limit:,} attempts ran and more are ready, one of {reply.jobs[0].task} "
                f"next, after {last}: does a job enqueue itself? Raise limit= if so many are meant"
            )
        self._started += len(reply.jobs)

    def start(
        self,
        job: ClaimedJob,
        done: Done,
        *,
        slot: Slot | None = None,
        follower: Follower | None = None,
        strikes: KnownStrikes | None = None,
    ) -> Attempt:
        """Start an attempt, and note how it ended before its incarnation hears of it."""
        assert self._executor is not None, "the lifespan was entered"  # noqa: S101

        def noted(attempt: Attempt, outcome: Outcome | None) -> None:
            self._ended(job, outcome)
            done(attempt, outcome)

        return self._executor.start(job, noted, slot=slot, follower=follower, strikes=strikes)

    async def _prepare(self) -> None:
        """Enter the lifespan, and have threads, before the first handler runs."""
        if self._executor is not None:
            return
        if self.state is msgspec.UNSET:
            self.state = await self._enter_lifespan()
        threads = self._threads = Threads(THREADS)
        self._executor = Executor(
            self.app.tasks,
            middleware=[self._around, *self.app.middlewares],
            hooks=self.app.hooks,
            state=self.state,
            emit=self._emit,
            threads=threads,
            processes=InnerSlots(self.app.tasks, threads, raised=self._function_raised),
            draw=lambda: 1.0,
            who=told_apart(self.app.release, "of the kit"),
        )

    async def _enter_lifespan(self) -> Any:
        outer = inside.get(None)
        if outer is not None and outer.is_open and outer.app is self.app:
            return outer.state
        if self.app.lifespan is None:
            return None
        return await self._stack.enter_async_context(self.app.lifespan())

    async def _around(self, context: Context[Any], call_next: CallNext) -> Any:
        """Keep what leaves a handler and its middleware: an outcome has only its text."""
        inside.set(self)
        try:
            return await call_next()
        except ChildError:
            raise  # the function's own error is known
        except BaseException as error:
            self._raised[context.queue, context.job_id, context.start] = error
            raise

    def _function_raised(self, plan: Plan, error: BaseException) -> None:
        job = plan.job
        self._raised[job.queue, job.id, job.claim.epoch] = error

    def _ended(self, job: ClaimedJob, outcome: Outcome | None) -> None:
        key = (job.queue, job.id, job.claim.epoch)
        raised = self._raised.pop(key, None)
        if outcome is not None:
            self._unrecorded[key] = read_attempt(self.app, job, outcome, raised)
        self._bell.set()

    def _told(self, event: WorkerEvent) -> None:
        self._emit(event)
        if isinstance(event, AttemptEnded | ClaimLost):
            attempt = self._unrecorded.pop((event.queue, event.job_id, event.start))
            if isinstance(event, AttemptEnded):
                self.finished.append(attempt)
