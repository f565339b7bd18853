"""What is stored of a schedule that is set, anew or in place of what was there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from headrace import At, Every
from headrace.schedule import ScheduleBody
from tests.support.schedules import JOB

MINUTE = 60_000
NOON = 1_764_417_600_000


def body(timing: Any = None, **fields: Any) -> ScheduleBody:
    return ScheduleBody(job=JOB, timing=timing or Every(60), **fields)


def at(instant_ms: int) -> At:
    return At(datetime.fromtimestamp(instant_ms / 1000, UTC))


def test_a_new_one_begins_with_its_next_occurrence() -> None:
    found = body().in_place_of(None, NOON)
    assert (found.next_ms, found.created_ms, found.changed_ms) == (NOON + MINUTE, NOON, NOON)


def test_a_one_off_that_has_just_passed_is_still_to_come() -> None:
    assert body(at(NOON - 59_000)).in_place_of(None, NOON).next_ms == NOON - 59_000
    assert body(at(NOON - 60_000)).in_place_of(None, NOON).next_ms is None


def test_a_one_off_that_has_been_fired_is_not_fired_again() -> None:
    fired = replace(body(at(NOON)), last_ms=NOON, last_job_id="the job", created_ms=1, changed_ms=1)
    assert body(at(NOON)).in_place_of(fired, NOON + 5).next_ms is None
    assert body(at(NOON + 1)).in_place_of(fired, NOON + 5).next_ms == NOON + 1


def test_one_in_place_of_another_keeps_its_past() -> None:
    before = body(created_ms=1, changed_ms=2, last_ms=3, last_job_id="job", next_ms=NOON + MINUTE)
    found = body(Every(3600)).in_place_of(before, NOON)
    assert (found.created_ms, found.last_ms, found.last_job_id) == (1, 3, "job")
    assert (found.changed_ms, found.next_ms) == (NOON, NOON + 60 * MINUTE)


def test_a_due_occurrence_that_nobody_has_fired_yet_stays() -> None:
    before = body(next_ms=NOON)
    assert body(catch_up="latest").in_place_of(before, NOON + 5).next_ms == NOON
    assert body(Every(30)).in_place_of(before, NOON + 5).next_ms == NOON


def test_a_due_occurrence_of_a_paused_one_goes() -> None:
    before = body(next_ms=NOON, is_paused=True)
    assert body().in_place_of(before, NOON + 5).next_ms == NOON + MINUTE


def test_a_due_occurrence_goes_where_the_new_timing_has_none() -> None:
    before = body(next_ms=NOON)
    assert body(Every(7)).in_place_of(before, NOON + 5).next_ms == Every(7).after(NOON + 5)
    early = body(end_ms=NOON - 1).in_place_of(before, NOON + 5)
    assert early.next_ms is None
