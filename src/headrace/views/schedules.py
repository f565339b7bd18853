"""A schedule as its users and its operators see it, and what happened at its occurrences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headrace.clock import datetime_of
from headrace.schedule import HistoryEntry, ScheduleBody
from headrace.stored_options import decode_stored
from headrace.timing import At, Cron, Every
from headrace.views.value import PublicValue, instant, read_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(PublicValue):
    """A schedule as it is stored; `Schedules.get` returns it.

    Arguments and options are as they are stored, as plain data, and not in its ``repr``. Of the
    timing there is ``cron`` with its zone, or ``interval_s``, or ``at``. ``next_at`` is the
    next occurrence, and ``due_at`` when it is to be fired, which is later by its share of the
    jitter; None of a schedule that has ended.
    """

    id: str
    task: str
    queue: str
    priority: int
    args: Any = field(repr=False)
    options: Any = field(repr=False)
    timing: str
    cron: str | None
    tz: str | None
    dst: str | None
    interval_s: float | None
    at: datetime | None
    catch_up: str | int
    jitter_s: float
    overlap: str
    start_at: datetime | None
    end_at: datetime | None
    is_paused: bool
    next_at: datetime | None
    due_at: datetime | None
    last_at: datetime | None
    last_job_id: str | None
    app: str | None
    set_by: str
    is_edited: bool
    created_at: datetime
    changed_at: datetime

    @classmethod
    def of(
        cls, schedule_id: str, app: str, body: ScheduleBody, decode: Callable[[bytes], Any]
    ) -> Schedule:
        """Return what is stored of a schedule; ``decode`` reads plain data."""
        job, timing, next_ms = body.job, body.timing, body.next_ms
        return cls(
            id=schedule_id,
            task=job.task,
            queue=job.queue,
            priority=job.priority,
            args=read_plain(decode, job.payload),
            options=read_plain(decode_stored, job.options),
            timing=str(timing),
            cron=timing.expression if isinstance(timing, Cron) else None,
            tz=timing.tz if isinstance(timing, Cron) else None,
            dst=timing.dst if isinstance(timing, Cron) else None,
            interval_s=timing.interval_ms / 1000 if isinstance(timing, Every) else None,
            at=timing.instant if isinstance(timing, At) else None,
            catch_up=body.catch_up,
            jitter_s=body.jitter_ms / 1000,
            overlap=body.overlap,
            start_at=_instant(body.start_ms),
            end_at=_instant(body.end_ms),
            is_paused=body.is_paused,
            next_at=_instant(next_ms),
            due_at=None if next_ms is None else datetime_of(body.fire_ms(schedule_id, next_ms)),
            last_at=_instant(body.last_ms),
            last_job_id=body.last_job_id or None,
            app=app or None,
            set_by=body.set_by,
            is_edited=bool(body.declaration) and body.set_by == "operator",
            created_at=datetime_of(body.created_ms),
            changed_at=datetime_of(body.changed_ms),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEvent(PublicValue):
    """What happened at an occurrence, or at several that were passed over together.

    `Schedules.history` returns them. ``at`` is the occurrence, the first of several up to
    ``until``; ``count`` is how many they are, None if nobody has counted them.
    """

    at: datetime
    fired_at: datetime
    outcome: str
    reason: str | None
    job_id: str | None
    until: datetime | None
    count: int | None

    @classmethod
    def of(cls, entry: HistoryEntry) -> ScheduleEvent:
        """Return what an entry of a history says."""
        return cls(
            at=datetime_of(entry.instant_ms),
            fired_at=datetime_of(entry.fired_ms),
            outcome=entry.outcome,
            reason=entry.reason or None,
            job_id=entry.job_id or None,
            until=_instant(entry.until_ms),
            count=entry.count or None,
        )


def _instant(instant_ms: int | None) -> datetime | None:
    return instant(instant_ms or 0)
