"""Where jobs are kept: the port that any storage implements, its values, and how to open one.

``docs/storage.md`` tells how to write a storage; `headrace.testing` has the tests that it must
pass.
"""

from headrace.events import EventRecord, JobEventKind
from headrace.job import (
    CancelOutcome,
    Claim,
    ClaimedJob,
    EnqueueOutcome,
    ErrorInfo,
    FailReason,
    JobRecord,
    JobRow,
    JobState,
)
from headrace.outcome import Cancelled, Completed, Failed, Outcome, PutBack, Retried, Stalled
from headrace.request import JobRequest
from headrace.storage.base import (
    VERBS,
    Admin,
    Beater,
    Channel,
    Consumer,
    Doctor,
    Inspector,
    Maintenance,
    Producer,
    Storage,
    Verb,
    Waiter,
)
from headrace.storage.connect import open_storage
from headrace.storage.limits import BATCH_LIMIT, BATCH_LIMIT_BYTES
from headrace.storage.opener import Opener
from headrace.storage.values import (
    Beat,
    BeatReply,
    CallId,
    ClaimReply,
    End,
    EventPage,
    Finding,
    IncarnationInfo,
    OutputPage,
    Page,
    QueueCounts,
    QueueSettings,
    Repaired,
    Report,
    Settlement,
)

__all__ = [
    "BATCH_LIMIT",
    "BATCH_LIMIT_BYTES",
    "VERBS",
    "Admin",
    "Beat",
    "BeatReply",
    "Beater",
    "CallId",
    "CancelOutcome",
    "Cancelled",
    "Channel",
    "Claim",
    "ClaimReply",
    "ClaimedJob",
    "Completed",
    "Consumer",
    "Doctor",
    "End",
    "EnqueueOutcome",
    "ErrorInfo",
    "EventPage",
    "EventRecord",
    "FailReason",
    "Failed",
    "Finding",
    "IncarnationInfo",
    "Inspector",
    "JobEventKind",
    "JobRecord",
    "JobRequest",
    "JobRow",
    "JobState",
    "Maintenance",
    "Opener",
    "Outcome",
    "OutputPage",
    "Page",
    "Producer",
    "PutBack",
    "QueueCounts",
    "QueueSettings",
    "Repaired",
    "Report",
    "Retried",
    "Settlement",
    "Stalled",
    "Storage",
    "Verb",
    "Waiter",
    "open_storage",
]
