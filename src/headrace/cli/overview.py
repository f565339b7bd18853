"""What ``headrace top`` shows: queues with their rates and ages, and the workers, in lines."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from headrace.cli import workers as worker_list
from headrace.cli.colours import Coloured, styled
from headrace.cli.options import queue_names
from headrace.cli.output import plural, rate, span_of
from headrace.cli.queues import count_cells, marker_cell
from headrace.cli.tables import Cell, Column, cut, lines
from headrace.cli.workers import ServedQueues, load_workers, worker_line
from headrace.storage.base import Storage
from headrace.views.queues import QueueStats
from headrace.views.value import Percentiles

QUEUE_COLUMNS = (
    Column("QUEUE"),
    Column("QUEUED"),
    Column("BLOCKED", rank=6),
    Column("SCHEDULED", rank=10),
    Column("RETRYING", rank=7),
    Column("ACTIVE"),
    Column("DEAD", rank=2),
    Column("IN/S", rank=4, is_right=True),
    Column("DONE/S", rank=1, is_right=True),
    Column("FAILED/S", rank=5, is_right=True),
    Column("OLDEST", rank=3, is_right=True),
    Column("WAIT P95", rank=9, is_right=True),
    Column("RUN P95", rank=11, is_right=True),
    Column("WORKERS", rank=8),
    Column("NOTE"),
)

GAP = "   "
OTHER_LINES = 8
"""Lines beside the rows: two of the head, two empty ones, two of headers, two of what is more."""


class Overview(msgspec.Struct, frozen=True):
    """What was found by one look.

    Attributes:
        where: the storage in words.
        at: when.
        queues: the busiest first.
        workers: by name.
    """

    where: str
    at: datetime
    queues: list[QueueStats]
    workers: list[ServedQueues]


async def look(storage: Storage, where: str) -> Overview:
    """Look at all queues and workers of a tenant."""
    queues = [QueueStats.of(await storage.stats(name)) for name in await queue_names(storage)]
    queues.sort(key=lambda stats: (-(stats.queued + stats.active + stats.retrying), stats.queue))
    return Overview(where, datetime.now(UTC), queues, await load_workers(storage))


def view(
    found: Overview, *, columns: int, rows: int, hint: str = "", notice: str = ""
) -> list[str]:
    """Return the lines of a view of this size; 0 columns or rows are any number.

    ``hint`` says how to leave it, ``notice`` what has gone wrong since.

    Where there is no room for all, the busiest queues are shown, and at least a third of the rows
    is left to the workers.
    """
    room = max(2, rows - OTHER_LINES) if rows else len(found.queues) + len(found.workers)
    for_workers = min(len(found.workers), max(room // 3, room - len(found.queues)))
    for_queues = min(len(found.queues), room - for_workers)
    head = GAP.join(filter(None, ("headrace top", f"{found.at:%H:%M:%S} UTC", hint, found.where)))
    return [
        styled(_fitted(head, columns), "bold"),
        styled(_fitted(notice or _totals(found), columns), "red" if notice else ""),
        "",
        *lines(QUEUE_COLUMNS, [_queue(stats) for stats in found.queues[:for_queues]], room=columns),
        *_more(len(found.queues) - for_queues, "queue"),
        "",
        *lines(
            worker_list.COLUMNS,
            [worker_line(worker) for worker in found.workers[:for_workers]],
            room=columns,
        ),
        *_more(len(found.workers) - for_workers, "worker"),
    ]


def _fitted(text: str, columns: int) -> str:
    return cut(text, columns) if columns else text


def _more(count: int, noun: str) -> list[str]:
    return [f"… and {plural(count, noun)} more"] if count else []


def _totals(found: Overview) -> str:
    queues = found.queues
    counts = {
        "queued": sum(stats.queued for stats in queues),
        "scheduled": sum(stats.scheduled for stats in queues),
        "retrying": sum(stats.retrying for stats in queues),
        "active": sum(stats.active for stats in queues),
        "dead": sum(stats.dead for stats in queues),
    }
    if blocked := sum(stats.blocked for stats in queues):
        counts["blocked"] = blocked
    told = [f"{count:,} {name}" for name, count in counts.items()]
    parts = (plural(len(queues), "queue"), plural(len(found.workers), "worker"), ", ".join(told))
    return GAP.join(parts)


def _queue(stats: QueueStats) -> list[Cell]:
    work = stats.last_minute
    seconds = max(work.window_s, 1.0)
    return [
        *count_cells(stats),
        rate(work.enqueued / seconds),
        rate(work.completed / seconds),
        Coloured(rate(work.failed / seconds), "red" if work.failed else ""),
        span_of(stats.oldest_s),
        _p95(work.wait_s),
        _p95(work.run_s),
        stats.workers,
        marker_cell(stats),
    ]


def _p95(found: Percentiles | None) -> str:
    return span_of(None if found is None else found.p95)
