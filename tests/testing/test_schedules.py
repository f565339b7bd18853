"""Schedules in a kit: they are fired as its time passes, each occurrence at its instant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from headrace import At, Every, InvalidOption, WaitTimeout, Worker
from headrace.app import clients_of
from headrace.events import AttemptEnded, ScheduleFailed, ScheduleFired, SchedulesSynced
from headrace.storage import ScheduleWrite
from headrace.testing import EventLog, Kit, ManualClock, running
from tests.apps.scheduled_app import app, ran, report, sync

BEGIN = datetime(2027, 3, 5, 12, 0, tzinfo=UTC)  # a Friday
NEW_YORK = ZoneInfo("America/New_York")
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def fresh() -> None:
    ran.clear()


def declared(begin: datetime = BEGIN) -> Kit:
    """Return a kit in which what the app declares is fired."""
    return Kit(app, clock=ManualClock(begin))


@pytest.fixture
async def kit() -> AsyncIterator[Kit]:
    """A kit in which the test's own schedules alone are fired."""
    async with Kit(app, clock=ManualClock(BEGIN), schedules=False) as kit:
        yield kit


# What the app declares


async def test_what_the_app_declares_is_there_from_the_begin() -> None:
    async with declared() as kit:
        assert [each.id async for each in app.schedules.list()] == ["monday", "night", "shop-7"]
        monday = await app.schedules.get("monday")
        assert monday is not None
        assert monday.created_at == BEGIN
        assert monday.next_at == datetime(2027, 3, 8, 9, tzinfo=UTC)
        assert len(kit.events.of(SchedulesSynced)) == 1
        kit.assert_not_enqueued()


async def test_declared_schedules_bring_jobs_in_as_time_passes() -> None:
    async with declared() as kit:
        await kit.advance(timedelta(days=7))
        [monday] = kit.assert_enqueued(report, {"region": "eu"}, priority=8)
        assert (monday.schedule, monday.occurrence) == (
            "monday",
            datetime(2027, 3, 8, 9, tzinfo=UTC),
        )
        kit.assert_enqueued(report.options(priority=8).job("eu"))
        kit.assert_enqueued(report, schedule="night", count=7)
        kit.assert_enqueued(sync, {"shop": 7}, count=7 * 24)
        kit.assert_enqueued(sync, occurrence=BEGIN + HOUR, schedule="shop-7")
        assert ran == [], "nothing runs by that alone"


async def test_a_test_about_other_things_leaves_them_out(kit: Kit) -> None:
    await kit.advance(timedelta(days=400))
    assert [each async for each in app.schedules.list()] == []
    kit.assert_not_enqueued()


def test_they_are_there_without_a_loop() -> None:
    with declared() as kit:
        asyncio.run(app.schedules.pause("shop-7"))
        asyncio.run(kit.advance(timedelta(days=1)))
        kit.assert_not_enqueued(sync)
        kit.assert_enqueued(report.job("us"))
        assert len(asyncio.run(kit.run_until_idle())) == 1
        asyncio.run(app.aclose())


async def test_a_kit_without_a_loop_begins_inside_of_one() -> None:
    with declared() as kit:
        assert await app.schedules.get("monday") is not None
        await kit.advance(HOUR)
        kit.assert_enqueued(sync)
        await app.aclose()


async def test_nothing_of_one_kit_is_in_the_next() -> None:
    for _ in range(3):
        async with declared() as kit:
            await app.schedules.pause("monday")
            await app.schedules.put("extra", report.job("extra"), Every(60))
            await kit.advance(HOUR)
            kit.assert_enqueued(sync, count=1)
            kit.assert_enqueued(report, {"region": "extra"}, count=60)
            assert len(kit.events.of(ScheduleFired)) == 61


# Instants


async def test_an_occurrence_is_fired_at_its_instant_to_the_millisecond(kit: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(60), start=BEGIN + timedelta(seconds=60))
    await kit.advance(59.999)
    kit.assert_not_enqueued()
    await kit.advance(0.001)
    [job] = kit.assert_enqueued(sync, {"shop": 1})
    assert job.id == "sync:2027-03-05T12:01:00Z"
    [entry] = await app.schedules.history("sync")
    assert (entry.outcome, entry.at, entry.fired_at) == ("enqueued", kit.now, kit.now)


async def test_schedules_take_turns_by_their_instants(kit: Kit) -> None:
    await app.schedules.put("b", report.job("b"), Every(20))
    await app.schedules.put("a", sync.job(1), Every(30))
    await kit.advance(60)
    assert [job.id for job in kit.enqueued()] == [
        "b:2027-03-05T12:00:20Z",
        "a:2027-03-05T12:00:30Z",
        "b:2027-03-05T12:00:40Z",
        "b:2027-03-05T12:01:00Z",  # by the queues' names
        "a:2027-03-05T12:01:00Z",
    ]
    assert {event.late_ms for event in kit.events.of(ScheduleFired)} == {0}


