"""``headrace workers``: which workers there are, and what they serve."""

from __future__ import annotations

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.colours import Coloured, count_cell
from headrace.cli.options import Target, output_option, run, wide_option
from headrace.cli.output import ago, echo_json, note, span
from headrace.cli.tables import Cell, Column, table
from headrace.cli.views import WorkerView, worker_view
from headrace.clock import datetime_of
from headrace.job import DEFAULT_LANE, PROCESS_LANE
from headrace.storage.base import Inspector
from headrace.storage.incarnations import IncarnationInfo

ServedQueues = dict[str, IncarnationInfo]
"""What a worker process says of itself in each queue that it serves."""

COLUMNS = (
    Column("WORKER"),
    Column("VERSION", rank=5),
    Column("APP VERSION", rank=8),
    Column("ACTIVE", rank=1),
    Column("SLOTS", rank=2),
    Column("PROCESS SLOTS", rank=6),
    Column("LANES", rank=3, is_cut=True),
    Column("LEASE", rank=7),
    Column("STARTED", rank=4),
    Column("QUEUES", rank=3, is_cut=True),
    Column("NOTE"),
)


@click.command()
@wide_option
@output_option
@on_app_target
def workers(*, target: Target, is_wide: bool, output: str) -> None:
    """List workers and the queues that they serve.

    It only lists them: "headrace worker" runs one. A worker that died stays until another worker of
    its queue takes its jobs over.
    """
    found = run(_load(target))
    if output == "json":
        echo_json([worker_view(worker) for worker in found])
    elif not found:
        note(f"There are no workers in {target.where}.")
    else:
        table(COLUMNS, [worker_line(worker) for worker in found], is_wide=is_wide)


def worker_line(found: ServedQueues) -> list[Cell]:
    """Return a worker's row, see `COLUMNS`."""
    view: WorkerView = worker_view(found)
    started = datetime_of(min(info.registered_ms for info in found.values()))
    return [
        view.name,
        view.version,
        view.app_version,
        count_cell(view.active, "cyan"),
        view.concurrency,
        view.process_slots,
        _lanes(view.lanes),
        span(view.lease_ms),
        ago(started),
        ", ".join(view.queues),
        Coloured(_state(view), "red"),
    ]


def _lanes(lanes: dict[str, int]) -> str:
    """Return a worker's lanes with their slots; none where they are those of any worker."""
    if DEFAULT_LANE in lanes and lanes.keys() <= {DEFAULT_LANE, PROCESS_LANE}:
        return ""
    return ", ".join(f"{lane}:{count}" for lane, count in lanes.items())


def _state(view: WorkerView) -> str:
    """Return a mark for a worker that is dead, or that its peers will soon take for dead."""
    if view.condemned:
        return "died"
    if view.silent_ms > view.lease_ms:
        return f"silent for {span(view.silent_ms)}"
    return ""


async def _load(target: Target) -> list[ServedQueues]:
    async with target.open() as storage:
        return await load_workers(storage)


async def load_workers(storage: Inspector) -> list[ServedQueues]:
    """Return what each worker process says of itself, by queue."""
    found: dict[tuple[str, str, int, bool], ServedQueues] = {}
    for queue in await storage.queues():
        for info in await storage.workers(queue):
            key = (info.name, info.host, info.pid, info.is_condemned)
            found.setdefault(key, {})[queue] = info
    return [found[key] for key in sorted(found)]
