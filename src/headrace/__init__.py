"""An asyncio-native job queue on Redis and Valkey: declare tasks, enqueue jobs, run workers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.alias import Alias
from headrace.app import App
from headrace.blueprint import Blueprint
from headrace.bulk import BulkWrite
from headrace.context import Context, current_job
from headrace.draft import JobDraft
from headrace.errors import (
    AppImportError,
    ArchiveInUse,
    EventsLost,
    FailPermanently,
    HeadraceError,
    InvalidArguments,
    InvalidOption,
    InvalidRows,
    JobCancelled,
    JobError,
    JobFailed,
    JobNotFound,
    LifespanTimeout,
    MissingRequirement,
    NotSerializable,
    OutsideHandler,
    PayloadTooLarge,
    QueueFull,
    ReplyLost,
    ResultExpired,
    ResultMismatch,
    RetryLater,
    ScheduleNotFound,
    Snooze,
    SnoozeLimit,
    StageLost,
    StaleCall,
    StorageError,
    StorageFault,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
    TooManyReaders,
    TooManySchedules,
    TooManyStrikes,
    UnknownTask,
    UsageError,
    WaitTimeout,
    WriteNotFound,
)
from headrace.events import JobEventKind
from headrace.fail_jobs import Failure
from headrace.handle import JobHandle
from headrace.hooks import AttemptOutcome, Hook
from headrace.job import (
    CancelOutcome,
    EnqueueOutcome,
    FailReason,
    Job,
    JobState,
)
from headrace.limit import Limit
from headrace.logs.jobs import JobLogFilter, add_job_fields
from headrace.middleware import CallNext, Middleware
from headrace.queues import Queue
from headrace.release import VERSION as __version__
from headrace.retry import Retry
from headrace.scheduler.scheduler import Scheduler
from headrace.schedules import Schedules
from headrace.task import Task
from headrace.task_ref import TaskRef
from headrace.timing import At, Cron, Every
from headrace.views.cancelled import CancelReport
from headrace.views.jobs import ErrorEntry, JobEvent, JobStatus, JobSummary
from headrace.views.limits import QueueGate, QueueLimit
from headrace.views.outcomes import ExportedJob, JobOutcome
from headrace.views.queues import QueueReader, QueueStats, QueueWork, QueueWorker
from headrace.views.reason import Reason, ReasonKind
from headrace.views.schedules import Schedule, ScheduleEvent
from headrace.views.strikes import QueueStrike
from headrace.views.value import Percentiles
from headrace.views.why import Why
from headrace.views.writes import WriteReport
from headrace.worker.worker import Worker

if TYPE_CHECKING:
    from headrace.sync import (
        SyncApp,
        SyncBulkWrite,
        SyncJobHandle,
        SyncQueue,
        SyncSchedules,
        SyncTask,
        SyncTaskCall,
        SyncTaskRef,
    )

__all__ = [
    "Alias",
    "App",
    "AppImportError",
    "ArchiveInUse",
    "At",
    "AttemptOutcome",
    "Blueprint",
    "BulkWrite",
    "CallNext",
    "CancelOutcome",
    "CancelReport",
    "Context",
    "Cron",
    "EnqueueOutcome",
    "ErrorEntry",
    "EventsLost",
    "Every",
    "ExportedJob",
    "FailPermanently",
    "FailReason",
    "Failure",
    "HeadraceError",
    "Hook",
    "InvalidArguments",
    "InvalidOption",
    "InvalidRows",
    "Job",
    "JobCancelled",
    "JobDraft",
    "JobError",
    "JobEvent",
    "JobEventKind",
    "JobFailed",
    "JobHandle",
    "JobLogFilter",
    "JobNotFound",
    "JobOutcome",
    "JobState",
    "JobStatus",
    "JobSummary",
    "LifespanTimeout",
    "Limit",
    "Middleware",
    "MissingRequirement",
    "NotSerializable",
    "OutsideHandler",
    "PayloadTooLarge",
    "Percentiles",
    "Queue",
    "QueueFull",
    "QueueGate",
    "QueueLimit",
    "QueueReader",
    "QueueStats",
    "QueueStrike",
    "QueueWork",
    "QueueWorker",
    "Reason",
    "ReasonKind",
    "ReplyLost",
    "ResultExpired",
    "ResultMismatch",
    "Retry",
    "RetryLater",
    "Schedule",
    "ScheduleEvent",
    "ScheduleNotFound",
    "Scheduler",
    "Schedules",
    "Snooze",
    "SnoozeLimit",
    "StageLost",
    "StaleCall",
    "StorageError",
    "StorageFault",
    "StorageFull",
    "StorageRefused",
    "StorageUnavailable",
    "SyncApp",
    "SyncBulkWrite",
    "SyncJobHandle",
    "SyncQueue",
    "SyncSchedules",
    "SyncTask",
    "SyncTaskCall",
    "SyncTaskRef",
    "Task",
    "TaskRef",
    "TooManyReaders",
    "TooManySchedules",
    "TooManyStrikes",
    "UnknownTask",
    "UsageError",
    "WaitTimeout",
    "Why",
    "Worker",
    "WriteNotFound",
    "WriteReport",
    "__version__",
    "add_job_fields",
    "current_job",
]


def __getattr__(name: str) -> Any:
    # Programs that have an event loop need none of these, and start sooner without.
    if name in __all__:
        return getattr(import_module("headrace.sync"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