async def test_jitter_has_its_share_of_time(kit: Kit) -> None:
    put = await app.schedules.put("sync", sync.job(1), Every(3600), jitter=600)
    assert put.next_at is not None
    assert put.due_at is not None
    await kit.advance(put.due_at - kit.now - timedelta(milliseconds=1))
    kit.assert_not_enqueued()
    await kit.advance(0.001)
    kit.assert_enqueued(sync, occurrence=put.next_at)


async def test_a_one_off_is_fired_once(kit: Kit) -> None:
    await app.schedules.put("once", sync.job(1), At(kit.now + HOUR))
    await kit.advance(timedelta(days=30))
    kit.assert_enqueued(sync, occurrence=BEGIN + HOUR)
    assert await app.schedules.get("once") is None, "it has ended long ago"


async def test_what_is_past_is_told_by_the_time_of_the_kit() -> None:
    clock = ManualClock(datetime(2001, 2, 3, tzinfo=UTC))
    async with Kit(app, clock=clock, schedules=False) as kit:
        await app.schedules.put("once", sync.job(1), At(kit.now + HOUR), end=kit.now + 2 * HOUR)
        await kit.advance(2 * HOUR)
        kit.assert_enqueued(sync, occurrence=kit.now - HOUR)
        with pytest.raises(InvalidOption, match="would never fire"):
            await app.schedules.put("once", sync.job(1), At(kit.now - HOUR))


async def test_a_one_off_may_be_due_at_once(kit: Kit) -> None:
    await app.schedules.put("once", sync.job(1), At(kit.now))
    assert len(await kit.run_until_idle()) == 1


async def test_clocks_go_forward_in_new_york() -> None:
    begin = datetime(2027, 3, 12, 12, 0, tzinfo=NEW_YORK)
    async with declared(begin) as kit:
        await app.schedules.delete("shop-7")
        await kit.advance(timedelta(days=3))
        found = [job.occurrence for job in kit.enqueued(schedule="night")]
    assert [each.astimezone(NEW_YORK).isoformat() for each in found if each] == [
        "2027-03-13T02:30:00-05:00",
        "2027-03-14T03:00:00-04:00",  # 02:30 does not exist
        "2027-03-15T02:30:00-04:00",
    ]


async def test_a_ticking_clock_fires_too() -> None:
    clock = ManualClock(BEGIN, ticking=True)
    async with Kit(app, clock=clock, schedules=False) as kit:
        await app.schedules.put("sync", sync.job(1), Every(60))
        await kit.advance(180)
        assert kit.assert_enqueued(sync, count=3)[0].occurrence == BEGIN + timedelta(minutes=1)


# Policies


async def test_a_paused_one_is_passed_over_and_a_resumed_one_goes_on(kit: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(3600))
    await app.schedules.pause("sync")
    await kit.advance(timedelta(days=365), limit=1)
    kit.assert_not_enqueued()
    await app.schedules.resume("sync")
    await kit.advance(2 * HOUR)
    kit.assert_enqueued(sync, count=2)


async def test_a_triggered_one_is_among_what_was_enqueued(kit: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(3600), paused=True)
    job = await app.schedules.trigger("sync")
    kit.assert_enqueued(sync.job(1), id=job.id)
    [attempt] = await kit.run_until_idle()
    assert (attempt.job_id, attempt.result) == (job.id, 1)


async def test_an_occurrence_is_skipped_while_the_last_job_has_not_ended(kit: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(3600), overlap="skip")
    await kit.advance(3 * HOUR)
    kit.assert_enqueued(sync)
    await kit.run_until_idle()
    await kit.advance(HOUR)
    kit.assert_enqueued(sync, count=2)
    outcomes = [(entry.outcome, entry.reason) for entry in await app.schedules.history("sync")]
    assert outcomes == [
        ("enqueued", None),
        ("skipped", "overlap"),
        ("skipped", "overlap"),
        ("enqueued", None),
    ]


