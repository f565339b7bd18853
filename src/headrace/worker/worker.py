"""The worker: wires its queues to the slots, threads, processes and beats that they share."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from headrace.app import App
from headrace.clock import Duration
from headrace.errors import LifespanTimeout
from headrace.events import (
    Emit,
    WorkerEnding,
    WorkerQuiet,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from headrace.guard import Guard
from headrace.job import DEFAULT_LANE, PROCESS_LANE, check_text
from headrace.logs import configured, log_events, unfailing
from headrace.release import VERSION
from headrace.repeat import repeat_until_answered
from headrace.storage.base import Channel, Storage
from headrace.storage.values import IncarnationInfo
from headrace.worker.cause import sole_cause
from headrace.worker.consumer import QueueConsumer
from headrace.worker.execute import Executor
from headrace.worker.lifespan import Lifespan
from headrace.worker.limits import check_emit, check_limits, process_functions, queue_weights
from headrace.worker.liveness import Liveness
from headrace.worker.memory import resident_bytes
from headrace.worker.slots import Slots
from headrace.worker.threads import Threads
from headrace.worker.watch import LoopWatch

if TYPE_CHECKING:
    from headrace.worker.process_slots.processes import Processes

STARTUP_RETRY_S = 10.0
LOOK_S = 0.05


class Worker:
    """Runs the jobs of some queues in this process, until it is stopped.

    Args:
        app: the tasks, and where the jobs are.
        queues: names with weights, or names of equal weight; default: the queues of the app's
            tasks. While several have jobs, free slots go to them in proportion to their weights, 1
            to 1,000.
        concurrency: attempts at once in the event loop and in threads, 1 to 10,000, default 100.
        threads: plain functions at once, 1 to 10,000, default ``concurrency``. With fewer, some
            attempts wait for a thread, and their timeout counts.
        process_slots: attempts at once of tasks with ``executor="process"``, 0 to 1,000, default
            the number of processors. 0 leaves such jobs to other workers.
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
        burst: end when nothing is ready and nothing runs; what is due later is left. Default no.
        name: shown to operators, default ``host:pid``.
        emit: called with every worker event, default: warnings and errors to structlog.

    Raises:
        UsageError: there is no queue to serve, or a process can't import a task's function.
        InvalidOption: a value is out of bounds.
    """

    def __init__(
        self,
        app: App[Any],
        queues: Mapping[str, int] | Sequence[str] | None = None,
        *,
        concurrency: int = 100,
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
        name: str | None = None,
        emit: Emit | None = None,
    ) -> None:
        self._app = app
        self._functions = process_functions(app)
        self._limits = check_limits(
            queue_weights(app, queues),
            has_process_tasks=bool(self._functions),
            concurrency=concurrency,
            threads=threads,
            process_slots=process_slots,
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
        self._is_burst = burst
        own_name = f"{socket.gethostname()}:{os.getpid()}"
        self.name: str = check_text(own_name if name is None else name, what="worker name")
        told = check_emit(emit)
        self._emit = unfailing(log_events("warning") if told is None else told)
        self._guard = Guard(self._emit)
        self._lifespan = Lifespan(
            app.lifespan,
            worker=self.name,
            start_s=self._limits.start_s,
            end_s=self._limits.end_s,
            emit=self._emit,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_quiet = False
        self._stops = 0
        self._stops_seen = 0  # that the lifespan's end need not heed
        self._has_told = False
        self._consumers: list[QueueConsumer] = []
        self._executor: Executor | None = None
        self._watch: LoopWatch | None = None

    @property
    def app(self) -> App[Any]:
        """The app whose tasks it runs."""
        return self._app

    @property
    def queues(self) -> dict[str, int]:
        """The queues that it serves, with their weights."""
        return dict(self._limits.queues)

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
        return (
            not self._is_closing
            and self._guard.is_whole
            and bool(self._consumers)
            and all(consumer.is_consuming for consumer in self._consumers)
        )

    @property
    def is_alive(self) -> bool:
        """Whether the event loop turns: it has answered within ``max_loop_stall``."""
        return self._watch is None or self._watch.stalled_s <= self._limits.loop_stall_s

    @property
    def loop_lag(self) -> float:
        """How late the event loop was when it was last asked, twice a second, in seconds."""
        return 0.0 if self._watch is None else self._watch.lag_s

    @property
    def active(self) -> int:
        """How many attempts run."""
        return sum(consumer.active for consumer in self._consumers)

    @property
    def stuck(self) -> int:
        """How many handlers go on although they were stopped and given up."""
        return 0 if self._executor is None else self._executor.stuck

    def quiet(self) -> None:
        """Claim no more, but go on running and beating until `stop`.

        May be called in any thread, in a signal handler, and before `run`.
        """
        self._is_quiet = True
        self._heed_soon()

    def stop(self) -> None:
        """Claim no more, give running jobs the grace, then hand back the rest and end.

        A second call ends the grace: what runs is cancelled and handed back now. While the app's
        lifespan starts the first call cancels that, while it ends the second one does. May be
        called in any thread, in a signal handler, and before `run`.
        """
        self._stops += 1
        self._heed_soon()

    @property
    def _is_closing(self) -> bool:
        return self._stops > 0

    def _heed_soon(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # it was closed: the worker has ended
                self._loop.call_soon_threadsafe(self._heed)

    def _heed(self) -> None:
        """Have everybody do what was asked for by now; in the loop, and safe to repeat."""
        for consumer in self._consumers:
            if self._is_quiet:
                consumer.quiet()
            if self._stops:
                consumer.close()
            if self._stops > 1:
                consumer.end_grace()
        if self._stops > self._stops_seen:
            self._lifespan.cut()
        if self._stops and not self._has_told:
            self._has_told = True
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
        self._loop = asyncio.get_running_loop()
        self._heed()  # what was said before
        try:
            with sole_cause():
                await self._run()
        finally:
            self._loop = None
        put_back = sum(consumer.put_back for consumer in self._consumers)
        self._emit(WorkerStopped(worker=self.name, put_back=put_back, stuck=self.stuck))

    async def _run(self) -> None:
        storage = self._app.open_storage()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(storage.aclose)
            await self._connect(storage)
            if self._is_closing:
                return
            # What handlers and the lifespan enqueue goes through the app's own client.
            await stack.enter_async_context(self._app)
            try:
                state = await stack.enter_async_context(self._lifespan)
            except LifespanTimeout:
                if self._stops:
                    return  # which has cut it
                raise
            try:
                await self._serve(storage, state)
            finally:
                self._stops_seen = max(1, self._stops)

    async def _connect(self, storage: Storage) -> None:
        await repeat_until_answered(
            storage.check, is_over=lambda: self._is_closing, for_s=STARTUP_RETRY_S
        )

    async def _serve(self, storage: Storage, state: Any) -> None:
        limits = self._limits
        watch = self._watch = LoopWatch(worker=self.name, emit=self._emit, guard=self._guard)
        interval_s = limits.lease_ms / 3000
        liveness = Liveness(
            lambda: storage.open_beater(timeout_s=min(interval_s, 5.0)),
            interval_s=interval_s,
            max_loop_stall_s=limits.loop_stall_s,
            stalled_s=lambda: watch.stalled_s,
            worker=self.name,
            emit=self._emit,
            guard=self._guard,
        )
        watch.start()
        liveness.start()
        self._emit(
            WorkerStarted(
                worker=self.name,
                queues=limits.queues,
                concurrency=limits.concurrency,
                process_slots=limits.process_slots,
                tasks=len(self._app.tasks),
            )
        )
        try:
            await self._serve_lanes(storage, state, liveness)
        finally:
            liveness.stop()
            watch.stop()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(liveness.join, 1.0)
                await anyio.to_thread.run_sync(watch.join, 1.0)

    async def _serve_lanes(self, storage: Storage, state: Any, liveness: Liveness) -> None:
        limits = self._limits
        lanes = {DEFAULT_LANE: Slots(limits.concurrency, limits.queues)}
        threads = Threads(limits.threads)
        processes = None
        if limits.process_slots:
            lanes[PROCESS_LANE] = Slots(limits.process_slots, limits.queues, free=0)
            processes = self._processes(offer=lanes[PROCESS_LANE].release)
        for slots in lanes.values():
            slots.begin()
        executor = self._executor = Executor(
            self._app.tasks,
            middleware=self._app.middlewares,
            state=state,
            emit=self._emit,
            threads=threads,
            processes=processes,
        )
        try:
            async with anyio.create_task_group() as group:
                if processes is not None:
                    group.start_soon(processes.serve)
                try:
                    await self._consume(storage, executor, lanes, liveness)
                finally:
                    if processes is not None:
                        processes.close()
        finally:
            threads.close()

    def _processes(self, *, offer: Callable[[], None]) -> Processes:
        # A worker without them need not have the 1 MB that multiprocessing takes.
        from headrace.worker.process_slots.child import ChildSettings
        from headrace.worker.process_slots.processes import Processes

        return Processes(
            self._limits.process_slots,
            self._functions,
            settings=ChildSettings(
                parent=os.getpid(),
                codec=self._app.codec,
                memory_limit_bytes=self._limits.process_memory_bytes,
                logging=configured(),
            ),
            wear=self._limits.wear,
            offer=offer,
            emit=self._emit,
        )

    async def _consume(
        self, storage: Storage, executor: Executor, lanes: Mapping[str, Slots], liveness: Liveness
    ) -> None:
        limits = self._limits
        channel = storage.open_channel()
        info = IncarnationInfo(
            incarnation="",
            name=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=VERSION,
            concurrency=limits.concurrency,
            process_slots=limits.process_slots,
            tasks={name: task.settings.lane for name, task in self._app.tasks.items()},
            channel=channel.name,
            lease_ms=limits.lease_ms,
            registered_ms=0,
        )
        self._consumers = [
            QueueConsumer(
                storage,
                queue=queue,
                info=info,
                executor=executor,
                lanes=lanes,
                liveness=liveness,
                grace_s=limits.grace_s,
                sweep_s=limits.sweep_s,
                emit=self._emit,
                guard=self._guard,
            )
            for queue in limits.queues
        ]
        keep = self._guard.keep
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, channel, liveness)
            group.start_soon(keep, "quiet", self._notify_when_quiet)
            if self._limits.has_end or self._is_burst:
                group.start_soon(keep, "limits", self._end_by_itself)
            async with anyio.create_task_group() as queues:
                self._heed()  # what was said before they were there
                for consumer in self._consumers:
                    queues.start_soon(consumer.run)
            group.cancel_scope.cancel()

    async def _listen(self, channel: Channel, liveness: Liveness) -> None:
        try:
            await self._guard.keep("control", partial(liveness.listen, channel))
        finally:
            with anyio.CancelScope(shield=True):
                await channel.aclose()

    async def _notify_when_quiet(self) -> None:
        for consumer in self._consumers:
            await consumer.has_made_last_claim.wait()
        if self._is_quiet:
            self._emit(WorkerQuiet(worker=self.name))

    async def _end_by_itself(self) -> None:
        """Stop when a limit is reached, or in a burst when there is nothing left to do."""
        started_at = time.monotonic()
        while not self._is_closing:
            await anyio.sleep(LOOK_S)
            cause = self._cause_to_end(time.monotonic() - started_at)
            if cause:
                self._emit(WorkerEnding(worker=self.name, cause=cause))
                self.stop()

    def _cause_to_end(self, age_s: float) -> str:
        limits = self._limits
        ended = sum(consumer.ended for consumer in self._consumers)
        if limits.max_jobs and ended >= limits.max_jobs:
            return f"it ran {ended} attempts"
        if limits.max_lifetime_s and age_s >= limits.max_lifetime_s:
            return f"it has run for {age_s:.0f} s"
        if limits.max_resident_bytes and (size := resident_bytes()) > limits.max_resident_bytes:
            return f"it has {size:,} bytes of memory"
        if self._is_burst:
            if all(consumer.has_nothing for consumer in self._consumers):
                return "there is nothing left to do"
            for consumer in self._consumers:
                consumer.look_again()
        return ""
