"""What a worker does while its lifespan is open.

It wires the queues to the slots, threads, processes and beats that they share.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from msgspec.structs import replace

from headrace.app import App, declared_of, limits_of
from headrace.errors import StorageError
from headrace.events import Emit, SchedulerMissing, WorkerEnding, WorkerQuiet, WorkerStarted
from headrace.guard import Guard
from headrace.listening import listen
from headrace.release import VERSION
from headrace.scheduler.service import SchedulerService, is_hint
from headrace.storage.base import Channel, Storage, keeps_schedules
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.values import End
from headrace.task_limits import terms_texts
from headrace.worker.consumer import QueueConsumer
from headrace.worker.coverage import coverage, lanes_not_served, not_served, without_tasks
from headrace.worker.end_observer import EndObserver
from headrace.worker.execute import Executor
from headrace.worker.lanes import Lanes, open_lanes
from headrace.worker.limits import Limits
from headrace.worker.liveness import Liveness
from headrace.worker.outage import Outage
from headrace.worker.process_slots.functions import Function
from headrace.worker.stops import Stops
from headrace.worker.watch import LoopWatch


class Service:
    """The queues of a worker, and what they share.

    Args:
        app: the tasks.
        limits: the worker's.
        functions: by task name, where child processes find them.
        name: the worker's.
        version: what its user calls what it runs.
        is_burst: whether it ends when nothing is ready and nothing runs.
        fires: whether it fires schedules and stores those that the app declares.
        stops: what is asked for.
        emit: told what happens.
        guard: keeps its loops and threads alive.

    Attributes:
        watch: of the event loop, None before it has begun.
    """

    def __init__(
        self,
        app: App[Any],
        limits: Limits,
        functions: Mapping[str, Function],
        *,
        name: str,
        version: str,
        is_burst: bool,
        fires: bool,
        stops: Stops,
        emit: Emit,
        guard: Guard,
    ) -> None:
        self.watch: LoopWatch | None = None
        self._app = app
        self._limits = limits
        self._functions = functions
        self._name = name
        self._version = version
        self._is_burst = is_burst
        self._fires = fires
        self._scheduler: SchedulerService | None = None
        self._stops = stops
        self._emit = emit
        self._guard = guard
        self._consumers: list[QueueConsumer] = []
        self._executor: Executor | None = None
        self._coverage = coverage(app, limits.queues, limits.lanes.slots)

    @property
    def is_consuming(self) -> bool:
        """Whether each queue's last claim was answered."""
        return bool(self._consumers) and all(c.is_consuming for c in self._consumers)

    @property
    def active(self) -> int:
        """How many attempts run."""
        return sum(consumer.active for consumer in self._consumers)

    @property
    def stuck(self) -> int:
        """How many handlers go on although they were stopped and given up."""
        return 0 if self._executor is None else self._executor.stuck

    @property
    def put_back(self) -> int:
        """How many jobs were returned to their queues at the end."""
        return sum(consumer.put_back for consumer in self._consumers)

    def act(self) -> None:
        """Have the queues do what was asked for by now; in the loop, and safe to repeat."""
        for consumer in self._consumers:
            if self._stops.is_quiet:
                consumer.quiet()
            if self._stops.is_closing:
                consumer.close()
            if self._stops.count > 1:
                consumer.end_grace()
        if self._scheduler is not None and self._stops.is_closing:
            self._scheduler.stop()

    async def run(self, storage: Storage, state: Any) -> None:
        """Serve the queues until `Stops` says to end; ``state`` is what the lifespan yielded."""
        limits = self._limits
        watch = self.watch = LoopWatch(worker=self._name, emit=self._emit, guard=self._guard)
        interval_s = limits.lease_ms / 3000
        async with Liveness(
            lambda: storage.open_beater(timeout_s=min(interval_s, 5.0)),
            interval_s=interval_s,
            max_loop_stall_s=limits.loop_stall_s,
            watch=watch,
            worker=self._name,
            emit=self._emit,
            guard=self._guard,
        ) as liveness:
            self._emit(
                WorkerStarted(
                    worker=self._name,
                    queues=limits.queues,
                    concurrency=limits.concurrency,
                    process_slots=limits.lanes.processes,
                    lanes=dict(limits.lanes.slots),
                    tasks=sorted(self._app.tasks),
                )
            )
            for warning in without_tasks(self._name, self._coverage):
                self._emit(warning)
            async with open_lanes(
                self._app,
                limits,
                self._functions,
                name=self._name,
                state=state,
                emit=self._emit,
            ) as lanes:
                self._executor = lanes.executor
                await self._consume(storage, lanes, liveness)

    async def _consume(self, storage: Storage, lanes: Lanes, liveness: Liveness) -> None:
        limits = self._limits
        channel = storage.open_channel()
        info = worker_info(
            self._app,
            name=self._name,
            version=self._version,
            concurrency=limits.concurrency,
            process_slots=limits.lanes.processes,
            lanes=limits.lanes.slots,
            lease_ms=limits.lease_ms,
            channel=channel.name,
        )
        declared = limits_of(self._app)
        outage = Outage(self._emit)
        self._consumers = [
            QueueConsumer(
                storage,
                queue=queue,
                info=replace(info, limits=terms_texts(declared.get(queue, {}))),
                executor=lanes.executor,
                lanes=lanes.slots,
                liveness=liveness,
                grace_s=limits.grace_s,
                sweep_s=limits.sweep_s,
                emit=self._emit,
                guard=self._guard,
                outage=outage,
            )
            for queue in limits.queues
        ]
        self._scheduler = self._open_scheduler(storage, channel)
        end = EndObserver(limits, self._consumers, is_burst=self._is_burst)
        keep = self._guard.keep
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, channel, liveness)
            group.start_soon(self._warn_of_queues_left_out, storage)
            group.start_soon(keep, "quiet", self._notify_when_quiet)
            group.start_soon(keep, "limits", partial(end.observe, self._end))
            async with anyio.create_task_group() as queues:
                self.act()  # on what was asked for before they were there
                for consumer in self._consumers:
                    queues.start_soon(consumer.run)
                if self._scheduler is not None:
                    queues.start_soon(self._scheduler.run)
            group.cancel_scope.cancel()

    def _open_scheduler(self, storage: Storage, channel: Channel) -> SchedulerService | None:
        if not self._fires:
            return None
        if not keeps_schedules(storage):
            kind = type(storage).__name__
            self._emit(SchedulerMissing(worker=self._name, storage=kind))
            return None
        return SchedulerService(
            storage,
            declared_of(self._app),
            channel=channel.name,
            emit=self._emit,
            guard=self._guard,
        )

    async def _listen(self, channel: Channel, liveness: Liveness) -> None:
        def hear(message: End | None) -> None:
            if message is None or not is_hint(message):
                liveness.beat_now()
            if self._scheduler is not None:
                self._scheduler.hear(message)

        await listen(channel, hear, guard=self._guard)

    async def _warn_of_queues_left_out(self, storage: Storage) -> None:
        with suppress(StorageError):  # who claims will tell of it
            for warning in await not_served(self._name, self._coverage.left_out, storage):
                self._emit(warning)
            for lane in await lanes_not_served(self._name, self._coverage.lanes, storage):
                self._emit(lane)

    async def _notify_when_quiet(self) -> None:
        for consumer in self._consumers:
            await consumer.has_made_last_claim.wait()
        if self._stops.is_quiet:
            self._emit(WorkerQuiet(worker=self._name))

    def _end(self, cause: str) -> None:
        if not self._stops.is_closing:
            self._emit(WorkerEnding(worker=self._name, cause=cause))
            self._stops.stop()


def worker_info(
    app: App[Any],
    *,
    name: str,
    concurrency: int,
    process_slots: int,
    lanes: dict[str, int],
    lease_ms: int,
    version: str = "",
    channel: str = "",
) -> IncarnationInfo:
    """Return what a worker of this process says of itself; each incarnation adds its id."""
    return IncarnationInfo(
        incarnation="",
        name=name,
        host=socket.gethostname(),
        pid=os.getpid(),
        version=VERSION,
        app_version=version,
        concurrency=concurrency,
        process_slots=process_slots,
        lanes=lanes,
        tasks={name: task.settings.lane for name, task in app.tasks.items()},
        channel=channel,
        lease_ms=lease_ms,
        registered_ms=0,
    )
