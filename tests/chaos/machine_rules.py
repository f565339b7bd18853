"""What must hold after a run: the rules about processes, stored data and times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from headrace.events import JobEventKind
from tests.chaos.evidence import Evidence
from tests.chaos.excuses import KILLS, was_disturbed
from tests.chaos.line import Line, line
from tests.chaos.notes import Run, Window
from tests.chaos.plan import Kind
from tests.chaos.settings import NOISE_S, RECOVERED_S

GROWTH_LIMIT = 5_000_000
WORKER_LIMIT = 200_000_000
FILES_LIMIT = 100


def recovered_in_time(e: Evidence) -> Line:
    times = list(recoveries(e))
    alone = [seconds for seconds, kill in times if not was_disturbed(e, kill)]
    slowest = f", slowest {max(alone):.1f} s" if alone else ""
    broken = (f"{s:.1f} s" for s in alone if s > RECOVERED_S + NOISE_S)
    figure = f"of {len(times)} ({len(alone)} undisturbed{slowest}, promised {RECOVERED_S:g} s)"
    return line("jobs of killed workers back too late", broken, figure)


def recoveries(e: Evidence) -> Iterator[tuple[float, Window]]:
    """Yield how long after a kill each job was back that the process ran."""
    left: defaultdict[int, dict[str, Run]] = defaultdict(dict)
    for run in e.runs:
        if run.word == "start":
            left[run.pid][run.job_id] = run
        else:
            left[run.pid].pop(run.job_id, None)
    for kill in kills(e):
        for job_id in left[int(kill.target.partition(":")[2])]:
            stalls = [
                e.at(event)
                for event in e.stories.get(job_id, [])
                if event.kind is JobEventKind.STALLED and e.at(event) > kill.begin
            ]
            if stalls:
                yield stalls[0] - kill.begin, kill


def kills(e: Evidence) -> Iterator[Window]:
    """Yield the deaths of workers: by a fault, and by a job."""
    yield from (window for window in e.windows if window.fault in KILLS)
    for run in e.poisoned.values():
        yield Window(Kind.POISON, f"{run.worker}:{run.pid}", run.at, run.at)


def data_agree(e: Evidence) -> Line:
    return line("counts, places and keys that disagree", e.machine.problems)


def nobody_is_left(e: Evidence) -> Line:
    return line("processes left", e.machine.left)


def nobody_ended_unasked(e: Evidence) -> Line:
    return line("processes that ended unasked", e.machine.unasked)


def faults_struck(e: Evidence) -> Line:
    kinds = {window.fault for window in e.windows}
    figure = f"({len(e.windows)} strikes of {len(kinds)} kinds)"
    return line("faults that did not come about", e.machine.failed_faults, figure)


def room_is_given_back(e: Evidence) -> Line:
    machine = e.machine
    broken = []
    if machine.growth_bytes > GROWTH_LIMIT:
        broken.append("the storage keeps room for jobs that were purged")
    if machine.worker_bytes > WORKER_LIMIT or machine.worker_files > FILES_LIMIT:
        broken.append("a worker has grown")
    figure = (
        f"(storage {machine.growth_bytes / 1e6:+.1f} MB, largest worker "
        f"{machine.worker_bytes / 1e6:.0f} MB, {machine.worker_files} files)"
    )
    return line("room that is not given back", broken, figure)


MACHINE_RULES: tuple[Callable[[Evidence], Line], ...] = (
    recovered_in_time,
    data_agree,
    nobody_is_left,
    nobody_ended_unasked,
    faults_struck,
    room_is_given_back,
)
