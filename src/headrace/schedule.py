"""A schedule's values: what is stored of it, and what happened at its instants."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from headrace.job import Job
from headrace.request import JobRequest
from headrace.timing import At, Timing

CatchUp = Literal["skip", "latest"] | int
Overlap = Literal["allow", "skip"]
Outcome = Literal["enqueued", "duplicate", "skipped", "missed", "triggered"]
Reason = Literal["", "overlap", "catch_up", "paused"]

ID_LIMIT_BYTES = 200
"""Longest id: that of an occurrence's job, which begins with it, has 256."""

CLOCKS_DIFFER_MS = 60_000
"""By how much the clocks of a caller and of the storage may differ."""

ENDED_TTL_MS = 7 * 24 * 3_600_000
"""How long a schedule is kept that will never fall due again."""


class JobBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of a job but its id: what each occurrence of a schedule brings in."""

    task: str
    queue: str
    payload: bytes
    priority: int
    max_stalls: int
    keep_ms: int
    lane: str
    expires_in_ms: int
    options: bytes
    on_failed: str = ""
    gates: str = ""
    slots: int = 1

    def request(self, job_id: str) -> JobRequest:
        """Return the job of an occurrence."""
        return JobRequest(id=job_id, **msgspec.structs.asdict(self))

    @classmethod
    def of(cls, job: Job) -> JobBody:
        """Return what is kept of a job, of which it has the fields by the same names."""
        return cls(*(getattr(job, name) for name in cls.__struct_fields__))


class ScheduleBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a storage keeps of a schedule without reading it.

    Attributes:
        job: what each occurrence brings in.
        timing: when.
        catch_up: what becomes of occurrences that nobody fired in time: none of them, the newest,
            or so many of the newest.
        jitter_ms: by how much an occurrence comes late at most.
        overlap: whether an occurrence is fired while the last one's job has not ended.
        start_ms: no occurrence is before it.
        end_ms: no occurrence is after it.
        is_paused: occurrences are passed over.
        next_ms: the next occurrence, by its nominal instant; None: there will be none.
        last_ms: the instant at which it was fired or triggered last.
        last_job_id: the job of that.
        set_by: who changed it last, code or an operator.
        created_ms: when it was made.
        changed_ms: when code or an operator changed it last.
        declaration: the digest of what code last declared under this id, "" if none did.
        release: the digest of the release that declared it.
    """

    job: JobBody
    timing: Timing
    catch_up: CatchUp = "skip"
    jitter_ms: int = 0
    overlap: Overlap = "allow"
    start_ms: int | None = None
    end_ms: int | None = None
    is_paused: bool = False
    next_ms: int | None = None
    last_ms: int | None = None
    last_job_id: str = ""
    set_by: Literal["code", "operator"] = "operator"
    created_ms: int = 0
    changed_ms: int = 0
    declaration: str = ""
    release: str = ""

    def next_after(self, after_ms: int) -> int | None:
        """Return the first occurrence after an instant, by its nominal instant."""
        found = self.timing.after(after_ms, start_ms=self.start_ms)
        return None if found is None or self._is_over(found) else found

    def _is_over(self, instant_ms: int) -> bool:
        return self.end_ms is not None and instant_ms > self.end_ms

    def in_place_of(self, before: ScheduleBody | None, now_ms: int) -> ScheduleBody:
        """Return what is to be stored of a schedule that is set now.

        Its occurrences are those from now on. One of before that is due, and about which no
        scheduler has decided yet, stays if it is an occurrence of this one too and that was not
        paused; and so does a one-off that has just passed by the storage's clock, since the
        caller's may be behind. One that was fired already does not come again.

        Args:
            before: what is stored of it now, None if it is new.
            now_ms: the instant, by the storage's clock.
        """
        grace_ms = CLOCKS_DIFFER_MS if isinstance(self.timing, At) else 0
        next_ms = self.next_after(now_ms - grace_ms)
        if before is None:
            return replace(self, next_ms=next_ms, created_ms=now_ms, changed_ms=now_ms)
        pending_ms = before.next_ms
        if pending_ms is not None and pending_ms <= now_ms and not before.is_paused:
            is_kept = self.next_after(pending_ms - 1) == pending_ms
            next_ms = pending_ms if is_kept else next_ms
        if next_ms is not None and next_ms == before.last_ms:
            next_ms = self.next_after(next_ms)
        return replace(
            self,
            next_ms=next_ms,
            last_ms=before.last_ms,
            last_job_id=before.last_job_id,
            created_ms=before.created_ms,
            changed_ms=now_ms,
        )

    def fire_ms(self, schedule_id: str, instant_ms: int) -> int:
        """Return when an occurrence is to be fired: the same for whoever asks."""
        if not self.jitter_ms:
            return instant_ms
        drawn = hashlib.sha256(f"{schedule_id}\n{instant_ms}".encode()).digest()
        return instant_ms + int.from_bytes(drawn[:8]) % (self.jitter_ms + 1)

    def due_ms(self, schedule_id: str, now_ms: int) -> int:
        """Return when a scheduler has to look at the schedule next."""
        if self.next_ms is None:
            return now_ms + ENDED_TTL_MS
        return self.fire_ms(schedule_id, self.next_ms)


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened at one occurrence, or at a run of them that were passed over.

    Attributes:
        instant_ms: the occurrence, by its nominal instant; the first of a run.
        fired_ms: when that was decided, by the storage's clock.
        outcome: ``enqueued``; ``duplicate``: its job was there already; ``skipped``, for `reason`;
            ``missed``: too many were due to look at each; ``triggered`` by hand.
        reason: why it was skipped.
        job_id: its job's id, "" if there is none.
        until_ms: the last of a run, None of a single one.
        count: how many they are; 0 if they were not counted.
    """

    instant_ms: int
    fired_ms: int
    outcome: Outcome
    reason: Reason = ""
    job_id: str = ""
    until_ms: int | None = None
    count: int = 1


encode_body: Callable[[ScheduleBody], bytes] = msgspec.msgpack.Encoder().encode
decode_body: Callable[[bytes], ScheduleBody] = msgspec.msgpack.Decoder(ScheduleBody).decode
encode_entry: Callable[[HistoryEntry], bytes] = msgspec.msgpack.Encoder().encode
decode_entry: Callable[[bytes], HistoryEntry] = msgspec.msgpack.Decoder(HistoryEntry).decode


def occurrence_id(schedule_id: str, instant_ms: int) -> str:
    """Return the id of an occurrence's job, as in ``report:2026-11-29T09:00:00Z``."""
    seconds, ms = divmod(instant_ms, 1000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{schedule_id}:{text}.{ms:03}Z" if ms else f"{schedule_id}:{text}Z"
