"""What goes into a storage's verbs and comes out of them: plain values, the same for all.

The values that describe a job are in `headrace.job`, an attempt's in `headrace.outcome`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from headrace.errors import InvalidOption
from headrace.events import EventRecord
from headrace.job import DEFAULT_LANE, PROCESS_LANE, Claim, ClaimedJob, ErrorInfo, JobRow, JobState
from headrace.outcome import Outcome
from headrace.strike import Strike

_OUTPUT_CURSOR = re.compile(r"(\d{1,15})-(\d{1,15})", re.ASCII)


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


class Report(msgspec.Struct, frozen=True):
    """What a running attempt says of itself.

    Attributes:
        job_id: of which job.
        claim: what owns the attempt.
        fraction: how far it is, from 0 to 1, of which six digits are kept; None: nothing new.
        text: a few words on that, "" for none; at most 200 characters, no control characters.
        chunks: pieces of output, encoded, in order, each at most 64 KiB.
        first: the number of the first piece within the attempt, from 0; the others follow it.
    """

    job_id: str
    claim: Claim
    fraction: float | None
    text: str
    chunks: list[bytes]
    first: int


def fraction_text(fraction: float) -> str:
    """Return a fraction as it is kept and told by events."""
    return f"{fraction:.6g}"


class FreeSlots(msgspec.Struct, frozen=True):
    """The slots of one lane for which an incarnation claims.

    Attributes:
        free: how many it has for jobs now.
        total: how many it has in all, those that hold jobs included.
    """

    free: int
    total: int


SlotsAsked = Mapping[str, int | FreeSlots]
"""Slots by lane; a number alone: so many are free, and there are no more in all."""


def free_slots(asked: int | FreeSlots) -> FreeSlots:
    """Return what is free in a lane, and in all."""
    return asked if isinstance(asked, FreeSlots) else FreeSlots(asked, asked)


class ClaimReply(msgspec.Struct, frozen=True):
    """What a claim brought.

    Attributes:
        is_gone: the incarnation is unknown or condemned; nothing was claimed.
        is_paused: the queue is paused.
        has_more: jobs that this caller could take were left behind.
        next_due_ms: how long until the next delayed job is due, None without one.
        jobs: the claimed ones, in order.
        awaited: by lane, the slots that its next job needs, where fewer are free.
        strikes: the version of the strikes with conditions, which is another after each change of
            one; 0: there are none.
        weight: `QueueSettings.weight`.
    """

    is_gone: bool
    is_paused: bool
    has_more: bool
    next_due_ms: int | None
    jobs: list[ClaimedJob]
    awaited: dict[str, int] = {}
    strikes: int = 0
    weight: int = 0


class BeatReply(msgspec.Struct, frozen=True):
    """Whether the incarnation is gone, and which of its jobs are asked to stop."""

    is_gone: bool
    cancel_ids: list[str]


class Beat(msgspec.Struct, frozen=True):
    """One incarnation as the sweep sees it; a condemned one is listed for one more lease."""

    count: int
    lease_ms: int
    is_condemned: bool


class IncarnationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an incarnation says of itself, and what the storage knows of it.

    ``version`` is headrace's, ``app_version`` what its user calls the program. ``tasks`` are the
    lanes of the tasks that it knows, and ``lanes`` the slots of those that it serves; a release
    that has only the default lane and that of ``process_slots`` says none. ``channel`` is the
    channel that is told when one of its jobs is asked to stop. ``limits`` are the terms of the
    limits that its tasks declare, by name, as `Terms.text` has them. ``active`` counts its claimed
    jobs, ``silent_ms`` is how long ago it beat last.
    """

    incarnation: str
    name: str
    host: str
    pid: int
    version: str
    concurrency: int
    lease_ms: int
    registered_ms: int
    process_slots: int = 0
    lanes: dict[str, int] = {}
    app_version: str = ""
    tasks: dict[str, str] = {}
    channel: str = ""
    limits: dict[str, str] = {}
    active: int = 0
    silent_ms: int = 0
    is_condemned: bool = False

    def slots_of(self, lane: str) -> int:
        """Return how many slots of a lane it has, 0 if it takes no jobs of that."""
        known = {DEFAULT_LANE: self.concurrency, PROCESS_LANE: self.process_slots}
        return (self.lanes or known).get(lane, 0)


