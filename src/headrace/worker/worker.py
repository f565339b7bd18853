"""The worker as its users see it: what it takes, how it is, and its way from start to end."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from headrace.app import App, clients_of
from headrace.clock import Duration
from headrace.errors import LifespanTimeout
from headrace.events import (
    Emit,
    WorkerStopped,
    WorkerStopping,
)
from headrace.guard import Guard
from headrace.job import check_text
from headrace.logs.lines import emitter
from headrace.outage import ClientOutage, connect
from headrace.twin import AppTwin, app_of
from headrace.worker.cause import sole_cause
from headrace.worker.lane_slots import Lanes, check_fit, lane_slots
from headrace.worker.lifespan import Lifespan
from headrace.worker.limits import check_limits, process_functions, queue_weights
from headrace.worker.service import Service
from headrace.worker.stops import Stops


class Worker:
    """Runs the jobs of some queues in this process, until it is stopped.

    Args:
        app: the tasks, and where the jobs are.
        queues: names with weights, or names of equal weight; default: the queues of the app's
            tasks. While several have jobs, free slots go to them in proportion to their weights, 1
            to 1,000.
        concurrency: attempts at once in the event loop and in threads, 1 to 10,000, default 100.
        lanes: which kinds of slots it has, by name, and how many of each, 1 to 10,000; None, or
            names alone: ``concurrency``. A lane that is not named is left to other workers, as is
            what tasks need. Default: ``default``, and ``process`` if a task has it.
        threads: plain functions at once, 1 to 10,000, default as many as attempts. With fewer, some
            attempts wait for a thread, and their timeout counts.
        process_slots: attempts at once of tasks with ``executor="process"``, 0 to 1,000, default
            the number of processors. 0 leaves such jobs to other workers. Not where ``lanes`` says
            how many ``process`` has.
        process_max_jobs: jobs after which a slot's process is replaced, default never.
        process_max_memory: bytes of resident memory over which it is replaced after a job, default
            never.
        process_memory_limit: bytes of address space that it can't go beyond; what does not fit is
            a `MemoryError` in the handler. Default without limit.
        lease: how long the worker may be silent before others take its jobs, 0.5 seconds to an
            hour, default 15 seconds. It beats three times in it.
        shutdown_timeout: how long running jobs may go on once it was asked to stop, default 25
            seconds; then they go back to the head of the queue, free of charge.
        sweep_interval: time between looks for dead workers, default 5 seconds.
        max_loop_stall: how long the event loop may stand still before the worker gives its jobs up,
            default four leases.
        startup_timeout: how long the app's lifespan may take to start, up to ten years, default 5
            minutes.
        teardown_timeout: how long it may take to end, default 10 seconds. Over either limit it is
            cancelled, and `run` raises `LifespanTimeout`.
        max_jobs: end, as by `stop`, after about so many attempts, default never.
        max_memory: end when this process has more bytes of resident memory, default never.
        max_lifetime: end after this long, default never.
        burst: end when nothing is ready and nothing runs; what is due later is left, and no
            schedule is fired. Default no.
        scheduler: fire the schedules of the tenant when they are due, and store those that the app
            declares, beside running jobs. Any number of workers may. Default yes.
        name: shown to operators, default ``host:pid``.
        version: what you call what it runs, such as a commit, default the app's ``release``. The
            list of workers and the events of its queues tell it; it decides nothing.
        emit: called with every worker event, default: to the logger ``headrace`` of `logging`.

    Raises:
        UsageError: there is no queue to serve, a process can't import a task's function, or an
            annotation of one names what is nowhere defined.
        AppImportError: a module that the app includes can't be imported.
        InvalidOption: a value is out of bounds.
    """

    def __init__(
        self,
        app: App[Any] | AppTwin[Any],
        queues: Mapping[str, int] | Sequence[str] | None = None,
        *,
        concurrency: int = 100,
        lanes: Lanes | None = None,
        threads: int | None = None,
        process_slots: int | None = None,
        process_max_jobs: int | None = None,
        process_max_memory: int | None = None,
        process_memory_limit: int | None = None,
        lease: Duration = 15.0,
        shutdown_timeout: Duration = 25.0,
        sweep_interval: Duration = 5.0,
        max_loop_stall: Duration | None = None,
        startup_timeout: Duration = 300.0,
        teardown_timeout: Duration = 10.0,
        max_jobs: int | None = None,
        max_memory: int | None = None,
        max_lifetime: Duration | None = None,
        burst: bool = False,
        scheduler: bool = True,
        name: str | None = None,
        version: str | None = None,
        emit: Emit | None = None,
    ) -> None:
        app = app_of(app)
        app.load()
        self._app = app
        self._functions = process_functions(app)
        self._limits = check_limits(
            queue_weights(app, queues),
            lane_slots(app, lanes, concurrency=concurrency, process_slots=process_slots),
            threads=threads,
            process_max_jobs=process_max_jobs,
            process_max_memory=process_max_memory,
            process_memory_limit=process_memory_limit,
            lease=lease,
            shutdown_timeout=shutdown_timeout,
            sweep_interval=sweep_interval,
            max_loop_stall=max_loop_stall,
            startup_timeout=startup_timeout,
            teardown_timeout=teardown_timeout,
            max_jobs=max_jobs,
            max_memory=max_memory,
            max_lifetime=max_lifetime,
        )
        check_fit(app, self._limits.queues, self._limits.lanes.slots)
        own_name = f"{socket.gethostname()}:{os.getpid()}"
        self.name: str = check_text(own_name if name is None else name, what="worker name")
        own_version = app.release or "" if version is None else check_text(version, what="version")
        self._emit = emitter(emit)
        self._guard = Guard(self._emit)
        self._lifespan = Lifespan(
            app.lifespan,
            worker=self.name,
            start_s=self._limits.start_s,
            end_s=self._limits.end_s,
            emit=self._emit,
        )
        self._stops = Stops(self._act)
        self._is_stopping = False
        self._service = Service(
            app,
            self._limits,
            self._functions,
            name=self.name,
            version=own_version,
            is_burst=burst,
            fires=scheduler and not burst,
            stops=self._stops,
            emit=self._emit,
            guard=self._guard,
        )

    @property
    def app(self) -> App[Any]:
        """The app whose tasks it runs."""
        return self._app

    @property
    def queues(self) -> dict[str, int]:
        """The queues that it serves, with their weights."""
        return dict(self._limits.queues)

    @property
    def lanes(self) -> dict[str, int]:
        """The lanes that it serves, with their slots."""
        return dict(self._limits.lanes.slots)

    @property
    def concurrency(self) -> int:
        """How many attempts run at once in the event loop and in threads."""
        return self._limits.concurrency

    @property
    def is_ready(self) -> bool:
        """Whether it can consume.

        Each queue's last claim was answered, all that works in the background does, and it is not
        stopping.
        """
        return not self._stops.is_closing and self._guard.is_whole and self._service.is_consuming

    @property
    def is_alive(self) -> bool:
        """Whether the event loop turns: it has answered within ``max_loop_stall``."""
        watch = self._service.watch
        return watch is None or watch.stalled_s <= self._limits.loop_stall_s

    @property
    def loop_lag(self) -> float:
        """How late the event loop was when it was last asked, twice a second, in seconds."""
        watch = self._service.watch
        return 0.0 if watch is None else watch.lag_s

    @property
    def active(self) -> int:
        """How many attempts run."""
        return self._service.active

    @property
    def stuck(self) -> int:
        """How many handlers go on although they were stopped and given up."""
        return self._service.stuck

    def quiet(self) -> None:
        """Claim no more, but go on running and beating until `stop`.

        May be called in any thread, in a signal handler, and before `run`.
        """
        self._stops.quiet()

    def stop(self) -> None:
        """Claim no more, give running jobs the grace, then put back the rest and end.

        A second call ends the grace: what runs is cancelled and put back now. While the app's
        lifespan starts the first call cancels that, while it ends the second one does. May be
        called in any thread, in a signal handler, and before `run`.
        """
        self._stops.stop()

    def _act(self) -> None:
        """Have everybody do what was asked for by now."""
        self._service.act()
        if self._stops.is_pressing:
            self._lifespan.cut()
        if self._stops.is_closing and not self._is_stopping:
            self._is_stopping = True
            self._emit(
                WorkerStopping(worker=self.name, active=self.active, grace_s=self._limits.grace_s)
            )

    async def run(self) -> None:
        """Run until `stop`; one call a worker.

        Raises:
            LifespanTimeout: the app's lifespan did not start or end in time.
            StorageUnavailable: the storage could not be reached for ten seconds at the start.
            StorageRefused: it can't be used, at the start or any more.
            StorageFault: it failed, and nothing that it says can be relied on.
        """
        with self._stops.listening(), sole_cause():
            await self._run()
        put_back = self._service.put_back
        self._emit(WorkerStopped(worker=self.name, put_back=put_back, stuck=self.stuck))

    async def _run(self) -> None:
        storage = clients_of(self._app).open_storage()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(storage.aclose)
            outage = ClientOutage(self._emit)
            await connect(storage.check, outage, is_over=lambda: self._stops.is_closing)
            if self._stops.is_closing:
                return
            # What handlers and the lifespan enqueue goes through the app's own client.
            await stack.enter_async_context(self._app)
            try:
                state = await stack.enter_async_context(self._lifespan)
            except LifespanTimeout:
                if self._stops.count:
                    return  # which has cut it
                raise
            try:
                await self._service.run(storage, state)
            finally:
                self._stops.acted_on()