@pytest.mark.parametrize(("catch_up", "count"), [("skip", 0), ("latest", 1), (3, 3)])
async def test_time_that_the_clock_moves_alone_is_time_without_a_scheduler(
    kit: Kit, catch_up: str | int, count: int
) -> None:
    await app.schedules.put("sync", sync.job(1), Every(3600), catch_up=catch_up)  # type: ignore[arg-type]  # mypy widens the parameter
    kit.clock.advance(timedelta(hours=5, minutes=30))
    kit.assert_not_enqueued()
    assert len(await kit.run_until_idle()) == count
    kit.assert_enqueued(sync, count=count)
    skipped = [entry for entry in await app.schedules.history("sync") if entry.reason]
    assert [(entry.reason, entry.count) for entry in skipped] == [("catch_up", 5 - count)]


# Running


async def test_a_run_that_may_advance_ends_though_schedules_never_do(kit: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(60))
    assert await kit.run_until_idle(advance=True) == []
    await report.options(delay=150).enqueue("later")
    finished = await kit.run_until_idle(advance=True)
    assert [attempt.result for attempt in finished] == [1, 1, "report of later"]
    assert ran == ["shop 1", "shop 1", "later"], "each ran at its instant"
    assert kit.now == BEGIN + timedelta(seconds=150)


async def test_schedules_are_fired_while_code_waits(kit: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(60))
    job = await report.options(delay=150).enqueue("later")
    assert await job.result() == "report of later"
    assert ran == ["shop 1", "shop 1", "later"]
    with pytest.raises(WaitTimeout):
        await (await report.options(delay=600).enqueue("late")).result(timeout=60)
    kit.assert_enqueued(sync, count=3)


async def test_the_job_of_an_occurrence_can_be_waited_for(kit: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(60))
    await kit.advance(60)
    [job] = kit.assert_enqueued(sync)
    assert await app.job(job.id, task=sync).result() == 1


async def test_a_real_worker_runs_what_schedules_bring_in(kit: Kit) -> None:
    log = EventLog()
    await app.schedules.put("sync", sync.job(1), Every(60))
    async with running(Worker(app, emit=log)):
        await kit.advance(600)
        await log.wait(AttemptEnded, 10)
    kit.assert_enqueued(sync, count=10)
    assert ran == ["shop 1"] * 10


# Inline mode


@pytest.fixture
async def inline() -> AsyncIterator[Kit]:
    async with Kit(app, clock=ManualClock(BEGIN), schedules=False, inline=True) as kit:
        yield kit


async def test_inline_a_job_runs_at_its_instant(inline: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(3600), overlap="skip")
    await inline.advance(2.5 * HOUR)
    assert ran == ["shop 1"] * 2
    ended = [event.at for event in await inline.job_events() if event.kind == "completed"]
    assert ended == [BEGIN + HOUR, BEGIN + 2 * HOUR]


async def test_inline_a_triggered_job_has_run(inline: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(3600))
    job = await app.schedules.trigger("sync")
    assert await job.result() == 1
    assert ran == ["shop 1"]
    assert [entry.outcome for entry in await app.schedules.history("sync")] == ["triggered"]


async def test_inline_an_error_is_raised_when_time_has_passed(inline: Kit) -> None:
    await app.schedules.put("bad", sync.job(-1), Every(3600))
    with pytest.raises(ValueError, match="there is no shop -1"):
        await inline.advance(3 * HOUR)
    assert inline.now == BEGIN + 3 * HOUR
    assert ran == ["shop -1"] * 3


# Bounds


async def test_a_way_with_too_many_instants_ends(kit: Kit) -> None:
    await app.schedules.put("tick", sync.job(1), Every(1))
    with pytest.raises(AssertionError, match=r"at 50 instants .* 'tick' \(every 1 s\): .* limit="):
        await kit.advance(timedelta(days=365), limit=50)
    kit.assert_enqueued(sync, count=50)
    assert kit.now == BEGIN + timedelta(seconds=50)
    await kit.advance(20, limit=20)
    await report.options(delay=timedelta(days=365)).enqueue("late")
    with pytest.raises(AssertionError, match="at 100 instants"):
        await kit.run_until_idle(advance=True, queues=["reports"], limit=100)


async def test_bad_bounds_are_refused(kit: Kit) -> None:
    for limit in (0, -1, 2**40, "9"):
        with pytest.raises(InvalidOption, match="limit"):
            await kit.advance(1, limit=limit)  # type: ignore[arg-type]  # the point


async def test_a_schedule_that_nobody_can_read_keeps_nothing_up(kit: Kit) -> None:
    await app.schedules.put("sync", sync.job(1), Every(60))
    newer = ScheduleWrite(id="newer", expected=0, due_ms=0, body=b"from the future")
    await clients_of(app).current().storage.write_schedules([newer], wakes=False)
    await kit.advance(600)
    kit.assert_enqueued(count=10)
    [failed] = kit.events.of(ScheduleFailed)
    assert failed.schedule == "newer"
