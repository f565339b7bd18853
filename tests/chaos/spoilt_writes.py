"""Runs that break a rule about bulk writes, the archive or the events' reader each."""

from __future__ import annotations

from collections.abc import Callable

from headrace.events import JobEventKind
from tests.chaos.written import OTHER, PLAIN, THIRD, WRITE, Story


def write_in_part(story: Story) -> None:
    story.write(("lost", [PLAIN, OTHER]))


def committed_write_lost(story: Story) -> None:
    story.write(("done", [OTHER, THIRD]))


def row_deleted(story: Story) -> None:
    story.write(("done", [OTHER, THIRD]), stored=(OTHER, THIRD))
    del story.rows[OTHER]


def write_committed_twice(story: Story) -> None:
    story.write(("lost", [OTHER]), ("done", [THIRD]), stored=(OTHER, THIRD))


def failed_write_stored(story: Story) -> None:
    story.write(("failed", [OTHER, THIRD]), stored=(OTHER, THIRD))


def row_queued_twice(story: Story) -> None:
    story.write(("done", [OTHER]), stored=(OTHER,))
    story.event(JobEventKind.QUEUED, OTHER, at=2, epoch=0)


def write_reported_short(story: Story) -> None:
    story.write(("done", [OTHER, THIRD]), stored=(OTHER, THIRD))
    story.writes[WRITE].tries[0].what = "1"


def job_not_archived(story: Story) -> None:
    story.spoil_archive = list.pop


def job_archived_twice(story: Story) -> None:
    story.spoil_archive = lambda lines: lines.append(lines[0])


def archived_in_another_state(story: Story) -> None:
    story.spoil_archive = lambda lines: lines.append(lines.pop()._replace(state="cancelled"))


def event_passed_over(story: Story) -> None:
    story.spoil_reads = lambda lines: lines.pop(1)


def last_event_not_read(story: Story) -> None:
    story.spoil_reads = list.pop


def number_given_twice(story: Story) -> None:
    story.spoil_reads = lambda lines: lines.append(lines[0]._replace(kind="failed"))


WRITE_AND_READ_CASES: dict[str, list[Callable[[Story], None]]] = {
    "writes that are not stored whole and once": [
        write_in_part,
        committed_write_lost,
        row_deleted,
        write_committed_twice,
    ],
    "failed writes that brought jobs": [failed_write_stored],
    "jobs of writes that were stored twice": [row_queued_twice],
    "reports of writes that are wrong": [write_reported_short],
    "ended jobs not archived just once": [
        job_not_archived,
        job_archived_twice,
        archived_in_another_state,
    ],
    "events missed or mixed up by their reader": [
        event_passed_over,
        last_event_not_read,
        number_given_twice,
    ],
}
