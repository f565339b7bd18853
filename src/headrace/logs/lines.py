"""Worker events as log lines: fixed names and fields, never arguments, results or secrets."""

from __future__ import annotations

import inspect
import logging
import threading
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from headrace.description import told
from headrace.errors import InvalidOption
from headrace.events import (
    AttemptEnded,
    AttemptStarted,
    ClaimLost,
    Emit,
    HandlerStuck,
    HookFailed,
    JobsReconciled,
    LaneNotServed,
    LifespanOverdue,
    LoopBlocked,
    LoopFailed,
    LoopStalled,
    MessageDropped,
    ProcessEnded,
    ProcessFailed,
    QueueFenced,
    QueueNotServed,
    QueueRepaired,
    QueueWithoutTasks,
    ScheduleConflict,
    ScheduleFailed,
    ScheduleFired,
    SchedulerMissing,
    SchedulerStarted,
    SchedulerStopped,
    SchedulesHeldUp,
    ScheduleSkipped,
    SchedulesSynced,
    StorageLost,
    StorageRecovered,
    StorageWaiting,
    WorkerEnding,
    WorkerEvent,
    WorkerQuiet,
    WorkerReaped,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from headrace.logs.log import BELOW, find_log, write_line
from headrace.plain import encodable, one_line, printable, shown

NAMES: dict[type[msgspec.Struct], tuple[str, int]] = {
    WorkerStarted: ("worker.started", logging.INFO),
    QueueWithoutTasks: ("queue.without_tasks", logging.WARNING),
    QueueNotServed: ("queue.not_served", logging.WARNING),
    LaneNotServed: ("queue.lane_not_served", logging.WARNING),
    WorkerStopping: ("worker.stopping", logging.INFO),
    WorkerEnding: ("worker.ending", logging.INFO),
    WorkerQuiet: ("worker.quiet", logging.INFO),
    WorkerStopped: ("worker.stopped", logging.INFO),
    AttemptStarted: ("attempt.started", logging.DEBUG),
    ClaimLost: ("attempt.claim_lost", logging.WARNING),
    QueueFenced: ("queue.fenced", logging.WARNING),
    WorkerReaped: ("worker.reaped", logging.WARNING),
    JobsReconciled: ("queue.reconciled", logging.WARNING),
    QueueRepaired: ("queue.repaired", logging.WARNING),
    StorageLost: ("storage.lost", logging.WARNING),
    StorageRecovered: ("storage.recovered", logging.WARNING),
    StorageWaiting: ("storage.waiting", logging.WARNING),
    LoopStalled: ("worker.loop_stalled", logging.ERROR),
    LoopFailed: ("worker.loop_failed", logging.ERROR),
    MessageDropped: ("channel.message_dropped", logging.WARNING),
    LoopBlocked: ("worker.loop_blocked", logging.WARNING),
    ProcessEnded: ("process.ended", logging.INFO),
    ProcessFailed: ("process.failed", logging.ERROR),
    HandlerStuck: ("handler.stuck", logging.ERROR),
    HookFailed: ("hook.failed", logging.ERROR),
    LifespanOverdue: ("lifespan.overdue", logging.ERROR),
    SchedulerStarted: ("scheduler.started", logging.INFO),
    SchedulerStopped: ("scheduler.stopped", logging.INFO),
    SchedulerMissing: ("scheduler.missing", logging.WARNING),
    ScheduleFired: ("schedule.fired", logging.DEBUG),
    ScheduleSkipped: ("schedule.skipped", logging.INFO),
    ScheduleFailed: ("schedule.failed", logging.ERROR),
    ScheduleConflict: ("schedule.conflict", logging.WARNING),
    SchedulesSynced: ("schedules.synced", logging.INFO),
    SchedulesHeldUp: ("schedules.held_up", logging.WARNING),
}
"""The name and level of each event but `AttemptEnded`."""

ENDS: dict[str, tuple[str, int]] = {
    "completed": ("job.completed", logging.INFO),
    "cancelled": ("job.cancelled", logging.INFO),
    "failed": ("job.failed", logging.ERROR),
    "retrying": ("attempt.retrying", logging.WARNING),
    "snoozed": ("attempt.snoozed", logging.INFO),
    "put_back": ("attempt.put_back", logging.WARNING),
    "stalled": ("attempt.stalled", logging.WARNING),
    "struck": ("attempt.struck", logging.INFO),
}
"""The name and level of `AttemptEnded` by its outcome: ``job.`` where the job has ended with it."""


MOST_PARTS = 20
"""Names of queues or tasks in one line."""


def log_events() -> Emit:
    """Return what logs worker events, as the program's logging is set up by now.

    What its level leaves out costs one look at the level.
    """
    log = find_log()

    def emit(event: WorkerEvent) -> None:
        if isinstance(event, AttemptEnded):
            name, level = ENDS[event.outcome]
        else:
            name, level = NAMES[type(event)]
        if log.is_on(level):
            log.write(level, name, _fields(event))

    return emit


def emitter(emit: Emit | None) -> Emit:
    """Return what a worker or scheduler tells its events to: ``emit``, else the log; unfailing.

    Raises:
        InvalidOption: it is no plain function.
    """
    if emit is None:
        return unfailing(log_events())
    if not callable(emit) or inspect.iscoroutinefunction(emit):
        raise InvalidOption(f"emit={shown(emit)}: pass a plain function that takes an event")
    return unfailing(emit)


def unfailing(emit: Emit) -> Emit:
    """Return ``emit`` as a worker calls it: what it raises loses that event, and nothing else.

    The first time it is logged as ``worker.emit_failed``.
    """
    first = threading.Lock()  # taken by the first failure, in whichever thread, and kept

    def emit_safely(event: WorkerEvent) -> None:
        try:
            emit(event)
        except BaseException as error:  # a user's code, where an attempt or the worker must end
            if first.acquire(blocking=False):
                with suppress(BaseException):
                    write_line(
                        logging.ERROR,
                        "worker.emit_failed",
                        lost=type(event).__name__,
                        error=one_line(told(error)),
                    )

    return emit_safely


def _fields(event: WorkerEvent) -> dict[str, Any]:
    fields = {}
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, str):
            if not value:
                continue
            value = _clean(name, value)
        elif isinstance(value, list | dict):
            value = _short(value)
        fields[name] = value
    if isinstance(event, AttemptEnded):
        del fields["outcome"]  # the line's name says it
        if not event.retry_in_ms:
            del fields["retry_in_ms"]
    return fields


def _short(values: list[str] | dict[str, int]) -> list[str] | dict[str, int]:
    """Return a list or mapping with its first parts only, if it is long, and how many are left."""
    left = len(values) - MOST_PARTS
    if left <= 0:
        return values
    if isinstance(values, dict):
        return {**dict(islice(values.items(), MOST_PARTS)), "…": left}
    return [*values[:MOST_PARTS], f"… and {left} more"]


def _clean(name: str, text: str) -> str:
    """Return a field that no terminal obeys, and that is one line but for a stack or traceback."""
    return encodable(printable(text)) if name in BELOW else one_line(text)
