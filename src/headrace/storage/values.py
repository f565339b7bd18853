"""What goes into a storage's verbs and comes out of them: plain values, the same for all.

Those that describe a job are in `headrace.job`, an attempt's in `headrace.outcome`, and those of
incarnations and queues beside this file.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from headrace.errors import InvalidOption
from headrace.events import EventRecord
from headrace.job import Claim, ErrorInfo, JobRow, JobState
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


DAMAGED_ERROR = ErrorInfo(type="DamagedError", message="what is stored of this error can't be read")
"""Stands for an entry of a job's error history that can't be read."""


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
