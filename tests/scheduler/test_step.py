"""One step of a scheduler: what is due is fired once, and moved on."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from headrace.errors import StorageFault
from headrace.events import ScheduleFailed, ScheduleFired, ScheduleSkipped, WorkerEvent
from headrace.job import CancelOutcome, EnqueueOutcome, JobState
from headrace.schedule import ENDED_TTL_MS, HistoryEntry, occurrence_id
from headrace.scheduler.step import FIRE_WITHIN_MS, HOLD_MS, TAKEN_LIMIT, Steps
from headrace.storage import (
    BATCH_LIMIT_BYTES,
    CallId,
    End,
    JobRequest,
    Occurrence,
    ScheduleWrite,
)
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing import EventLog, ManualClock
from headrace.timing import At, Every
from tests.support.schedules import JOB, QUEUE, edit, history, put, stored

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)
MINUTE_MS = 60_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
async def storage(clock: ManualClock) -> AsyncIterator[SqliteStorage]:
    opened = SqliteStorage(f"memory://step-{secrets.token_hex(6)}", clock=clock)
    yield opened
    await opened.aclose()


@pytest.fixture
def log() -> EventLog:
    return EventLog()


@pytest.fixture
def steps(storage: SqliteStorage, log: EventLog) -> Steps:
    return Steps(storage, emit=log)


async def job_ids(storage: SqliteStorage, queue: str = QUEUE) -> list[str]:
    """Return the ids of the jobs that wait in a queue, in their order."""
    page = await storage.list_jobs(queue, JobState.QUEUED, limit=500)
    return [row.id for row in page.rows]


async def test_what_is_due_is_fired_under_its_instant_and_moved_on(
    storage: SqliteStorage, clock: ManualClock, steps: Steps, log: EventLog
) -> None:
    await put(storage, "report", Every(60))
    assert await steps.step() == MINUTE_MS
    assert await job_ids(storage) == []
    clock.advance(60.01)
    assert await steps.step() == 0
    assert await job_ids(storage) == ["report:2026-11-29T12:01:00Z"]
    assert await steps.step() == MINUTE_MS - 10
    assert await job_ids(storage) == ["report:2026-11-29T12:01:00Z"]
    body = await stored(storage, "report")
    assert body is not None
    assert body.next_ms == NOON_MS + 2 * MINUTE_MS
    assert (body.last_ms, body.last_job_id) == (NOON_MS + MINUTE_MS, "report:2026-11-29T12:01:00Z")
    assert await history(storage, "report") == [
        HistoryEntry(
            instant_ms=NOON_MS + MINUTE_MS,
            fired_ms=NOON_MS + MINUTE_MS + 10,
            outcome="enqueued",
            job_id="report:2026-11-29T12:01:00Z",
        )
    ]
    [fired] = log.of(ScheduleFired)
    assert (fired.schedule, fired.queue, fired.outcome, fired.late_ms) == (
        "report",
        QUEUE,
        "enqueued",
        10,
    )


async def test_who_dies_before_it_moves_a_schedule_on_leaves_no_second_job_to_the_next(
    storage: SqliteStorage, clock: ManualClock
) -> None:
    def die(event: WorkerEvent) -> None:
        raise RuntimeError(type(event).__name__)

    await put(storage, "report", Every(60))
    clock.advance(60)
    with pytest.raises(RuntimeError, match="ScheduleFired"):
        await Steps(storage, emit=die).step()
    [job_id] = await job_ids(storage)
    # Not even if the job has gone meanwhile.
    assert await storage.cancel(QUEUE, [job_id]) == [CancelOutcome.CANCELLED]
    log = EventLog()
    heir = Steps(storage, emit=log)
    assert await heir.step() == HOLD_MS
    clock.advance(HOLD_MS / 1000)
    assert await heir.step() == 0
    assert await job_ids(storage) == []
    assert [event.outcome for event in log.of(ScheduleFired)] == ["duplicate"]
    body = await stored(storage, "report")
    assert body is not None
    assert body.next_ms == NOON_MS + 2 * MINUTE_MS


async def test_all_occurrences_that_are_on_time_are_fired_the_oldest_first(
    storage: SqliteStorage, clock: ManualClock, steps: Steps
) -> None:
    await put(storage, "report", Every(10))
    clock.advance(35)
    await steps.step()
    assert await job_ids(storage) == [
        f"report:2026-11-29T12:00:{second}Z" for second in (10, 20, 30)
    ]


async def test_what_is_passed_over_is_told_and_noted(
    storage: SqliteStorage, clock: ManualClock, steps: Steps, log: EventLog
) -> None:
    await put(storage, "report", Every(60), catch_up="skip")
    clock.advance(10 * 60)
    await steps.step()
    # The last two have been due for a minute at most.
    assert await job_ids(storage) == [f"report:2026-11-29T12:{minute:02}:00Z" for minute in (9, 10)]
    [skipped] = log.of(ScheduleSkipped)
    assert (skipped.reason, skipped.count) == ("catch_up", 8)
    assert (skipped.since_ms, skipped.until_ms) == (NOON_MS + MINUTE_MS, NOON_MS + 8 * MINUTE_MS)
    assert [entry.outcome for entry in await history(storage, "report")] == [
        "skipped",
        "enqueued",
        "enqueued",
    ]


async def test_a_paused_schedule_is_moved_on_in_silence(
    storage: SqliteStorage, clock: ManualClock, steps: Steps, log: EventLog
) -> None:
    await put(storage, "report", Every(60), is_paused=True)
    clock.advance(60)
    await steps.step()
    assert await job_ids(storage) == []
    assert log.events == []
    assert [entry.reason for entry in await history(storage, "report")] == ["paused"]


async def test_many_occurrences_of_one_schedule_are_fired_in_several_calls(
    storage: SqliteStorage, clock: ManualClock, steps: Steps, log: EventLog
) -> None:
    await put(storage, "report", Every(0.1), catch_up=1000)
    clock.advance(200)
    while await steps.step() == 0:
        pass
    fired = log.of(ScheduleFired)
    assert len(fired) == len({event.job_id for event in fired}) == 1000
    assert [event.outcome for event in fired] == ["enqueued"] * 1000
    assert fired[-1].job_id == occurrence_id("report", NOON_MS + 200_000)
    kept = await history(storage, "report")
    assert [entry.job_id for entry in kept] == [event.job_id for event in fired[-100:]]


async def test_more_schedules_than_a_step_takes_are_fired_in_several(
    storage: SqliteStorage, clock: ManualClock, steps: Steps, log: EventLog
) -> None:
    for number in range(TAKEN_LIMIT + 1):
        await put(storage, f"report-{number}", Every(60))
    clock.advance(60)
    assert await steps.step() == 0
    assert len(log.of(ScheduleFired)) == TAKEN_LIMIT
    assert await steps.step() == 0
    assert len(log.of(ScheduleFired)) == TAKEN_LIMIT + 1
    assert await steps.step() == MINUTE_MS


async def test_schedules_of_several_queues_are_fired_into_theirs(
    storage: SqliteStorage, clock: ManualClock, steps: Steps
) -> None:
    for number in range(6):
        job = replace(JOB, queue=f"queue-{number % 3}")
        await put(storage, f"report-{number}", Every(60), job=job)
    clock.advance(60)
    await steps.step()
    for number in range(3):
        assert len(await job_ids(storage, f"queue-{number}")) == 2


async def test_what_can_not_be_read_is_left_as_it_is_and_keeps_nobody_up(
    storage: SqliteStorage, clock: ManualClock, steps: Steps, log: EventLog
) -> None:
    await storage.write_schedules(
        [ScheduleWrite(id="newer", expected=0, due_ms=NOON_MS, body=b"\x81\xa3new\x01")],
        wakes=False,
    )
    await put(storage, "report", Every(60))
    clock.advance(60)
    for _ in range(3):
        await steps.step()
        clock.advance(HOLD_MS / 1000)
    assert await steps.step() is None
    assert await job_ids(storage) == ["report:2026-11-29T12:01:00Z"]
    assert [event.schedule for event in log.of(ScheduleFailed)] == ["newer"]
    [left] = (await storage.read_schedules(["newer"])).schedules
    assert left.body == b"\x81\xa3new\x01"


async def test_who_can_not_read_a_schedule_leaves_it_to_others_at_once(
    storage: SqliteStorage, clock: ManualClock, steps: Steps
) -> None:
    """Else the workers of an old release would keep a new one's schedules from those of that."""
    await storage.write_schedules(
        [ScheduleWrite(id="newer", expected=0, due_ms=NOON_MS, body=b"\xc1")], wakes=False
    )
    assert await steps.step() is None
    clock.advance(HOLD_MS / 1000)
    for _ in range(5):
        assert await steps.step() is None
        clock.advance_ms(1)
        newer = await storage.take_schedules(limit=1, hold_ms=1)
        assert [each.id for each in newer.schedules] == ["newer"]
        clock.advance_ms(1)


