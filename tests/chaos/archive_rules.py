"""What must hold after a run, whatever broke: the rules about the archive and events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from tests.chaos.evidence import Evidence
from tests.chaos.line import Line, line


def archived_once(e: Evidence) -> Line:
    times = Counter((one.queue, one.job_id, one.state) for one in e.archive)

    def cases() -> Iterator[str]:
        kept = {(r.queue, r.id, str(r.state)) for r in e.rows.values() if r.state.is_terminal}
        for queue, job_id, state in times.keys() | kept:
            found = times[queue, job_id, state]
            if found != 1 or (queue, job_id, state) not in kept:
                yield f"{job_id} ({state}) was archived {found} times"

    return line("ended jobs not archived just once", cases(), f"of {len(times):,}")


def events_are_all_read(e: Evidence) -> Line:
    read: defaultdict[str, dict[int, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
    for one in e.reads:
        read[one.queue][one.number].add((one.kind, one.job_id))
    told = {(v.queue, v.number): {(str(v.kind), v.job_id)} for v in e.events}

    def cases() -> Iterator[str]:
        for queue, numbers in read.items():
            missing = set(range(1, max(numbers) + 1)) - numbers.keys()
            if missing:
                yield f"{queue} has a gap at {min(missing)}, and {len(missing)} in all"
            for number, found in numbers.items():
                if found != told.get((queue, number)):
                    yield f"{queue} {number} was read as {sorted(found)}"
        for event in e.events:
            # Those of workers that leave come when the reader is gone.
            if event.kind.is_of_job and event.number not in read[event.queue]:
                yield f"{event.queue} {event.number} {event.kind} {event.job_id} was not read"

    known = sum(map(len, read.values()))
    figure = f"of {known:,} ({len(e.reads) - known:,} read again)"
    return line("events missed or mixed up by their reader", cases(), figure)


ARCHIVE_RULES: tuple[Callable[[Evidence], Line], ...] = (archived_once, events_are_all_read)
