"""`App.schedules`: what is stored is put, looked at, steered and deleted, on each storage."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import anyio
import pytest
from msgspec.structs import replace
from pydantic import TypeAdapter

from headrace import (
    App,
    At,
    Cron,
    Every,
    Schedule,
    ScheduleEvent,
    ScheduleNotFound,
    StorageFault,
    StorageRefused,
    StorageUnavailable,
    Task,
    Worker,
)
from headrace.app import clients_of
from headrace.clients import Opening
from headrace.schedule import HistoryEntry, ScheduleBody, decode_body, encode_body
from headrace.schedule_records import (
    TRIES,
    delete_schedule,
    pause_schedule,
    trigger_schedule,
)
from headrace.storage import VERBS, ScheduleWrite, Storage
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing import running
from tests.storage.foreign import OldStorage
from tests.support.until import patience

RARELY = Every(timedelta(days=3000))
"""It is due at no moment at which a test may run."""
NEW_YEAR = datetime(2031, 1, 1, tzinfo=UTC)
Report = Task[[str], str]


@pytest.fixture
def report(app: App[None]) -> Report:
    @app.task(name="report", queue="reports")
    async def report(region: str) -> str:
        return f"of {region}"

    return report


def storage_of(app: App[Any]) -> Storage:
    return clients_of(app).current().storage


async def stored(app: App[Any], schedule_id: str) -> ScheduleBody:
    read = await storage_of(app).read_schedules([schedule_id])
    return decode_body(read.schedules[0].body)


async def rewrite(app: App[Any], schedule_id: str, **changes: Any) -> None:
    """Change what is stored, as a scheduler does, or code that declares it."""
    storage = storage_of(app)
    [found] = (await storage.read_schedules([schedule_id])).schedules
    body = replace(decode_body(found.body), **changes)
    write = ScheduleWrite(
        id=schedule_id,
        expected=found.version,
        app="tests",
        due_ms=found.due_ms,
        body=encode_body(body),
    )
    assert await storage.write_schedules([write], wakes=False) == [found.version + 1]


async def test_a_schedule_is_put_and_told_as_it_is(app: App[None], report: Report) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    put = await app.schedules.put(
        "weekly",
        report.options(priority=8, timeout=5).job("eu"),
        Cron("0 9 * * 1", tz="America/New_York"),
        catch_up="latest",
        jitter=60,
        overlap="skip",
        end=NEW_YEAR,
    )
    found = await app.schedules.get("weekly")
    assert found == put
    assert (put.id, put.task, put.queue, put.priority) == ("weekly", "report", "reports", 8)
    assert (put.args, put.options) == ({"region": "eu"}, {"timeout_ms": 5_000})
    assert (put.timing, put.cron) == ("cron 0 9 * * 1 America/New_York", "0 9 * * 1")
    assert (put.tz, put.dst, put.interval_s, put.at) == ("America/New_York", "shift", None, None)
    assert (put.catch_up, put.jitter_s, put.overlap) == ("latest", 60.0, "skip")
    assert (put.start_at, put.end_at) == (None, NEW_YEAR)
    assert (put.is_paused, put.set_by, put.is_edited, put.app) == (False, "operator", False, None)
    assert (put.last_at, put.last_job_id) == (None, None)
    assert before < put.created_at == put.changed_at < datetime.now(UTC) + timedelta(seconds=1)
    assert put.next_at is not None
    assert put.due_at is not None
    assert put.next_at <= put.due_at <= put.next_at + timedelta(seconds=60)
    following = put.next_at.timestamp() * 1000
    timing = Cron("0 9 * * 1", tz="America/New_York")
    assert timing.after(round(put.created_at.timestamp() * 1000)) == following


async def test_the_storage_is_told_when_it_is_due(app: App[None], report: Report) -> None:
    put = await app.schedules.put("one", report.job("eu"), Every(3600), jitter=1800)
    [found] = (await storage_of(app).read_schedules(["one"])).schedules
    assert put.due_at is not None
    assert found.due_ms == round(put.due_at.timestamp() * 1000)


async def test_intervals_and_one_offs_are_told_too(app: App[None], report: Report) -> None:
    often = await app.schedules.put("often", report.job("eu"), Every(0.5), start=NEW_YEAR)
    once = await app.schedules.put("once", report.job("eu"), At(NEW_YEAR), paused=True)
    assert (often.interval_s, often.cron, often.start_at) == (0.5, None, NEW_YEAR)
    assert often.next_at == NEW_YEAR
    assert (once.at, once.next_at, once.is_paused) == (NEW_YEAR, NEW_YEAR, True)


async def test_a_task_by_name_needs_no_declaration(app: App[None]) -> None:
    job = app.task_ref("mail.send", queue="mails").job(to="a@b.c")
    put = await app.schedules.put("mail", job, Every(60))
    assert (put.task, put.queue, put.args) == ("mail.send", "mails", {"to": "a@b.c"})


async def test_none_is_there_before_it_is_put(app: App[None]) -> None:
    assert await app.schedules.get("one") is None
    assert [each async for each in app.schedules.list()] == []
    assert await app.schedules.history("one") == []
    assert not await app.schedules.delete("one")


async def test_put_takes_the_place_of_what_was_there(app: App[None], report: Report) -> None:
    first = await app.schedules.put("one", report.job("eu"), RARELY, overlap="skip")
    second = await app.schedules.put("one", report.job("us"), Cron("@yearly"))
    assert (second.args, second.timing) == ({"region": "us"}, "cron @yearly UTC")
    assert second.overlap == "allow"
    assert second.created_at == first.created_at
    assert second.changed_at >= first.changed_at
    assert [each.id async for each in app.schedules.list()] == ["one"]


async def test_putting_the_same_again_changes_nothing(app: App[None], report: Report) -> None:
    found = []
    for _ in range(2):
        await app.schedules.put("one", report.job("eu"), Cron("@yearly"), catch_up=3)
        found += (await storage_of(app).read_schedules(["one"])).schedules
    assert found[0] == found[1]


async def test_an_occurrence_that_is_due_outlives_a_put(app: App[None], report: Report) -> None:
    await app.schedules.put("one", report.job("eu"), RARELY)
    due_ms = RARELY.newest(0, (await stored(app, "one")).created_ms, 1)[0]
    await rewrite(app, "one", next_ms=due_ms)
    put = await app.schedules.put("one", report.job("us"), Every(timedelta(days=1500)))
    assert put.next_at == datetime.fromtimestamp(due_ms / 1000, UTC)


async def test_a_put_of_a_declared_schedule_shows_as_an_edit(
    app: App[None], report: Report
) -> None:
    await app.schedules.put("one", report.job("eu"), RARELY)
    await rewrite(app, "one", set_by="code", declaration="digest", release="release")
    declared = await app.schedules.get("one")
    assert declared is not None
    assert (declared.app, declared.set_by, declared.is_edited) == ("tests", "code", False)
    edited = await app.schedules.put("one", report.job("us"), RARELY)
    assert (edited.app, edited.set_by, edited.is_edited) == ("tests", "operator", True)
    body = await stored(app, "one")
    assert (body.declaration, body.release) == ("digest", "release")


async def test_schedules_are_listed_by_their_ids(app: App[None], report: Report) -> None:
    for name in ("b", "c", "a"):
        await app.schedules.put(name, report.job(name), RARELY)
    await rewrite(app, "b")
    assert [each.id async for each in app.schedules.list()] == ["a", "b", "c"]
    assert [each.args async for each in app.schedules.list(app="tests")] == [{"region": "b"}]


async def test_a_paused_one_is_resumed(app: App[None], report: Report) -> None:
    put = await app.schedules.put("one", report.job("eu"), RARELY)
    paused = await app.schedules.pause("one")
    assert (paused.is_paused, paused.next_at) == (True, put.next_at)
    assert await app.schedules.pause("one") == paused
    assert await app.schedules.get("one") == paused
    resumed = await app.schedules.resume("one")
    assert (resumed.is_paused, resumed.next_at) == (False, put.next_at)
    assert await app.schedules.resume("one") == resumed


async def test_a_pause_of_a_declared_schedule_shows_as_an_edit(
    app: App[None], report: Report
) -> None:
    await app.schedules.put("one", report.job("eu"), RARELY)
    await rewrite(app, "one", set_by="code", declaration="digest")
    assert (await app.schedules.pause("one")).is_edited


async def test_a_put_leaves_a_pause_unless_it_says_so(app: App[None], report: Report) -> None:
    await app.schedules.put("one", report.job("eu"), RARELY)
    await app.schedules.pause("one")
    assert (await app.schedules.put("one", report.job("us"), RARELY)).is_paused
    put = await app.schedules.put("one", report.job("us"), RARELY, paused=False)
    assert not put.is_paused


async def test_what_fell_due_in_a_pause_is_passed_over_when_it_is_resumed(
    app: App[None], report: Report
) -> None:
    await app.schedules.put("one", report.job("eu"), RARELY, catch_up=5)
    await app.schedules.pause("one")
    now_ms = (await stored(app, "one")).changed_ms
    due = RARELY.newest(0, now_ms, 3)
    await rewrite(app, "one", next_ms=due[0])
    resumed = await app.schedules.resume("one")
    assert resumed.next_at is not None
    assert resumed.next_at > datetime.fromtimestamp(due[-1] / 1000, UTC)
    [event] = await app.schedules.history("one")
    assert (event.outcome, event.reason, event.count) == ("skipped", "paused", 3)
    assert (event.at, event.until) == tuple(
        datetime.fromtimestamp(instant / 1000, UTC) for instant in (due[0], due[-1])
    )


async def test_a_trigger_enqueues_its_job_at_once(app: App[None], report: Report) -> None:
    put = await app.schedules.put("one", report.options(priority=7).job("eu"), Cron("@yearly"))
    await app.schedules.pause("one")
    job = await app.schedules.trigger("one")
    assert job.id.startswith("one:triggered:")
    assert (job.queue, (await job.status()).priority) == ("reports", 7)
    found = await app.schedules.get("one")
    assert found is not None
    assert (found.last_job_id, found.next_at, found.is_paused) == (job.id, put.next_at, True)
    assert found.last_at is not None
    [event] = await app.schedules.history("one")
    assert event == ScheduleEvent(
        at=found.last_at,
        fired_at=found.last_at,
        outcome="triggered",
        reason=None,
        job_id=job.id,
        until=None,
        count=1,
    )
    async with running(Worker(app)):
        assert await job.result(timeout=patience(10)) == "of eu"


async def test_history_is_told_newest_first(app: App[None], report: Report) -> None:
    await app.schedules.put("one", report.job("eu"), Cron("@yearly"))
    jobs = [await app.schedules.trigger("one") for _ in range(3)]
    history = await app.schedules.history("one")
    assert [event.job_id for event in history] == [job.id for job in reversed(jobs)]


async def test_changes_that_come_together_all_count(app: App[None], report: Report) -> None:
    await app.schedules.put("one", report.job("eu"), Cron("@yearly"))
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(app.schedules.trigger, "one")
        group.start_soon(app.schedules.pause, "one")
    found = await app.schedules.get("one")
    assert found is not None
    assert found.is_paused
    assert len({event.job_id for event in await app.schedules.history("one")}) == 8


async def test_a_deleted_one_is_gone_with_its_history(app: App[None], report: Report) -> None:
    await app.schedules.put("one", report.job("eu"), Cron("@yearly"))
    job = await app.schedules.trigger("one")
    assert await app.schedules.delete("one")
    assert not await app.schedules.delete("one")
    assert await app.schedules.get("one") is None
    assert await app.schedules.history("one") == []
    assert (await job.status()).state == "queued"


@pytest.mark.parametrize("verb", ["pause", "resume", "trigger"])
async def test_one_that_is_not_there_can_not_be_steered(app: App[None], verb: str) -> None:
    with pytest.raises(ScheduleNotFound, match="there is no schedule 'one'"):
        await getattr(app.schedules, verb)("one")
    assert await app.schedules.get("one") is None


async def test_what_another_release_has_stored_is_left_alone(
    app: App[None], report: Report
) -> None:
    write = ScheduleWrite(id="new", expected=0, due_ms=1, body=b"\xc1")
    await storage_of(app).write_schedules([write], wakes=False)
    await app.schedules.put("one", report.job("eu"), Every(60))
    assert [each.id async for each in app.schedules.list()] == ["one"]
    words = "schedule 'new' can't be read by this release .*use the one that has stored it"
    for touch in (
        app.schedules.get("new"),
        app.schedules.pause("new"),
        app.schedules.trigger("new"),
        app.schedules.put("new", report.job("eu"), Every(60)),
    ):
        with pytest.raises(StorageFault, match=words):
            await touch
    assert await app.schedules.delete("new")


class Meanwhile:
    """A storage on which somebody else does something just before each call of a verb."""

    def __init__(self, storage: Storage, verb: str, meanwhile: Callable[[], Any]) -> None:
        self._storage = storage
        self._verb = verb
        self._meanwhile = meanwhile
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._storage, name)
        if name != self._verb:
            return call

        async def late(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            await self._meanwhile()
            return await call(*args, **kwargs)

        return late


@pytest.mark.parametrize("change", [pause_schedule, delete_schedule], ids=["pause", "delete"])
async def test_a_change_gives_up_where_others_change_it_all_the_time(
    app: App[None], report: Report, change: Callable[..., Any]
) -> None:
    put = await app.schedules.put("one", report.job("eu"), RARELY)
    storage = Meanwhile(storage_of(app), "write_schedules", lambda: rewrite(app, "one"))
    with pytest.raises(StorageUnavailable, match="nothing was done, try again"):
        await change(storage, "one")
    assert storage.calls == TRIES
    found = await app.schedules.get("one")
    assert found is not None
    assert (found.is_paused, found.next_at) == (False, put.next_at)


async def test_a_trigger_makes_no_schedule_that_is_deleted_meanwhile(
    app: App[None], report: Report
) -> None:
    await app.schedules.put("one", report.job("eu"), RARELY)
    storage: Any = Meanwhile(storage_of(app), "enqueue", lambda: app.schedules.delete("one"))
    job = await trigger_schedule(storage, "one")
    assert (await app.job(job.id, queue="reports").status()).state == "queued"
    assert await app.schedules.get("one") is None
    assert await app.schedules.history("one") == []


async def test_values_of_schedules_are_ready_for_json(app: App[None], report: Report) -> None:
    put = await app.schedules.put("one", report.job("secret"), Every(0.5), jitter=0.25)
    document = json.loads(json.dumps(put.to_dict()))
    assert (document["interval_ms"], document["jitter_ms"]) == (500, 250)
    assert document["next_at"].endswith("Z")
    assert "secret" not in repr(put)
    await app.schedules.trigger("one")
    [event] = await app.schedules.history("one")
    assert json.loads(json.dumps(event.to_dict()))["outcome"] == "triggered"


def test_a_run_of_occurrences_is_told_with_its_end() -> None:
    event = ScheduleEvent.of(
        HistoryEntry(instant_ms=1_000, fired_ms=9_000, outcome="missed", until_ms=5_000, count=0)
    )
    assert (event.until, event.count) == (datetime.fromtimestamp(5, UTC), None)


@pytest.mark.parametrize("kind", [Schedule, ScheduleEvent])
def test_a_web_framework_can_describe_and_return_them(kind: type[Any]) -> None:
    assert TypeAdapter(kind).json_schema(mode="serialization")["title"] == kind.__name__


async def test_a_storage_that_keeps_no_schedules_is_refused_before_any_io(report: Report) -> None:
    old = OldStorage(SqliteStorage(f"memory://old-{secrets.token_hex(6)}"))
    app = App[None]("memory://")
    with clients_of(app).replaced(
        Opening(storage=lambda: cast(Storage, old), blocking=lambda: pytest.fail("no thread asks"))
    ):
        for call in (
            lambda: app.schedules.put("one", report.job("eu"), RARELY),
            lambda: app.schedules.get("one"),
            lambda: anext(app.schedules.list()),
            lambda: app.schedules.history("one"),
            lambda: app.schedules.pause("one"),
            lambda: app.schedules.resume("one"),
            lambda: app.schedules.trigger("one"),
            lambda: app.schedules.delete("one"),
        ):
            with pytest.raises(StorageRefused, match="OldStorage keeps no schedules"):
                await call()
        assert VERBS.keys() & old.calls.keys() == set()
        await app.aclose()