DAMAGED_ERROR = ErrorInfo(type="DamagedError", message="what is stored of this error can't be read")
"""Stands for an entry of a job's error history that can't be read."""


def read_info(incarnation: str, info: bytes) -> IncarnationInfo:
    """Return what an incarnation has said of itself; ``info`` is its JSON, empty once it died.

    Rubbish counts as empty.
    """
    try:
        return msgspec.json.decode(info, type=IncarnationInfo)
    except (msgspec.MsgspecError, UnicodeError):
        return IncarnationInfo(
            incarnation=incarnation,
            name="",
            host="",
            pid=0,
            version="",
            concurrency=0,
            lease_ms=0,
            registered_ms=0,
        )


def worker_info(
    incarnation: str,
    info: bytes,
    *,
    lease_ms: int,
    registered_ms: int,
    active: int,
    silent_ms: int,
    is_condemned: bool,
) -> IncarnationInfo:
    """Return what is known of an incarnation, beside what it has said of itself."""
    worker = read_info(incarnation, info)
    return msgspec.structs.replace(
        worker,
        lease_ms=worker.lease_ms or lease_ms,
        registered_ms=registered_ms,
        active=active,
        silent_ms=silent_ms,
        is_condemned=is_condemned,
    )


class Page(msgspec.Struct, frozen=True):
    """Some rows of a listing, and the cursor of the next page: "" at the end."""

    rows: list[JobRow]
    cursor: str


class OutputPage(msgspec.Struct, frozen=True):
    """Some pieces of a job's output, encoded, and the cursor to read on after."""

    chunks: list[bytes]
    cursor: str


def read_output_cursor(cursor: str) -> tuple[int, int]:
    """Return the epoch and number of the piece that a cursor names; (0, 0) for "".

    Raises:
        InvalidOption: it is not one of a page of output.
    """
    match = _OUTPUT_CURSOR.fullmatch(cursor or "0-0")
    if match is None:
        raise InvalidOption(f"cursor={cursor!r} is not one of a page of output")
    return int(match[1]), int(match[2])


class EventPage(msgspec.Struct, frozen=True):
    """Some events, and the id to read on after."""

    events: list[EventRecord]
    last_id: str


class Repaired(msgspec.Struct, frozen=True):
    """What a call of `repair` came to: the cursor for the next, "" at the end, and its work."""

    cursor: str
    mended: int


class StrikeList(msgspec.Struct, frozen=True):
    """The strikes of a queue.

    Attributes:
        version: of those with conditions, see `ClaimReply.strikes`; 0 without any.
        strikes: all of them, in the order in which they were set.
    """

    version: int
    strikes: list[Strike]


class Finding(msgspec.Struct, frozen=True):
    """One line of the doctor. ``level``: ok, warning, error or unknown."""

    topic: str
    level: str
    detail: str


class StageInfo(msgspec.Struct, frozen=True):
    """What one writer has staged for a write.

    Attributes:
        token: names the stage.
        length: what the last `stage` returned.
        jobs: how many jobs those calls staged.
    """

    token: str
    length: int
    jobs: int


class CommitOutcome(StrEnum):
    """What came of a commit."""

    COMMITTED = "committed"
    KNOWN = "known"


class WriteInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a write, over all batches that it has committed.

    Attributes:
        id: the write.
        batch: the last that it committed.
        stages_left: how many of its stages are not published, or not wholly.
        jobs: how many were committed.
        added: how many of these are stored by now. Once it is published, the others met a job of
            their id.
    """

    id: str
    batch: int
    stages_left: int
    jobs: int
    added: int

    @property
    def is_published(self) -> bool:
        """Whether nothing of it is left to publish."""
        return self.stages_left == 0
