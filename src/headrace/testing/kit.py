"""The kit: an app's own tasks and code on a storage and a time that belong to a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from datetime import datetime
from types import TracebackType
from typing import Any, Self, Unpack

import msgspec

from headrace.app import App
from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption, UsageError
from headrace.handle import JobHandle
from headrace.job import DEFAULT_QUEUE, Claim, ClaimedJob, Job, check_name, new_job_id
from headrace.settings import check_count
from headrace.testing.attempts import FinishedAttempt, raise_first
from headrace.testing.clock import ManualClock
from headrace.testing.enqueued import EnqueuedJob, JobFilter, Pattern, Wanted, pattern_of
from headrace.testing.events import EventLog
from headrace.testing.simulation import LIMIT, Simulation
from headrace.twin import AppTwin, app_of
from headrace.views.jobs import JobEvent

SHOWN = 20
"""Most jobs that a failed assertion lists."""


class Kit:
    """An app in a test: ``async with Kit(app) as kit:`` or, without a loop, ``with Kit(app)``.

    While the block runs, the app is on an empty storage in memory that nobody else uses, and whose
    time stands still until the test moves it. Everything of the app works: what enqueues, waits,
    cancels or looks at queues needs no change. Afterwards the app is on its own storage again.

    Jobs run when the test says so (`run_until_idle`), or when code waits for one: then the kit
    runs what is ready, and moves its time on while nothing is. Handlers run as in a worker: in the
    test's own event loop, or in threads, where tasks with ``executor="process"`` run too. Their
    ``timeout`` counts real seconds.

    Args:
        app: the app, or a `SyncApp`, which may be connected elsewhere; it rests there meanwhile.
        inline: run every job, and what it enqueues, before ``enqueue`` returns; an error of a
            handler is raised there, and its job waits for its retry. Default False.
        state: what handlers get as ``context.state``; default: what the app's lifespan yields,
            entered for each run as a worker does.
        clock: the time, default a `ManualClock` that starts now.
        events: takes the worker events, default an `EventLog` of its own.
        schedules: whether the schedules that the app declares are there at the block's begin.
            Default True. Those that the test stores itself are fired either way.

    Raises:
        UsageError: at the block's begin, if the app is in a kit already.
        AppImportError: there too, if a module that the app includes can't be imported.

    Attributes:
        app: the app.
        clock: the time.
        events: the worker events of what ran.
    """

    def __init__(
        self,
        app: App[Any] | AppTwin[Any],
        *,
        inline: bool = False,
        state: Any = msgspec.UNSET,
        clock: ManualClock | None = None,
        events: EventLog | None = None,
        schedules: bool = True,
    ) -> None:
        app = app_of(app)
        if not isinstance(app, App):
            raise InvalidOption(f"{app!r} is no App")
        self.app: App[Any] = app
        self.clock: ManualClock = ManualClock() if clock is None else clock
        self.events: EventLog = EventLog() if events is None else events
        self._is_inline = inline
        self._state = state
        self._declares = schedules
        self._current: Simulation | None = None
        self._stack = ExitStack()

    def __repr__(self) -> str:
        return f"<Kit of {self.app!r} at {self.now.isoformat()}>"

    @property
    def now(self) -> datetime:
        """The time, as an aware `datetime` in UTC: what ``run_at`` is best counted from."""
        return self.clock.now

    def __enter__(self) -> Self:
        self.app.load()
        with ExitStack() as stack:
            simulation = Simulation(
                self.app,
                clock=self.clock,
                events=self.events,
                state=self._state,
                is_inline=self._is_inline,
            )
            stack.callback(simulation.storage.close)
            if self._declares:
                simulation.schedules.declare()
            stack.enter_context(simulation.in_use())
            self._stack = stack.pop_all()
        self._current = simulation
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._current = None
        self._stack.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.app.aclose()
        finally:
            self.__exit__(kind, error, traceback)

    @property
    def _simulation(self) -> Simulation:
        if self._current is None:
            raise UsageError("this kit is not in use: work with it inside of `async with Kit(app)`")
        return self._current

    # Running

    async def run_until_idle(
        self,
        *,
        queues: Iterable[str] | None = None,
        concurrency: int = 1,
        advance: bool = False,
        raise_errors: bool = False,
        limit: int = LIMIT,
    ) -> list[FinishedAttempt]:
        """Run all jobs that are ready, and those that they enqueue, until none is.

        Queues take turns in the order of their names; inside one the order is a worker's, with the
        jobs of process tasks after the others. Retries
        and delayed jobs wait for their time. A retry waits as long as its policy allows, without
        the usual randomness.

        Args:
            queues: only these, default all that have jobs of the app's tasks.
            concurrency: attempts at once in a queue, 1 to 10,000, default 1.
            advance: when nothing is ready, move the clock to the next due time and go on, until no
                job is left to run. What schedules bring in on the way runs too; that they will
                bring more in is no job that is left. Default False.
            raise_errors: in the end raise the first error of a handler. Default False.
            limit: most attempts, and most instants at which schedules fall due, default 10,000.

        Returns:
            The attempts whose outcomes were recorded, in that order.

        Raises:
            AssertionError: the limit is reached and more is ready, as of jobs that enqueue
                themselves, or would be soon.
        """
        finished = await self._simulation.run(
            queues=None if queues is None else [check_name(name, what="queue") for name in queues],
            concurrency=check_count(concurrency, name="concurrency", most=10_000),
            limit=check_count(limit, name="limit", most=10_000_000),
            advances=advance,
        )
        if raise_errors:
            raise_first(finished)
        return finished

    async def perform(self, job: Job, *, start: int = 1) -> Any:
        """Run the handler of ``task.job(...)`` once, here and now, and return its result.

        Arguments and result are encoded, decoded and validated, and middleware, time limit and
        `Context` are as in a worker. The job itself is not stored.

        Args:
            job: what to run.
            start: which start of its job it is to take itself for, from 1; those before failed.

        Raises:
            Exception: what the handler raised.
            TimeoutError: it took longer than its ``timeout``.
            InvalidArguments: the handler was not called, since an argument is missing or unknown.
            JobFailed: it was not, since one is not of its type, or its result can't be stored.
            UnknownTask: the app has no such task.
        """
        number = check_count(start, name="start", most=1_000_000)
        claimed = ClaimedJob(
            id=job.id,
            queue=job.queue,
            task=job.task,
            payload=job.payload,
            claim=Claim(number, f"perform/{new_job_id()}"),
            failures=number - 1,
            stalls=0,
            created_ms=self.clock(),
            waited_ms=0,
            options=job.options,
        )
        async with self._simulation.worker() as worker:
            finished = await worker.run_alone(claimed)
        if finished.error is not None:
            raise finished.error
        return finished.result

    # Time

    async def advance(self, duration: Duration, *, limit: int = LIMIT) -> None:
        """Move the clock on by seconds or a `timedelta`; nothing runs before it is told to.

        Delayed jobs and retries fall due, results and records end, and workers that died are
        found once they were silent for their lease. Schedules are fired, one occurrence after the
        other, each at its instant. In inline mode its job runs at that instant, and the first error
        of a handler is raised in the end.

        Moved by ``clock.advance``, time passes as if no scheduler ran: the next call of the kit
        finds what has fallen due, and fires what each schedule's ``catch_up`` asks for.

        Args:
            duration: how far, 0 to ten years.
            limit: most instants at which schedules fall due, default 10,000.

        Raises:
            InvalidOption: it is negative or over ten years.
            AssertionError: the limit is reached and more fall due, as of a schedule of each second
                in a year; the clock stands at the last of them.
        """
        await self._simulation.advance(
            duration_ms(duration, name="duration"),
            limit=check_count(limit, name="limit", most=10_000_000),
        )

    async def crash(
        self, queue: str = DEFAULT_QUEUE, *, jobs: int = 1, lease: Duration = 15.0
    ) -> list[JobHandle[Any]]:
        """Let a worker claim the next jobs of a queue and die without a word.

        They stay ``active`` until `advance` has reached the end of the lease; then they are ready
        again, with one stall more.

        Args:
            queue: the queue, default ``default``.
            jobs: how many at most, 1 to 500, default 1.
            lease: how long the worker may be silent, 0.5 seconds to an hour, default 15 seconds.

        Returns:
            The handles of what it claimed.

        Raises:
            UsageError: no job is ready.
        """
        claimed = await self._simulation.dead.crash(
            check_name(queue, what="queue"),
            jobs=check_count(jobs, name="jobs", most=500),
            lease=lease,
        )
        known = self.app.tasks
        return [self.app.job(job.id, queue=job.queue, task=known.get(job.task)) for job in claimed]

    # What was enqueued

    def enqueued(
        self,
        wanted: Wanted | None = None,
        arguments: Mapping[str, object] | None = None,
        **filters: Unpack[JobFilter],
    ) -> list[EnqueuedJob]:
        """Return the jobs that were stored since the kit began, in order, run or not.

        Duplicates, which store nothing, are not among them.

        Args:
            wanted: a task or its name; or a job from ``task.job(...)``, which matches its queue,
                *all* its arguments, and those options that it says. None: any.
            arguments: some of the arguments, by name, as the handler gets them; others don't
                matter. Values are compared with ``==``, so matchers such as ``mock.ANY`` work.
            **filters: only with exactly this ``queue``, ``id``, ``priority``, ``delay`` (seconds or
                a `timedelta`) or ``run_at`` (an aware `datetime`); only those that the schedule
                with this id brought in (``schedule``), for this instant of it (``occurrence``).

        Raises:
            InvalidArguments: the task has no parameter of that name.
            InvalidOption: a value can't be what it stands for.
        """
        pattern = pattern_of(self.app, wanted, arguments, **filters)
        return self._matching(pattern)

    def assert_enqueued(
        self,
        wanted: Wanted | None = None,
        arguments: Mapping[str, object] | None = None,
        *,
        count: int | None = 1,
        **filters: Unpack[JobFilter],
    ) -> list[EnqueuedJob]:
        """Assert that such jobs were enqueued, and return them; see `enqueued`.

        Args:
            wanted: as for `enqueued`.
            arguments: as for `enqueued`.
            count: how many, default exactly one; None: one or more.
            **filters: as for `enqueued`.

        Raises:
            AssertionError: there are more or fewer; the message lists what was enqueued.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        pattern = pattern_of(self.app, wanted, arguments, **filters)
        found = self._matching(pattern)
        if not found if count is None else len(found) != count:
            expected = "one or more" if count is None else str(count)
            raise AssertionError(self._difference(pattern, expected, len(found)))
        return found

    def assert_not_enqueued(
        self,
        wanted: Wanted | None = None,
        arguments: Mapping[str, object] | None = None,
        **filters: Unpack[JobFilter],
    ) -> None:
        """Assert that no such job was enqueued; say as little as will do. See `enqueued`.

        Raises:
            AssertionError: there is one; the message lists what was enqueued.
        """
        __tracebackhide__ = True
        self.assert_enqueued(wanted, arguments, count=0, **filters)

    def _matching(self, pattern: Pattern) -> list[EnqueuedJob]:
        return [job for job in self._simulation.enqueued if pattern.matches(job)]

    def _difference(self, pattern: Pattern, expected: str, found: int) -> str:
        jobs = self._simulation.enqueued
        lines = [f"expected {expected} like {pattern}, found {found}"]
        lines.append("enqueued were:" if jobs else "nothing was enqueued")
        lines += [f"  {'*' if pattern.matches(job) else '-'} {job}" for job in jobs[:SHOWN]]
        if len(jobs) > SHOWN:
            lines.append(f"  and {len(jobs) - SHOWN:,} more")
        return "\n".join(lines)

    async def job_events(self) -> list[JobEvent]:
        """Return the transitions of jobs that the storage keeps of all queues, by time.

        Transitions of one instant in different queues are in the order of the queues' names.
        """
        simulation = self._simulation
        found = []
        for queue in await simulation.storage.queues():
            of_queue = self.app.queue(queue).events()
            found += [event async for event in of_queue if event.kind.is_of_job]
        return sorted(found, key=lambda event: event.at)
