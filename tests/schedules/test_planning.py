"""What becomes of a schedule's due occurrences, without a storage or a clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from headrace import At, Cron, Every
from headrace.planning import LOOKED_AT, ON_TIME_MS, SchedulePlan, plan
from headrace.schedule import HistoryEntry, ScheduleBody
from tests.support.schedules import JOB

ID = "report"
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
NOON = 1_764_417_600_000
"""2025-11-29 12:00 UTC."""


def body(timing: Any = None, **fields: Any) -> ScheduleBody:
    return ScheduleBody(job=JOB, timing=timing or Every(3600), **{"next_ms": NOON, **fields})


def hours(*numbers: int) -> tuple[int, ...]:
    return tuple(NOON + number * HOUR for number in numbers)


def passed(reason: str, *instants: int, at: int) -> HistoryEntry:
    return HistoryEntry(
        instant_ms=instants[0],
        fired_ms=at,
        outcome="skipped",
        reason=reason,  # type: ignore[arg-type]  # one of them
        until_ms=instants[-1] if len(instants) > 1 else None,
        count=len(instants),
    )


def test_what_is_due_is_fired_and_the_next_one_awaited() -> None:
    assert plan(body(), ID, NOON) == SchedulePlan(hours(0), (), NOON + HOUR)


def test_nothing_is_fired_a_millisecond_early() -> None:
    assert plan(body(), ID, NOON - 1) == SchedulePlan((), (), NOON)


def test_an_ended_schedule_fires_nothing() -> None:
    assert plan(body(next_ms=None), ID, NOON) == SchedulePlan((), (), None)


def test_a_one_off_fires_once() -> None:
    once = At(datetime.fromtimestamp(NOON / 1000, UTC))
    assert plan(body(once), ID, NOON + 5) == SchedulePlan((NOON,), (), None)


def test_all_that_are_on_time_are_fired_oldest_first() -> None:
    found = plan(body(Every(20)), ID, NOON + MINUTE)
    assert found.fire == tuple(NOON + each * SECOND for each in (0, 20, 40, 60))
    assert found.next_ms == NOON + 80 * SECOND


@pytest.mark.parametrize(("late_ms", "fires"), [(0, 1), (1, 0)])
def test_an_occurrence_is_on_time_for_a_minute(late_ms: int, fires: int) -> None:
    assert len(plan(body(), ID, NOON + ON_TIME_MS + late_ms).fire) == fires


@pytest.mark.parametrize(
    ("catch_up", "fired"), [("skip", ()), ("latest", (3,)), (2, (2, 3)), (9, (0, 1, 2, 3))]
)
def test_late_ones_are_caught_up_as_asked(catch_up: Any, fired: tuple[int, ...]) -> None:
    now = NOON + 3 * HOUR + 2 * MINUTE
    found = plan(body(catch_up=catch_up), ID, now)
    left_out = [each for each in range(4) if each not in fired]
    entries = (passed("catch_up", *hours(*left_out), at=now),) if left_out else ()
    assert found == SchedulePlan(hours(*fired), entries, NOON + 4 * HOUR)


@pytest.mark.parametrize(
    ("catch_up", "fired"), [("skip", (3,)), ("latest", (3,)), (1, (2, 3)), (2, (1, 2, 3))]
)
def test_the_latest_is_not_caught_up_where_one_is_on_time(
    catch_up: Any, fired: tuple[int, ...]
) -> None:
    assert plan(body(catch_up=catch_up), ID, NOON + 3 * HOUR).fire == hours(*fired)


def test_a_paused_schedule_passes_over_all() -> None:
    now = NOON + 2 * HOUR
    found = plan(body(is_paused=True, catch_up=5), ID, now)
    assert found == SchedulePlan((), (passed("paused", *hours(0, 1, 2), at=now),), NOON + 3 * HOUR)


def test_no_occurrence_overlaps_a_job_that_runs() -> None:
    found = plan(body(overlap="skip"), ID, NOON, is_running=True)
    assert found == SchedulePlan((), (passed("overlap", NOON, at=NOON),), NOON + HOUR)
    assert plan(body(), ID, NOON, is_running=True).fire == hours(0)


def test_of_several_the_first_is_fired_where_none_may_overlap() -> None:
    now = NOON + 3 * HOUR + 2 * MINUTE
    found = plan(body(overlap="skip", catch_up=3), ID, now)
    assert found.fire == hours(1)
    assert found.passed == (
        passed("catch_up", *hours(0), at=now),
        passed("overlap", *hours(2, 3), at=now),
    )


def test_none_is_fired_before_the_start_or_after_the_end() -> None:
    window = body(Every(20), start_ms=NOON + 5 * SECOND, end_ms=NOON + 46 * SECOND)
    found = plan(window, ID, NOON + MINUTE)
    assert found.fire == tuple(NOON + each * SECOND for each in (5, 25, 45))
    assert found.next_ms is None


def test_an_occurrence_waits_for_its_share_of_the_jitter() -> None:
    spread = body(jitter_ms=HOUR // 2)
    fire_ms = spread.fire_ms(ID, NOON)
    assert NOON < fire_ms <= NOON + HOUR // 2
    assert plan(spread, ID, fire_ms - 1) == SchedulePlan((), (), NOON)
    assert plan(spread, ID, fire_ms) == SchedulePlan((NOON,), (), NOON + HOUR)


def test_one_is_on_time_by_the_instant_that_the_jitter_gives() -> None:
    spread = body(jitter_ms=HOUR // 2)
    fire_ms = spread.fire_ms(ID, NOON)
    assert plan(spread, ID, fire_ms + ON_TIME_MS).fire == (NOON,)
    assert plan(spread, ID, fire_ms + ON_TIME_MS + 1).fire == ()


def test_jitter_never_turns_the_order() -> None:
    # More than the gap, as where a clock change makes one short.
    spread = body(Every(1), jitter_ms=20 * SECOND)
    fires = {instant: spread.fire_ms(ID, instant) for instant in range(NOON, NOON + MINUTE, SECOND)}
    now = NOON + 25 * SECOND
    found = plan(spread, ID, now)
    assert found.fire == tuple(range(NOON, found.next_ms or 0, SECOND))
    assert all(fires[instant] <= now for instant in found.fire)
    assert fires[found.next_ms or 0] > now


def test_a_thousand_are_looked_at_and_older_ones_are_missed() -> None:
    year = 365 * 24 * HOUR
    found = plan(body(Every(1), catch_up=LOOKED_AT), ID, NOON + year)
    assert len(found.fire) == LOOKED_AT
    assert found.fire[-1] == NOON + year
    assert found.passed == (
        HistoryEntry(
            instant_ms=NOON,
            fired_ms=NOON + year,
            outcome="missed",
            until_ms=NOON + year - LOOKED_AT * SECOND,
            count=0,
        ),
    )


def test_the_older_ones_of_a_paused_schedule_are_not_called_missed() -> None:
    found = plan(body(Every(1), is_paused=True), ID, NOON + HOUR)
    assert [(entry.outcome, entry.reason) for entry in found.passed] == [("skipped", "paused")] * 2


def test_an_instant_that_the_timing_has_no_more_is_dropped() -> None:
    # As when new rules of a time zone have moved it.
    found = plan(body(Cron("30 12 * * *")), ID, NOON)
    assert found == SchedulePlan((), (), NOON + HOUR // 2)


bodies = st.builds(
    body,
    st.sampled_from([Every(7), Every(61), Every(0.25), Cron("*/5 * * * *"), Cron("0 9 * * 1")]),
    catch_up=st.one_of(st.sampled_from(["skip", "latest"]), st.integers(1, 1_000)),
    jitter_ms=st.integers(0, 7_000),
    overlap=st.sampled_from(["allow", "skip"]),
    is_paused=st.booleans(),
    end_ms=st.one_of(st.none(), st.integers(NOON, NOON + HOUR)),
)


@given(bodies, st.integers(-HOUR, 40 * HOUR), st.booleans())
def test_a_plan_goes_forward_in_order_and_says_what_became_of_each(
    schedule: ScheduleBody, later_ms: int, is_running: Any
) -> None:
    now = NOON + later_ms
    found = plan(schedule, ID, now, is_running=is_running)
    assert list(found.fire) == sorted(set(found.fire))
    assert all(schedule.fire_ms(ID, instant) <= now for instant in found.fire)
    assert all(NOON <= instant <= (schedule.end_ms or now) for instant in found.fire)
    if found.next_ms is not None:
        assert found.next_ms >= NOON
        assert all(instant < found.next_ms for instant in found.fire)
        assert schedule.fire_ms(ID, found.next_ms) > now
    told = sum(entry.count for entry in found.passed) + len(found.fire)
    assert told <= LOOKED_AT
    entries = [entry.instant_ms for entry in found.passed]
    assert entries == sorted(entries)
    if not any(entry.count == 0 for entry in found.passed):
        last = now if found.next_ms is None else found.next_ms - 1
        last = last if schedule.end_ms is None else min(last, schedule.end_ms)
        assert told == len(schedule.timing.newest(NOON - 1, last, LOOKED_AT))


@given(bodies, st.lists(st.integers(0, ON_TIME_MS - 1), max_size=20))
def test_looked_at_once_a_minute_each_occurrence_is_fired_once(
    schedule: ScheduleBody, steps: list[int]
) -> None:
    schedule = replace(
        schedule, is_paused=False, overlap="allow", next_ms=schedule.next_after(NOON)
    )
    expected = occurrences(schedule)
    now, fired = NOON, list[int]()
    for step in steps:
        now += step
        found = plan(schedule, ID, now)
        fired += found.fire
        schedule = replace(schedule, next_ms=found.next_ms)
    due = takewhile(lambda instant: schedule.fire_ms(ID, instant) <= now, expected)
    assert fired == list(due)


def occurrences(schedule: ScheduleBody) -> Iterator[int]:
    instant = schedule.next_ms
    while instant is not None:
        yield instant
        instant = schedule.next_after(instant)