async def test_a_schedule_that_skips_overlaps_waits_for_the_end_of_its_last_job(
    storage: SqliteStorage, clock: ManualClock, steps: Steps, log: EventLog
) -> None:
    await put(storage, "report", Every(60), overlap="skip")
    for _ in range(2):
        clock.advance(60)
        await steps.step()
    [first] = await job_ids(storage)
    assert [event.reason for event in log.of(ScheduleSkipped)] == ["overlap"]
    await storage.cancel(QUEUE, [first])
    clock.advance(60)
    await steps.step()
    assert await job_ids(storage) == ["report:2026-11-29T12:03:00Z"]


async def test_a_schedule_that_has_ended_is_deleted_a_week_later(
    storage: SqliteStorage, clock: ManualClock, steps: Steps
) -> None:
    await put(storage, "once", At(datetime(2026, 11, 29, 12, 1, tzinfo=UTC)))
    clock.advance(60)
    await steps.step()
    assert await job_ids(storage) == ["once:2026-11-29T12:01:00Z"]
    assert await steps.step() == ENDED_TTL_MS
    clock.advance(ENDED_TTL_MS / 1000)
    await steps.step()
    assert await stored(storage, "once") is None
    assert await history(storage, "once") == []
    assert await steps.step() is None


class Meddled(SqliteStorage):
    """A storage in which something happens before or after occurrences are fired."""

    before: Callable[[], object] = staticmethod(lambda: None)
    after: Callable[[], Awaitable[object]] | None = None

    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        """Fire between the two."""
        self.before()
        answer = await super().fire(queue, occurrences, until_ms=until_ms)
        if self.after is not None:
            await self.after()
        return answer


