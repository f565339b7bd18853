"""Where jobs are kept: the port that any storage implements, its values, and how to open one.

``docs/storage.md`` tells how to write a storage; `headrace.testing` has the tests that it must
pass.
"""

from headrace.events import JobEvent, JobEventKind
from headrace.job import (
    CancelOutcome,
    Claim,
    ClaimedJob,
    EnqueueOutcome,
    ErrorInfo,
    FailReason,
    Job,
    JobRecord,
    JobRow,
    JobState,
)
from headrace.outcome import Cancelled, Completed, Failed, Outcome, Released, Retried
from headrace.storage.base import (
    Beater,
    Consumer,
    Inbox,
    Inspector,
    Keeper,
    Opener,
    Producer,
    Storage,
    Waiter,
)
from headrace.storage.connect import open_storage
from headrace.storage.values import (
    BATCH_LIMIT,
    BATCH_LIMIT_BYTES,
    Beat,
    BeatReply,
    CallId,
    ClaimReply,
    End,
    EventPage,
    Finding,
    Page,
    QueueSettings,
    QueueStats,
    Settlement,
    WorkerInfo,
)

__all__ = [
    "BATCH_LIMIT",
    "BATCH_LIMIT_BYTES",
    "Beat",
    "BeatReply",
    "Beater",
    "CallId",
    "CancelOutcome",
    "Cancelled",
    "Claim",
    "ClaimReply",
    "ClaimedJob",
    "Completed",
    "Consumer",
    "End",
    "EnqueueOutcome",
    "ErrorInfo",
    "EventPage",
    "FailReason",
    "Failed",
    "Finding",
    "Inbox",
    "Inspector",
    "Job",
    "JobEvent",
    "JobEventKind",
    "JobRecord",
    "JobRow",
    "JobState",
    "Keeper",
    "Opener",
    "Outcome",
    "Page",
    "Producer",
    "QueueSettings",
    "QueueStats",
    "Released",
    "Retried",
    "Settlement",
    "Storage",
    "Waiter",
    "WorkerInfo",
    "open_storage",
]
