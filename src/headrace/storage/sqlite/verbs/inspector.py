"""What operators see: ``queues``, ``stats``, ``workers``, ``events``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from headrace.job import DEFAULT_LANE
from headrace.storage.incarnations import IncarnationInfo, worker_info
from headrace.storage.queues import QueueCounts, QueueSettings
from headrace.storage.sqlite import events as stream
from headrace.storage.sqlite import stats as statistics
from headrace.storage.sqlite import strikes
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.unit import find_unit
from headrace.storage.sqlite.wake import ready_lanes
from headrace.storage.values import EventPage
from headrace.strike import Strike

WORKERS = """
SELECT name, info, lease_ms, registered_ms, beat_ms, is_condemned,
  (SELECT count(*) FROM jobs WHERE owner = incarnations.key)
FROM incarnations WHERE queue = ?
"""
"""What `read_worker` reads of the incarnations of a queue."""
_HEAD = """
SELECT changed_ms FROM jobs WHERE queue = ? AND lane = ? AND seq IS NOT NULL
ORDER BY tier DESC, seq LIMIT 1
"""
_COUNT = "SELECT count(*) FROM jobs WHERE queue = ? AND lane = ? AND seq IS NOT NULL"


def queues(step: Step, tenant: str) -> list[str]:
    """Return the names of a tenant's queues."""
    sql = "SELECT name FROM queues WHERE tenant = ? AND is_listed ORDER BY name"
    return [name for (name,) in step.db.execute(sql, (tenant,)).fetchall()]


def stats(step: Step, name: QueueName) -> QueueCounts:
    """Return counts of a queue and its work over the last minute."""
    unit = find_unit(step, name)
    counts: Counter[str] = Counter(unit.counts if unit else {})
    values: Counter[str] = Counter()
    lanes: dict[str, int] = {}
    struck: list[Strike] = []
    workers = oldest_ms = 0
    if unit is not None:
        if unit.is_struck or unit.strikes_version:
            struck = strikes.read_all(step.db, unit.key)
        values = statistics.read(step.db, unit.key, now_ms=step.now_ms)
        sql = "SELECT count(*) FROM incarnations WHERE queue = ? AND ? - beat_ms <= lease_ms"
        [workers] = step.db.execute(sql, (unit.key, step.now_ms)).fetchone()
        for lane in ready_lanes(unit.db, unit.key):
            [since] = step.db.execute(_HEAD, (unit.key, lane)).fetchone()
            oldest_ms = max(oldest_ms, step.now_ms - since)
            if lane != DEFAULT_LANE:
                [lanes[lane]] = step.db.execute(_COUNT, (unit.key, lane)).fetchone()
    return QueueCounts(
        queue=name[1],
        is_paused=unit is not None and unit.is_paused,
        queued=counts["queued"],
        scheduled=counts["scheduled"],
        retrying=counts["retrying"],
        active=counts["active"],
        blocked=counts["blocked"],
        history=counts["finished"],
        dead=counts["dead"],
        workers=workers,
        oldest_ms=oldest_ms,
        window_ms=statistics.window_ms(step.now_ms),
        enqueued=values["enqueued"],
        completed=values["completed"],
        failed=values["failed"],
        retried=values["retried"],
        cancelled=values["cancelled"],
        stalled=values["stalled"],
        waits_ms=statistics.histogram(values, "wait"),
        runs_ms=statistics.histogram(values, "run"),
        settings=unit.settings if unit else QueueSettings(),
        lanes=lanes,
        paused_tasks=sorted(filter(None, (strike.paused_task for strike in struck))),
        strikes=sum(not strike.paused_task for strike in struck),
    )


def workers(step: Step, name: QueueName) -> list[IncarnationInfo]:
    """Return the incarnations of a queue."""
    unit = find_unit(step, name)
    rows = step.db.execute(f"{WORKERS} ORDER BY name", (unit.key,)).fetchall() if unit else []
    return [read_worker(step, row) for row in rows]


def read_worker(step: Step, row: tuple[Any, ...]) -> IncarnationInfo:
    """Return what a row of `WORKERS` says."""
    incarnation, info, lease_ms, registered_ms, beat_ms, is_condemned, active = row
    return worker_info(
        incarnation,
        info,
        lease_ms=lease_ms,
        registered_ms=registered_ms if info else 0,
        active=active,
        silent_ms=max(0, step.now_ms - beat_ms),
        is_condemned=bool(is_condemned),
    )


def events(step: Step, name: QueueName, seen: int, limit: int) -> EventPage:
    """Return the events after an entry."""
    unit = find_unit(step, name)
    if unit is None:
        return EventPage(events=[], last_id="")
    return stream.read(step.db, unit.key, seen, limit)
