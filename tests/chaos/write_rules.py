"""What must hold after a run, whatever broke: the rules about bulk writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace import JobEvent, JobEventKind
from tests.chaos.evidence import Evidence
from tests.chaos.line import Line, line
from tests.chaos.plan import Kind, kind_of


def whole_and_once(e: Evidence) -> Line:
    def cases() -> Iterator[str]:
        for write in e.writes.values():
            brought = [rows for rows in write.commits() if rows & e.stored]
            for rows in brought:
                kept = sum(is_kept(e, job_id) for job_id in rows)
                if kept < len(rows):
                    yield f"{write.id} has {kept} of {len(rows)} jobs"
            if len(brought) > 1:
                yield f"{write.id} was committed {len(brought)} times"
            if write.is_done and not brought:
                yield f"{write.id} was committed, and has no jobs"

    done = sum(write.is_done for write in e.writes.values())
    tries = sum(len(write.tries) for write in e.writes.values())
    figure = f"of {len(e.writes):,} ({done:,} committed, {tries:,} tries)"
    return line("writes that are not stored whole and once", cases(), figure)


def is_kept(e: Evidence, job_id: str) -> bool:
    """Whether a job is there, or was and is of those that are not kept."""
    return job_id in e.rows or (job_id in e.stories and kind_of(e.labels[job_id]) is Kind.BRIEF)


def nothing_of_the_failed(e: Evidence) -> Line:
    failed = [write for write in e.writes.values() if write.has_surely_failed]
    broken = (write.id for write in failed if any(rows & e.stored for rows in write.commits()))
    return line("failed writes that brought jobs", broken, f"of {len(failed):,}")


def rows_once(e: Evidence) -> Line:
    rows = {job_id for write in e.writes.values() for one in write.tries for job_id in one.rows}
    stored = rows & e.stories.keys()

    def cases() -> Iterator[str]:
        for job_id in stored:
            times = sum(is_first(event) for event in e.stories[job_id])
            if times != 1:
                yield f"{job_id} was stored {times} times"

    return line("jobs of writes that were stored twice", cases(), f"of {len(stored):,}")


def is_first(event: JobEvent) -> bool:
    """Whether a transition says that a job is there, which was not."""
    is_new = event.kind is JobEventKind.QUEUED and event.detail is None
    return is_new or event.kind is JobEventKind.SCHEDULED


def reports_are_right(e: Evidence) -> Line:
    ends = [(write, one) for write in e.writes.values() for one in write.tries if one.end == "done"]
    broken = (
        f"{write.id} has {len(one.rows)} jobs, reported {one.what}"
        for write, one in ends
        if one.what != str(len(one.rows))
    )
    return line("reports of writes that are wrong", broken, f"of {len(ends):,}")


WRITE_RULES: tuple[Callable[[Evidence], Line], ...] = (
    whole_and_once,
    nothing_of_the_failed,
    rows_once,
    reports_are_right,
)