class Faulty(SqliteStorage):
    """A storage in which one queue can't be used."""

    async def fire(
        self, queue: str, occurrences: Sequence[Occurrence], *, until_ms: int
    ) -> list[EnqueueOutcome] | None:
        """Fire into the other queues."""
        if queue == "broken":
            raise StorageFault("strange data in the queue")
        return await super().fire(queue, occurrences, until_ms=until_ms)

    async def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        """Look at the other queues."""
        if queue == "broken":
            raise StorageFault("strange data in the queue")
        return await super().watch(queue, job_ids, channel=channel)


async def test_a_queue_that_can_not_be_used_keeps_no_other_ones_schedules_up(
    clock: ManualClock, log: EventLog
) -> None:
    storage = Faulty(f"memory://step-{secrets.token_hex(6)}", clock=clock)
    broken = replace(JOB, queue="broken")
    await put(storage, "a", Every(60), job=broken)
    await put(storage, "b", Every(60), job=broken, overlap="skip", last_job_id="x")
    await put(storage, "c", Every(60), overlap="skip", last_job_id="x")
    clock.advance(60)
    steps = Steps(storage, emit=log)
    await steps.step()
    assert await job_ids(storage) == ["c:2026-11-29T12:01:00Z"]
    assert {event.schedule for event in log.of(ScheduleFailed)} == {"a", "b"}
    # They are looked at again when the hold is over, and told of once.
    clock.advance(HOLD_MS / 1000)
    await steps.step()
    assert len(log.of(ScheduleFailed)) == 2
    for schedule_id in "ab":
        body = await stored(storage, schedule_id)
        assert body is not None
        assert body.next_ms == NOON_MS + MINUTE_MS
    await storage.aclose()


