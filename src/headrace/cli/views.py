"""The JSON documents of ``-o json``, which docs/cli.md describes. Fields are added, never renamed.

Instants are RFC 3339 in UTC, durations whole milliseconds in names that end in ``_ms``, and what
there is none of is null.
"""

from __future__ import annotations

from datetime import UTC

import msgspec

from headrace.clock import datetime_of
from headrace.storage.histogram import Percentiles, percentiles
from headrace.storage.values import IncarnationInfo, QueueCounts


class QueueView(msgspec.Struct, kw_only=True):
    """The counts of a queue: ``queue list``."""

    queue: str
    paused: bool
    queued: int
    scheduled: int
    retrying: int
    active: int
    dead: int
    history: int
    workers: int
    oldest_ms: int | None


class Work(msgspec.Struct, kw_only=True):
    """What happened in a queue within a window."""

    window_ms: int
    enqueued: int
    completed: int
    failed: int
    retried: int
    cancelled: int
    stalled: int
    wait_ms: Percentiles | None
    run_ms: Percentiles | None


class StatsView(QueueView, kw_only=True):
    """A queue's counts and its work of the last minute: ``queue stats``."""

    lanes: dict[str, int]
    last_minute: Work
    keeps_history: int
    keeps_dead: int
    keeps_dead_ms: int


class WorkerView(msgspec.Struct, kw_only=True):
    """One worker process with the queues it serves: ``workers``."""

    name: str
    host: str
    pid: int
    version: str
    concurrency: int
    process_slots: int
    lease_ms: int
    started_at: str | None
    active: int
    silent_ms: int
    condemned: bool
    queues: dict[str, str]


class Changed(msgspec.Struct, kw_only=True):
    """What a command that changes many jobs did.

    ``matched`` were there when it looked, ``changed`` of them were still so when it acted.
    """

    matched: int
    changed: int
    dry_run: bool


def instant(instant_ms: int) -> str | None:
    """Return an instant as the documents show it."""
    if not instant_ms:
        return None
    text: str = msgspec.to_builtins(datetime_of(instant_ms).astimezone(UTC))
    return text


def queue_view(stats: QueueCounts) -> QueueView:
    """Return a queue's counts."""
    return QueueView(
        queue=stats.queue,
        paused=stats.is_paused,
        queued=stats.queued,
        scheduled=stats.scheduled,
        retrying=stats.retrying,
        active=stats.active,
        dead=stats.dead,
        history=stats.history,
        workers=stats.workers,
        oldest_ms=stats.oldest_ms if stats.queued else None,
    )


def stats_view(stats: QueueCounts) -> StatsView:
    """Return a queue's counts and its work."""
    return StatsView(
        **msgspec.structs.asdict(queue_view(stats)),
        lanes=stats.lanes,
        last_minute=Work(
            window_ms=stats.window_ms,
            enqueued=stats.enqueued,
            completed=stats.completed,
            failed=stats.failed,
            retried=stats.retried,
            cancelled=stats.cancelled,
            stalled=stats.stalled,
            wait_ms=percentiles(stats.waits_ms),
            run_ms=percentiles(stats.runs_ms),
        ),
        keeps_history=stats.settings.history,
        keeps_dead=stats.settings.dead_letters,
        keeps_dead_ms=stats.settings.dead_letter_ttl_ms,
    )


def worker_view(found: dict[str, IncarnationInfo]) -> WorkerView:
    """Return a worker from what it says of itself in each queue."""
    first = min(found.values(), key=lambda info: info.registered_ms)
    return WorkerView(
        name=first.name,
        host=first.host,
        pid=first.pid,
        version=first.version,
        concurrency=first.concurrency,
        process_slots=first.process_slots,
        lease_ms=first.lease_ms,
        started_at=instant(first.registered_ms),
        active=sum(info.active for info in found.values()),
        silent_ms=max(info.silent_ms for info in found.values()),
        condemned=any(info.is_condemned for info in found.values()),
        queues={queue: info.incarnation for queue, info in sorted(found.items())},
    )
