"""What every storage can do, in four roles, so that each caller asks for the least.

Every verb is one atomic step per call and queue. Verbs that take a `CallId` may be repeated with
the same id and the same batch after a lost answer: the repetition changes nothing and answers the
same. All may raise `StorageError`; bad values were refused before they come here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from headrace.events import JobEvent
from headrace.job import (
    CancelOutcome,
    Claim,
    ClaimedJob,
    EnqueueOutcome,
    ErrorInfo,
    Job,
    JobRecord,
    JobRow,
    JobState,
)
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


class Inbox(Protocol):
    """A channel of this client that is told of jobs' ends."""

    channel: str

    async def receive(self) -> End | None:
        """Wait for the next end; None after a reconnect, when ends may have been missed."""

    async def aclose(self) -> None:
        """Close it; a pending `receive` ends."""


class Waiter(Protocol):
    """Blocks on a queue's wake-up token for one incarnation."""

    async def wait(self, timeout_s: float) -> bool:
        """Block for at most ``timeout_s``; True: a token was taken, so claim. Never cancel it."""

    async def interrupt(self) -> None:
        """Make a pending `wait` end soon."""

    async def aclose(self) -> None:
        """Close it."""


class Beater(Protocol):
    """The synchronous side that the beat thread uses."""

    def beat(self, queue: str, incarnation: str) -> BeatReply:
        """Say that the incarnation lives; creates nothing for one that is gone."""

    def close(self) -> None:
        """Close its connection."""


class Producer(Protocol):
    """What brings jobs in and asks how they end."""

    async def enqueue(
        self, queue: str, jobs: Sequence[Job], *, call: CallId
    ) -> list[EnqueueOutcome]:
        """Store jobs of one queue; an id that waits, runs or is kept completed changes nothing.

        Raises:
            StorageFull: nothing was stored.
        """

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> list[CancelOutcome]:
        """Cancel waiting jobs, ask active ones to stop; an unknown id leaves no trace."""

    async def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        """Register ``channel`` for the jobs' ends ("": don't) and return how each stands now."""

    def open_inbox(self) -> Inbox:
        """Return a new channel; it connects on first use."""


class Consumer(Protocol):
    """What runs jobs."""

    async def register(self, queue: str, worker: WorkerInfo) -> None:
        """Make an incarnation known, before its first claim."""

    async def claim(
        self, queue: str, *, call: CallId, nonce: str, slots: Mapping[str, int]
    ) -> ClaimReply:
        """Make due jobs ready, then take up to ``slots[lane]`` of each lane, best tier first.

        ``call.client`` is the incarnation. With no free slot it only passes the wake-up token on.
        """

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        """Write outcomes; False: the claim was not current and nothing changed. None: gone."""

    async def put_back(
        self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]
    ) -> None:
        """Return claimed jobs to the head in this order, free of charge; pass other claims."""

    async def held(self, queue: str, incarnation: str) -> list[tuple[str, Claim]]:
        """Return what the storage thinks this incarnation has claimed."""

    async def retire(self, queue: str, incarnation: str) -> int:
        """Hand back what is still claimed and forget the incarnation; return what is left to do."""

    def open_waiter(self, queue: str, incarnation: str) -> Waiter:
        """Return what blocks for this incarnation, with a connection of its own."""

    def open_beater(self, *, timeout_s: float) -> Beater:
        """Return the synchronous side for the beat thread; a call takes at most ``timeout_s``."""


class Keeper(Protocol):
    """What keeps a queue in order when others died."""

    async def beats(self, queue: str) -> dict[str, Beat]:
        """Return every listed incarnation."""

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        """Condemn an incarnation whose beat still is ``seen`` and take back up to 200 of its jobs.

        Each is charged one stall and gets ``error`` in its history. Returns how many are left, None
        when the beat has moved, so that it lives.
        """

    async def forget(self, queue: str, incarnation: str) -> bool:
        """Take a condemned incarnation off the list, unless something of it is left."""

    async def prune(self, queue: str, *, cursor: str = "") -> str:
        """Remove a bounded piece of what is over its age or number; return the next cursor."""


class Inspector(Protocol):
    """What operators see and steer. Reading changes nothing."""

    async def queues(self) -> list[str]:
        """Return the names of all queues ever used, sorted."""

    async def get(self, queue: str, job_id: str) -> JobRecord | None:
        """Return all that is kept of a job, None if nothing."""

    async def list_jobs(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = 50
    ) -> Page:
        """Return a page of jobs in ``state``; those that move may be missed or repeated."""

    async def stats(self, queue: str) -> QueueStats:
        """Return counts and rates."""

    async def workers(self, queue: str) -> list[WorkerInfo]:
        """Return the incarnations that serve the queue."""

    async def events(self, queue: str, *, after: str = "0", limit: int = 100) -> EventPage:
        """Return the events after a stream id, oldest first."""

    async def pause(self, queue: str) -> None:
        """Stop claims. Active jobs go on; enqueueing works."""

    async def resume(self, queue: str) -> None:
        """Allow claims again, at once."""

    async def configure(self, queue: str, settings: QueueSettings) -> None:
        """Set what the queue keeps."""

    async def redrive(self, queue: str, job_ids: Sequence[str]) -> int:
        """Queue dead letters again, their counts and error history reset; return how many were."""

    async def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        """Delete jobs that are in ``state`` (not active) and tell waiters; return how many."""

    async def check(self) -> None:
        """Connect and see that the storage can be used as it is.

        Raises:
            StorageRefused: it can't, and why.
        """

    async def diagnose(self) -> list[Finding]:
        """Look the storage over, for ``headrace doctor``."""

    async def tidy(self) -> list[str]:
        """Remove code that other releases left in the storage; return its names.

        A worker of such a release loads its own again when it needs it.
        """


class Storage(Producer, Consumer, Keeper, Inspector, Protocol):
    """All four roles over one connection string."""

    tenant: str

    async def aclose(self) -> None:
        """Close every connection. Later calls connect again."""