async def test_a_queue_that_is_full_holds_up_no_other_and_gets_its_jobs_once_there_is_room(
    storage: SqliteStorage, clock: ManualClock, steps: Steps, log: EventLog
) -> None:
    full = "a-full-queue"
    await storage.configure(full, max_length=1)
    await storage.enqueue(full, [JobRequest("x", full, "t", b"{}")], call=CallId("c", 1))
    for name in "ab":
        await put(storage, f"full-{name}", Every(60), job=replace(JOB, queue=full))
    await put(storage, "report", Every(60))
    clock.advance(60)
    await steps.step()
    assert await job_ids(storage) == ["report:2026-11-29T12:01:00Z"]
    assert await job_ids(storage, full) == ["x"]
    assert {event.schedule for event in log.of(ScheduleFailed)} == {"full-a", "full-b"}
    assert "takes 1 jobs that wait" in log.of(ScheduleFailed)[0].error

    assert await storage.cancel(full, ["x"]) == [CancelOutcome.CANCELLED]
    clock.advance(HOLD_MS / 1000)
    await steps.step()
    assert await job_ids(storage, full) == [f"full-{n}:2026-11-29T12:01:00Z" for n in "ab"]
    assert len(log.of(ScheduleFailed)) == 2


@pytest.fixture
async def meddled(clock: ManualClock) -> AsyncIterator[Meddled]:
    opened = Meddled(f"memory://step-{secrets.token_hex(6)}", clock=clock)
    yield opened
    await opened.aclose()


