"""What a fault explains: a stall, two runs of a job at once, a slow recovery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from headrace import JobEvent
from tests.chaos.evidence import Evidence
from tests.chaos.notes import Run, Window
from tests.chaos.plan import Kind, kind_of
from tests.chaos.settings import LEASE_S, NOISE_S, RECOVERED_S

KILLS = frozenset({"kill-worker", "kill-several", "kill-supervised", "kill-writing"})
"""Faults that kill the worker's process whose id they name."""

CUT_OFF = frozenset({"pause-long", "half-open", "partition"})
"""Faults that keep a worker from its storage for longer than its lease."""

APART = frozenset(
    {"kill-producer", "kill-reader", "kill-slot", "kill-subscribers", "flush-functions"}
)
"""Faults that hold up nobody who watches for dead workers."""

WORKER_DIED = "WorkerDied"
SOON_S = 1.0
TAKEN_BACK_S = RECOVERED_S + NOISE_S


def is_of(window: Window, worker: str) -> bool:
    """Whether a fault was of a worker, or of the member that it belongs to."""
    name = window.target.partition(":")[0]
    return worker == name or worker.rpartition("-")[0] == name


def was_cut_off(e: Evidence, worker: str, at: float) -> bool:
    """Whether a worker was kept from its storage so long that others could take its jobs."""
    return any(
        window.fault in CUT_OFF
        and is_of(window, worker)
        and window.begin <= at <= window.end + TAKEN_BACK_S
        for window in e.windows
    )


def is_explained(e: Evidence, stall: JobEvent) -> bool:
    """Whether a death or a fault explains that a job was charged a stall."""
    at = e.at(stall)
    if stall.detail != WORKER_DIED:
        is_own_deed = kind_of(e.labels.get(stall.job_id, "plain.")) is Kind.CRASH
        return is_own_deed or any(
            window.fault == "kill-slot" and window.begin - SOON_S <= at <= window.begin + NOISE_S
            for window in e.windows
        )
    owner = e.owners.get(stall.incarnation or "")
    if owner is None:
        return True  # it never ran anything, and has left no line to tell its process by
    if was_cut_off(e, owner.worker, at):
        return True
    return e.last_seen[owner.pid] <= at and (was_killed(e, owner) or could_not_leave(e, owner))


def was_killed(e: Evidence, owner: Run) -> bool:
    """Whether a fault or a job killed a worker's process, or the supervisor of it."""
    return owner.pid in e.poisoned or any(
        window.target == f"{owner.worker}:{owner.pid}"
        if window.fault in KILLS
        else window.fault == "kill-supervisor" and is_of(window, owner.worker)
        for window in e.windows
    )


def could_not_leave(e: Evidence, owner: Run) -> bool:
    """Whether a worker was stopped by SIGTERM while something kept it from handing back."""
    stops = [w for w in e.windows if w.fault == "restart-worker" and is_of(w, owner.worker)]
    return any(
        other.begin <= stop.end + SOON_S and other.end >= stop.begin - SOON_S
        for stop in stops
        for other in e.windows
        if other.fault not in {*APART, *KILLS, "restart-worker", "kill-supervisor"}
    )


def overlapping(e: Evidence) -> Iterator[tuple[Run, Run]]:
    """Yield two runs of one job, the second of which began while the first went on.

    A run that was never left ends with the last line of its process: a killed one writes no more.
    """
    open_runs: defaultdict[str, dict[int, Run]] = defaultdict(dict)
    for run in e.runs:
        others = open_runs[run.job_id]
        if run.word != "start":
            others.pop(run.epoch, None)
            continue
        for other in others.values():
            if e.last_seen[other.pid] > run.at:
                yield other, run
        others[run.epoch] = run


def excused_overlap(e: Evidence, first: Run, second: Run) -> bool:
    """Whether the first worker was cut off, and could not know that the job is another's."""
    return was_cut_off(e, first.worker, second.at)


def had_witness(e: Evidence, kill: Window) -> bool:
    """Whether another worker of all queues ran from before a death until the jobs were to be back.

    The promise holds while one runs; and a process that has just begun has more to do.
    """
    return any(
        first.at <= kill.begin
        and e.last_seen[pid] >= kill.begin + RECOVERED_S
        and not first.worker.startswith("alone")
        for pid, first in e.first_seen.items()
    )


def was_disturbed(e: Evidence, kill: Window) -> bool:
    """Whether another fault may have held up the recovery from a death."""
    return not had_witness(e, kill) or any(
        other.begin <= kill.begin + RECOVERED_S and other.end >= kill.begin - LEASE_S
        for other in e.windows
        if other is not kill and other.fault not in APART
    )
