"""A queue and its workers as operators see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headrace.clock import datetime_of
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.queues import QueueCounts
from headrace.storage.readers import ReaderInfo
from headrace.views.value import Percentiles, PublicValue, instant


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWork(PublicValue):
    """What happened in a queue within a window."""

    window_s: float
    enqueued: int
    completed: int
    failed: int
    retried: int
    cancelled: int
    stalled: int
    wait_s: Percentiles | None
    run_s: Percentiles | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats(PublicValue):
    """A queue's counts now, its work of the last minute, what it keeps and how many it takes.

    ``on_failed`` is the task of the job that a dead letter brings whose own job names none.
    ``paused`` is of the whole queue; ``paused_tasks`` are paused for themselves, and ``strikes``
    counts what else jobs are struck by.

    `Queue.stats` returns it.
    """

    queue: str
    paused: bool
    queued: int
    scheduled: int
    retrying: int
    active: int
    blocked: int
    dead: int
    history: int
    workers: int
    oldest_s: float | None
    lanes: dict[str, int]
    paused_tasks: list[str]
    strikes: int
    last_minute: QueueWork
    keeps_history: int
    keeps_dead: int
    keeps_dead_s: float
    keeps_events: int
    keeps_events_cap: int
    on_failed: str | None
    max_active: int
    max_length: int
    weight: int
    aging: int

    @classmethod
    def of(cls, counts: QueueCounts) -> QueueStats:
        """Return what a queue's counts say."""
        return cls(
            queue=counts.queue,
            paused=counts.is_paused,
            queued=counts.queued,
            scheduled=counts.scheduled,
            retrying=counts.retrying,
            active=counts.active,
            blocked=counts.blocked,
            dead=counts.dead,
            history=counts.history,
            workers=counts.workers,
            oldest_s=counts.oldest_ms / 1000 if counts.queued else None,
            lanes=counts.lanes,
            paused_tasks=counts.paused_tasks,
            strikes=counts.strikes,
            last_minute=_work(counts),
            keeps_history=counts.settings.history,
            keeps_dead=counts.settings.dead_letters,
            keeps_dead_s=counts.settings.dead_letter_ttl_ms / 1000,
            keeps_events=counts.settings.events,
            keeps_events_cap=counts.settings.events_cap,
            on_failed=counts.settings.on_failed or None,
            max_active=counts.settings.max_active,
            max_length=counts.settings.max_length,
            weight=counts.settings.weight,
            aging=counts.settings.aging,
        )


def _work(counts: QueueCounts) -> QueueWork:
    return QueueWork(
        window_s=counts.window_ms / 1000,
        enqueued=counts.enqueued,
        completed=counts.completed,
        failed=counts.failed,
        retried=counts.retried,
        cancelled=counts.cancelled,
        stalled=counts.stalled,
        wait_s=Percentiles.of(counts.waits_ms),
        run_s=Percentiles.of(counts.runs_ms),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWorker(PublicValue):
    """One start of a worker, as a queue that it serves sees it; `Queue.workers` returns them.

    ``tasks`` are the lanes of the tasks that it knows, by name, and ``lanes`` the slots of those
    that it serves. ``version`` is the release of
    headrace that it runs, ``app_version`` what its user calls the program; "" if they don't.
    """

    queue: str
    incarnation: str
    name: str
    host: str
    pid: int
    version: str
    app_version: str
    concurrency: int
    process_slots: int
    lease_s: float
    started_at: datetime | None
    active: int
    silent_s: float
    condemned: bool
    tasks: dict[str, str]
    lanes: dict[str, int]

    @classmethod
    def of(cls, queue: str, info: IncarnationInfo) -> QueueWorker:
        """Return what an incarnation says of itself, and what the storage knows of it."""
        return cls(
            queue=queue,
            incarnation=info.incarnation,
            name=info.name,
            host=info.host,
            pid=info.pid,
            version=info.version,
            app_version=info.app_version,
            concurrency=info.concurrency,
            process_slots=info.process_slots,
            lease_s=info.lease_ms / 1000,
            started_at=instant(info.registered_ms),
            active=info.active,
            silent_s=info.silent_ms / 1000,
            condemned=info.is_condemned,
            tasks=info.tasks,
            lanes=info.lanes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReader(PublicValue):
    """How far a named reader of a queue's events has come; `Queue.readers` returns them.

    ``number`` is that of the last event that it has acknowledged at ``at``, and ``behind`` how many
    the queue has had since. It goes on behind the entry ``stream_id``, of whose next one it may
    have seen the first events.
    """

    queue: str
    name: str
    stream_id: str
    number: int
    behind: int
    at: datetime

    @classmethod
    def of(cls, queue: str, info: ReaderInfo) -> QueueReader:
        """Return what a storage knows of a reader."""
        return cls(
            queue=queue,
            name=info.name,
            stream_id=info.stream_id,
            number=info.number,
            behind=info.behind,
            at=datetime_of(info.at_ms),
        )