@pytest.mark.parametrize(
    ("changes", "next_ms"),
    [
        ({"is_paused": True}, NOON_MS + 2 * MINUTE_MS),
        ({"timing": Every(30)}, NOON_MS + 3 * MINUTE_MS // 2),
    ],
    ids=["paused", "other timing"],
)
async def test_a_schedule_that_is_changed_while_it_is_fired_keeps_the_change_and_is_moved_on(
    meddled: Meddled, clock: ManualClock, log: EventLog, changes: dict[str, Any], next_ms: int
) -> None:
    await put(meddled, "report", Every(60))
    meddled.after = partial(edit, meddled, "report", **changes)
    clock.advance(60)
    await Steps(meddled, emit=log).step()
    body = await stored(meddled, "report")
    assert body is not None
    assert {name: getattr(body, name) for name in changes} == changes
    assert (body.next_ms, body.last_job_id) == (next_ms, "report:2026-11-29T12:01:00Z")
    assert [entry.outcome for entry in await history(meddled, "report")] == ["enqueued"]


async def test_a_schedule_that_another_has_moved_on_meanwhile_is_left_alone(
    meddled: Meddled, clock: ManualClock, log: EventLog
) -> None:
    await put(meddled, "report", Every(60))
    there_ms = NOON_MS + 10 * MINUTE_MS
    moved = {"next_ms": there_ms, "last_ms": NOON_MS, "last_job_id": "another"}
    meddled.after = partial(edit, meddled, "report", **moved)
    clock.advance(60)
    await Steps(meddled, emit=log).step()
    body = await stored(meddled, "report")
    assert body is not None
    assert (body.next_ms, body.last_ms, body.last_job_id) == tuple(moved.values())
    assert await history(meddled, "report") == []


@pytest.mark.parametrize("next_ms", [NOON_MS + 10 * MINUTE_MS, None], ids=["later", "ended"])
async def test_a_schedule_that_was_given_other_occurrences_meanwhile_notes_what_was_fired(
    meddled: Meddled, clock: ManualClock, log: EventLog, next_ms: int | None
) -> None:
    await put(meddled, "report", Every(60))
    meddled.after = partial(edit, meddled, "report", timing=Every(600), next_ms=next_ms)
    clock.advance(60)
    await Steps(meddled, emit=log).step()
    body = await stored(meddled, "report")
    assert body is not None
    assert (body.next_ms, body.last_job_id) == (next_ms, "report:2026-11-29T12:01:00Z")
    assert [entry.outcome for entry in await history(meddled, "report")] == ["enqueued"]


async def test_a_schedule_that_is_deleted_while_it_is_fired_stays_deleted(
    meddled: Meddled, clock: ManualClock, log: EventLog
) -> None:
    await put(meddled, "report", Every(60))
    [due] = (await meddled.read_schedules(["report"])).schedules
    deletion = ScheduleWrite(id="report", expected=due.version)
    meddled.after = partial(meddled.write_schedules, [deletion], wakes=False)
    clock.advance(60)
    await Steps(meddled, emit=log).step()
    assert await stored(meddled, "report") is None


async def test_a_schedule_that_is_deleted_and_made_anew_while_it_is_fired_is_the_new_one(
    meddled: Meddled, clock: ManualClock, log: EventLog
) -> None:
    await put(meddled, "report", Every(60))
    [due] = (await meddled.read_schedules(["report"])).schedules

    async def make_anew() -> None:
        deletion = ScheduleWrite(id="report", expected=due.version)
        await meddled.write_schedules([deletion], wakes=False)
        await put(meddled, "report", Every(30))

    meddled.after = make_anew
    clock.advance(60)
    await Steps(meddled, emit=log).step()
    body = await stored(meddled, "report")
    assert body is not None
    assert (body.timing, body.next_ms) == (Every(30), NOON_MS + MINUTE_MS + 30_000)


async def test_occurrences_of_many_bytes_that_take_too_long_are_fired_in_several_steps(
    meddled: Meddled, clock: ManualClock, log: EventLog
) -> None:
    payload = b"x" * (BATCH_LIMIT_BYTES // 4)
    await put(meddled, "report", Every(60), catch_up=9, job=replace(JOB, payload=payload))
    clock.advance(12 * 60)
    meddled.before = lambda: clock.advance(FIRE_WITHIN_MS / 1000 / 2)
    steps = Steps(meddled, emit=log)
    found = []
    for _ in range(3):
        await steps.step()
        found.append(len(await job_ids(meddled)))
    assert found == [8, 11, 11]
    outcomes = [entry.outcome for entry in await history(meddled, "report")]
    assert outcomes == ["skipped", *["enqueued"] * 11]
    body = await stored(meddled, "report")
    assert body is not None
    assert body.next_ms == NOON_MS + 13 * MINUTE_MS


async def test_a_scheduler_that_stood_still_fires_nothing_but_what_is_still_to_be_fired(
    meddled: Meddled, clock: ManualClock, log: EventLog
) -> None:
    await put(meddled, "report", Every(60))
    stood_still = [3600]
    meddled.before = lambda: clock.advance(stood_still.pop() if stood_still else 0)
    clock.advance(60)
    steps = Steps(meddled, emit=log)
    await steps.step()
    assert await job_ids(meddled) == []
    await steps.step()
    # An hour has passed: of what was due in it the catch-up rule speaks.
    assert await job_ids(meddled) == ["report:2026-11-29T13:00:00Z", "report:2026-11-29T13:01:00Z"]
