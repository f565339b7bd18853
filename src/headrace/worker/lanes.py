"""What attempts run on: the slots of each lane, threads and processes."""

from __future__ import annotations

import os
import pickle
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from headrace.app import App
from headrace.events import Emit
from headrace.job import PROCESS_LANE
from headrace.logs import setup
from headrace.worker.execute import Executor
from headrace.worker.limits import Limits
from headrace.worker.other_release import told_apart
from headrace.worker.process_slots.functions import Function
from headrace.worker.slots import Slots
from headrace.worker.threads import Threads

if TYPE_CHECKING:
    from headrace.worker.process_slots.processes import Processes


class Lanes(msgspec.Struct, frozen=True):
    """The slots of a worker by lane, and what runs the attempts that hold them."""

    slots: dict[str, Slots]
    executor: Executor


@asynccontextmanager
async def open_lanes(
    app: App[Any],
    limits: Limits,
    functions: Mapping[str, Function],
    *,
    name: str,
    state: Any,
    emit: Emit,
) -> AsyncIterator[Lanes]:
    """Keep threads and processes for a worker's attempts; none is left afterwards.

    Args:
        app: the tasks.
        limits: the worker's.
        functions: by task name, where child processes find them.
        name: the worker's.
        state: what the lifespan yielded.
        emit: told of processes that end and handlers that don't.
    """
    slots = {
        # A process comes free once it is ready.
        lane: Slots(count, limits.queues, free=0 if lane == PROCESS_LANE else None)
        for lane, count in limits.lanes.slots.items()
    }
    threads = Threads(limits.threads)
    processes = None
    if limits.lanes.processes:
        offered = slots.get(PROCESS_LANE)
        offer = offered.release if offered is not None else _keep
        processes = _processes(app, limits, functions, offer=offer, emit=emit)
    for shared in slots.values():
        shared.begin()
    executor = Executor(
        app.tasks,
        middleware=app.middlewares,
        hooks=app.hooks,
        state=state,
        emit=emit,
        threads=threads,
        processes=processes,
        lanes=slots.keys(),
        who=told_apart(app.release, name),
    )
    try:
        async with anyio.create_task_group() as group:
            if processes is not None:
                group.start_soon(processes.serve)
            try:
                yield Lanes(slots, executor)
            finally:
                if processes is not None:
                    processes.close()
    finally:
        threads.close()


def _keep() -> None:
    """Offer a process to nobody: only jobs of other lanes run in one."""


def _processes(
    app: App[Any],
    limits: Limits,
    functions: Mapping[str, Function],
    *,
    offer: Callable[[], None],
    emit: Emit,
) -> Processes:
    # A worker without them need not have the 1 MB that multiprocessing takes.
    from headrace.worker.process_slots.child import ChildSettings
    from headrace.worker.process_slots.processes import Processes

    return Processes(
        limits.lanes.processes,
        functions,
        settings=ChildSettings(
            parent=os.getpid(),
            codec=pickle.dumps(app.codec),
            validating=frozenset(name for name in functions if app.tasks[name].settings.validate),
            memory_limit_bytes=limits.process_memory_bytes,
            logging=setup.done(),
        ),
        wear=limits.wear,
        offer=offer,
        emit=emit,
    )
