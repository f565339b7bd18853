"""What happened, as values: job events that the storage keeps, and worker events of this process.

A `Worker` calls its ``emit`` with worker events, `headrace.Queue.events` yields job events. Nothing
here logs; `headrace.logs` subscribes.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.events.jobs import EventRecord, JobEventKind
from headrace.events.schedules import (
    ScheduleConflict,
    ScheduleFailed,
    ScheduleFired,
    SchedulerMissing,
    SchedulerStarted,
    SchedulerStopped,
    SchedulesHeldUp,
    ScheduleSkipped,
    SchedulesSynced,
)
from headrace.events.workers import (
    AttemptEnded,
    AttemptStarted,
    ClaimLost,
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
    StorageLost,
    StorageRecovered,
    StorageWaiting,
    WorkerEnding,
    WorkerQuiet,
    WorkerReaped,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)

__all__ = [
    "AttemptEnded",
    "AttemptStarted",
    "ClaimLost",
    "Emit",
    "EventRecord",
    "HandlerStuck",
    "HookFailed",
    "JobEventKind",
    "JobsReconciled",
    "LaneNotServed",
    "LifespanOverdue",
    "LoopBlocked",
    "LoopFailed",
    "LoopStalled",
    "MessageDropped",
    "ProcessEnded",
    "ProcessFailed",
    "QueueFenced",
    "QueueNotServed",
    "QueueRepaired",
    "QueueWithoutTasks",
    "ScheduleConflict",
    "ScheduleFailed",
    "ScheduleFired",
    "ScheduleSkipped",
    "SchedulerMissing",
    "SchedulerStarted",
    "SchedulerStopped",
    "SchedulesHeldUp",
    "SchedulesSynced",
    "StorageLost",
    "StorageRecovered",
    "StorageWaiting",
    "WorkerEnding",
    "WorkerEvent",
    "WorkerQuiet",
    "WorkerReaped",
    "WorkerStarted",
    "WorkerStopped",
    "WorkerStopping",
]

WorkerEvent = (
    WorkerStarted
    | QueueWithoutTasks
    | QueueNotServed
    | LaneNotServed
    | WorkerStopping
    | WorkerEnding
    | WorkerQuiet
    | WorkerStopped
    | AttemptStarted
    | AttemptEnded
    | ClaimLost
    | QueueFenced
    | WorkerReaped
    | JobsReconciled
    | QueueRepaired
    | StorageLost
    | StorageRecovered
    | StorageWaiting
    | LoopStalled
    | LoopFailed
    | MessageDropped
    | ProcessEnded
    | ProcessFailed
    | HandlerStuck
    | HookFailed
    | LoopBlocked
    | LifespanOverdue
    | SchedulerStarted
    | SchedulerStopped
    | SchedulerMissing
    | ScheduleFired
    | ScheduleSkipped
    | ScheduleFailed
    | ScheduleConflict
    | SchedulesSynced
    | SchedulesHeldUp
)

Emit = Callable[[WorkerEvent], None]
"""Takes an event at once, without blocking and without raising."""
