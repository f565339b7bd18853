"""What goes into a storage's verbs and comes out of them: plain values, the same for all.

The values that describe a job are in `headrace.job`, an attempt's in `headrace.outcome`.
"""

from __future__ import annotations

import msgspec

from headrace.events import JobEvent
from headrace.job import Claim, ClaimedJob, ErrorInfo, JobRow, JobState
from headrace.outcome import Outcome

BATCH_LIMIT = 500
"""Most jobs in one call."""

BATCH_LIMIT_BYTES = 4 * 1024 * 1024
"""Most bytes of payloads or results in one call."""


class CallId(msgspec.Struct, frozen=True):
    """Names one call, so that it may be repeated: a random client and its rising number.

    Numbers rise by one per client, queue and verb. A storage remembers the last two of ``enqueue``
    (which may be in flight together) and the last of ``claim`` and ``settle``, for ten minutes.
    """

    client: str
    number: int


class End(msgspec.Struct, frozen=True):
    """How a job stands, as told to who waits for it; ``state`` None: there is no such job.

    ``result`` is None when it is not kept or too large for the message (then ``is_cut``: read it).
    """

    queue: str
    id: str
    state: JobState | None
    reason: str = ""
    result: bytes | None = None
    error: ErrorInfo | None = None
    is_cut: bool = False


class Settlement(msgspec.Struct, frozen=True):
    """One attempt's outcome, with the claim that owns it."""

    job_id: str
    claim: Claim
    run_ms: int
    outcome: Outcome


class ClaimReply(msgspec.Struct, frozen=True):
    """What a claim brought.

    Attributes:
        is_gone: the incarnation is unknown or condemned; nothing was claimed.
        is_paused: the queue is paused.
        has_more: jobs that this caller could take were left behind.
        next_due_ms: how long until the next delayed job is due, None without one.
        jobs: the claimed ones, in order.
    """

    is_gone: bool
    is_paused: bool
    has_more: bool
    next_due_ms: int | None
    jobs: list[ClaimedJob]


class BeatReply(msgspec.Struct, frozen=True):
    """Whether the incarnation is gone, and which of its jobs are asked to stop."""

    is_gone: bool
    cancel_ids: list[str]


class Beat(msgspec.Struct, frozen=True):
    """One incarnation as the sweep sees it; a condemned one is listed for one more lease."""

    count: int
    lease_ms: int
    is_condemned: bool


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an incarnation says of itself, and what the storage knows of it.

    ``active`` counts its claimed jobs, ``silent_ms`` is how long ago it beat last.
    """

    incarnation: str
    name: str
    host: str
    pid: int
    version: str
    concurrency: int
    lease_ms: int
    registered_ms: int
    active: int = 0
    silent_ms: int = 0
    is_condemned: bool = False


def worker_info(
    incarnation: str,
    info: bytes,
    *,
    lease_ms: int,
    registered_ms: int,
    active: int,
    silent_ms: int,
    is_condemned: bool,
) -> WorkerInfo:
    """Return what is known of an incarnation; ``info`` is its own JSON, empty once it died."""
    if info:
        worker = msgspec.json.decode(info, type=WorkerInfo)
    else:
        worker = WorkerInfo(
            incarnation=incarnation,
            name="",
            host="",
            pid=0,
            version="",
            concurrency=0,
            lease_ms=lease_ms,
            registered_ms=0,
        )
    return msgspec.structs.replace(
        worker,
        registered_ms=registered_ms,
        active=active,
        silent_ms=silent_ms,
        is_condemned=is_condemned,
    )


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue keeps of ended jobs. Instants and counts at once: whichever is reached first.

    Attributes:
        history: completed and cancelled records, default 100,000.
        dead_letters: dead letters, default 10,000.
        dead_letter_ttl_ms: how long a dead letter is kept, default 30 days.
        events: entries of the event stream, of 1 to 20 events each, default 5,000.
    """

    history: int = 100_000
    dead_letters: int = 10_000
    dead_letter_ttl_ms: int = 30 * 24 * 3_600_000
    events: int = 5_000


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one queue now, and its work over the last minute.

    ``waits_ms`` and ``runs_ms`` map the upper bound of a logarithmic bucket to how many attempts of
    the window fell in it. ``workers`` counts the incarnations that beat within their lease.
    ``oldest_ms`` is how long the head of the queue has been ready.
    """

    queue: str
    is_paused: bool
    queued: int
    scheduled: int
    retrying: int
    active: int
    history: int
    dead: int
    workers: int
    oldest_ms: int
    window_ms: int
    enqueued: int
    completed: int
    failed: int
    retried: int
    cancelled: int
    stalled: int
    waits_ms: dict[int, int]
    runs_ms: dict[int, int]
    settings: QueueSettings


class Page(msgspec.Struct, frozen=True):
    """Some rows of a listing, and the cursor of the next page: "" at the end."""

    rows: list[JobRow]
    cursor: str


class EventPage(msgspec.Struct, frozen=True):
    """Some events, and the id to read on after."""

    events: list[JobEvent]
    last_id: str


class Finding(msgspec.Struct, frozen=True):
    """One line of the doctor. ``level``: ok, warning, error or unknown."""

    topic: str
    level: str
    detail: str
