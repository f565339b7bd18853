"""What a bulk write was asked to be, and what it is to send next. Nothing here sends it."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Sequence
from enum import Enum, auto

import msgspec

from headrace.clock import Duration, duration_ms
from headrace.errors import UsageError
from headrace.job import check_name, check_text
from headrace.plain import shown
from headrace.request import JobRequest
from headrace.settings import check_count, check_flag
from headrace.storage.limits import BATCH_LIMIT, BATCH_LIMIT_BYTES
from headrace.storage.values import StageInfo

LEAST_TTL_MS = 60_000
MOST_BATCH = 2**53 - 1


class WriteTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a bulk write was asked to be, checked."""

    write_id: str
    queue: str
    batch: int
    replaces_ended: bool
    stage_ttl_ms: int
    keep_ms: int


def write_terms(
    write_id: str,
    *,
    queue: str,
    batch: int,
    replace_ended: bool,
    stage_ttl: Duration,
    keep: Duration,
) -> WriteTerms:
    """Check what a caller says of a write.

    Raises:
        InvalidOption: something is out of bounds.
    """
    return WriteTerms(
        write_id=check_text(write_id, what="write id"),
        queue=check_name(queue, what="queue"),
        batch=check_count(batch, name="batch", least=0, most=MOST_BATCH),
        replaces_ended=check_flag(replace_ended, name="replace_ended"),
        stage_ttl_ms=duration_ms(stage_ttl, name="stage_ttl", least_ms=LEAST_TTL_MS),
        keep_ms=duration_ms(keep, name="keep", least_ms=LEAST_TTL_MS),
    )


class Phase(Enum):
    """How far a block has come that writes."""

    NEW = auto()
    OPEN = auto()
    ENDED = auto()


class Staging:
    """What one writer stages for a write: which jobs go in its next call.

    Args:
        terms: of the write.

    Attributes:
        phase: how far it has come.
        is_known: whether the write needs nothing more, so that jobs are dropped.
        info: what is staged so far.
    """

    def __init__(self, terms: WriteTerms) -> None:
        self.phase: Phase = Phase.NEW
        self.is_known: bool = False
        self.info: StageInfo = StageInfo(secrets.token_hex(8), 0, 0)
        self._terms = terms
        self._full: deque[Sequence[JobRequest]] = deque()
        self._filling: list[JobRequest] = []
        self._filling_bytes = 0

    def begin(self) -> None:
        """Open it.

        Raises:
            UsageError: it was opened before.
        """
        if self.phase is not Phase.NEW:
            raise UsageError(f"{self._name} has begun already: make another by app.bulk(...)")
        self.phase = Phase.OPEN

    def check_open(self) -> None:
        """See that jobs may be added.

        Raises:
            UsageError: it has not begun, or has ended.
        """
        if self.phase is Phase.NEW:
            raise UsageError(f"{self._name} has not begun: add jobs inside its block")
        if self.phase is Phase.ENDED:
            raise UsageError(f"{self._name} has ended: add jobs inside its block")

    def add(self, jobs: Sequence[JobRequest]) -> None:
        """Add jobs, all or none.

        Raises:
            UsageError: one is of another queue, or it is not open.
        """
        self.check_open()
        for job in jobs:
            if job.queue != self._terms.queue:
                raise UsageError(
                    f"job {shown(job.id)} is of queue {job.queue!r}, and {self._name} of "
                    f"{self._terms.queue!r}: a write has one queue; make another for that one"
                )
            if job.update is not None:
                raise UsageError(
                    f"job {shown(job.id)} is debounced, throttled by its id, or says "
                    f"on_conflict='update', and {self._name} only brings new jobs in: leave "
                    "that out, or use enqueue_many"
                )
        if not self._terms.replaces_ended:
            jobs = [msgspec.structs.replace(job, replaces_ended=False) for job in jobs]
        for job in jobs:
            size = len(job.payload)
            if self._filling_bytes + size > BATCH_LIMIT_BYTES:
                self._close()
            self._filling.append(job)
            self._filling_bytes += size
            if len(self._filling) == BATCH_LIMIT:
                self._close()

    def fill(self) -> None:
        """Let what is there be the last."""
        self._close()

    def next_call(self) -> Sequence[JobRequest]:
        """Return the jobs to stage now, none if no call is full.

        Until `staged` says so they are the same again: the call may have been made, and its answer
        lost.
        """
        return self._full[0] if self._full else ()

    def staged(self, length: int) -> None:
        """Note that they are staged, and what the storage answered."""
        jobs = self._full.popleft()
        self.info = StageInfo(self.info.token, length, self.info.jobs + len(jobs))

    def stages(self) -> list[StageInfo]:
        """Return what is to be committed."""
        return [self.info] if self.info.jobs else []

    def _close(self) -> None:
        if self._filling:
            self._full.append(self._filling)
            self._filling, self._filling_bytes = [], 0

    @property
    def _name(self) -> str:
        return f"write {shown(self._terms.write_id)}"
