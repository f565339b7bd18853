"""Schedulers die, stand still and lose their storage: one job an occurrence, and none missed."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.schedule import occurrence_id
from headrace.storage import Storage
from headrace.storage.connect import open_storage
from headrace.timing import Every
from tests.apps.schedule_app import TENANT, Options
from tests.support.ledger import Ledger
from tests.support.processes import WorkerProcess
from tests.support.redis_server import RedisServer
from tests.support.schedules import edit, history, stored
from tests.support.until import until

TICK_S = 0.25
TICK_MS = 250


class ScheduleProcess(WorkerProcess):
    """A process of `tests.apps.schedule_app`."""

    def events(self, what: str) -> list[dict[str, Any]]:
        """Return what it has told so far, of one kind."""
        lines = self.stdout.split("\n")[:-1]
        told = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines]
        return [event for event in told if event["what"] == what]

    async def told(self, what: str, count: int = 1, *, within: float = 20.0) -> None:
        """Wait until it has told something."""
        await until(lambda: len(self.events(what)) >= count, within=within, what=f"{count} {what}")

    @property
    def outcomes(self) -> set[str]:
        """What became of the occurrences that it has fired."""
        return {event["outcome"] for event in self.events("ScheduleFired")}


class Schedulers:
    """Processes that share a storage and a ledger."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory
        self.ledger = Ledger(directory / "ledger")
        self.storage: Storage = open_storage(url, tenant=TENANT)
        self._stack = ExitStack()

    def start(self, name: str, **options: Any) -> ScheduleProcess:
        """Start one that declares a schedule ``tick``, unless the options say others."""
        said = {"schedules": {"tick": TICK_S}, "ledger": str(self.directory / "ledger"), **options}
        chosen = Options(name=name, **said)
        process = ScheduleProcess.module(
            "tests.apps.schedule_app",
            msgspec.json.encode(chosen).decode(),
            directory=self.directory,
            name=name,
            env={"HEADRACE_URL": self.url},
        )
        return self._stack.enter_context(process)

    def runs(self, schedule_id: str = "tick") -> Counter[str]:
        """Return how many jobs of each id have run: one that runs again has another epoch."""
        found: Counter[str] = Counter()
        starts = Counter((entry.job_id, entry.epoch) for entry in self.ledger.starts())
        for (job_id, _), count in starts.items():
            if job_id.startswith(f"{schedule_id}:"):
                found[job_id] = max(found[job_id], count)
        return found

    async def expected(self, schedule_id: str = "tick") -> Counter[str]:
        """Return one of each occurrence from the schedule's making to the last that was fired."""
        body = await stored(self.storage, schedule_id)
        if body is None or body.last_ms is None:
            return Counter()
        first_ms = Every(TICK_S).after(body.created_ms)
        assert first_ms is not None
        instants = range(first_ms, body.last_ms + 1, TICK_MS)
        return Counter(occurrence_id(schedule_id, instant) for instant in instants)

    async def ids(self) -> set[str]:
        """Return the ids of all schedules."""
        return {each.id for each in (await self.storage.list_schedules()).schedules}

    async def intervals(self) -> dict[str, float]:
        """Return all schedules with the seconds between two occurrences."""
        found: dict[str, float] = {}
        for schedule_id in await self.ids():
            body = await stored(self.storage, schedule_id)
            if body is not None and isinstance(body.timing, Every):
                found[schedule_id] = body.timing.interval_ms / 1000
        return found

    async def has_fired(self, count: int, *, within: float = 20.0) -> None:
        """Wait until so many occurrences more have been run."""
        goal = len(self.runs()) + count
        await until(lambda: len(self.runs()) >= goal, within=within, what=f"{goal} jobs")

    async def each_has_run_once(self) -> None:
        """Pause the schedule, and see that each occurrence until then has brought one job."""
        await edit_at_once(self.storage, "tick")

        async def are_equal() -> bool:
            return self.runs() == await self.expected()

        try:
            await until(are_equal, within=10)
        except AssertionError:
            assert self.runs() == await self.expected()
        outcomes = {entry.outcome for entry in await history(self.storage, "tick")}
        assert outcomes <= {"enqueued", "duplicate", "skipped"}

    async def aclose(self) -> None:
        """Kill all processes."""
        self._stack.close()
        await self.storage.aclose()


async def edit_at_once(storage: Storage, schedule_id: str) -> None:
    """Pause a schedule that others move on at the same time."""

    async def has_paused() -> bool:
        try:
            await edit(storage, schedule_id, is_paused=True)
        except AssertionError:
            return False
        return True

    await until(has_paused)


@pytest.fixture
async def schedulers(crew_url: str, tmp_path: Path) -> AsyncIterator[Schedulers]:
    crew = Schedulers(crew_url, tmp_path)
    yield crew
    await crew.aclose()


async def test_three_workers_bring_one_job_an_occurrence(schedulers: Schedulers) -> None:
    for name in "abc":
        schedulers.start(name)
    await schedulers.has_fired(10)
    await schedulers.each_has_run_once()


async def test_what_a_scheduler_has_fired_that_dies_then_the_next_one_fires_in_vain(
    schedulers: Schedulers,
) -> None:
    dying = schedulers.start("dies", runs=False, signal=signal.SIGKILL, after=3)
    heir = schedulers.start("heir")
    assert await dying.wait(20) == -signal.SIGKILL
    await until(lambda: "duplicate" in heir.outcomes, within=20, what="an occurrence came twice")
    await schedulers.each_has_run_once()


async def test_a_scheduler_that_stood_still_past_several_occurrences_fires_none_again(
    schedulers: Schedulers,
) -> None:
    late = schedulers.start("late", runs=False, signal=signal.SIGSTOP, after=3)
    await late.told("ScheduleFired", 3)
    schedulers.start("other")
    await schedulers.has_fired(8)
    late.cont()
    await late.told("ScheduleFired", 4)
    await schedulers.each_has_run_once()


async def test_a_redis_that_is_started_anew_has_missed_nothing(
    own_server: RedisServer, tmp_path: Path
) -> None:
    schedulers = Schedulers(own_server.url, tmp_path)
    for name in "ab":
        schedulers.start(name)
    await schedulers.has_fired(3)
    own_server.kill()
    own_server.start()
    await schedulers.has_fired(6)
    await schedulers.each_has_run_once()
    await schedulers.aclose()


async def test_a_redis_that_loses_its_functions_is_given_them_again(
    redis_server: RedisServer, redis_url: str, tmp_path: Path
) -> None:
    schedulers = Schedulers(redis_url, tmp_path)
    for name in "ab":
        schedulers.start(name)
    with redis_server.client() as client:
        for _ in range(3):
            await schedulers.has_fired(2)
            client.function_flush("SYNC")
    await schedulers.has_fired(2)
    await schedulers.each_has_run_once()
    await schedulers.aclose()


NEWER = {"tick": TICK_S, "new": 3600.0}


@pytest.mark.parametrize("order", ["old first", "new first"])
async def test_two_releases_run_side_by_side_and_only_the_newer_changes_what_is_declared(
    schedulers: Schedulers, order: str
) -> None:
    """BC-48: the older one does not know a schedule that the newer one has, and keeps it."""
    released = [{"tick": TICK_S}, NEWER]
    first, second = released if order == "old first" else released[::-1]
    older = schedulers.start("older", schedules=first)
    await older.told("SchedulesSynced")
    newer = schedulers.start("newer", schedules=second)
    await newer.told("SchedulesSynced")
    crash = schedulers.start("crashed", schedules=first)
    await crash.told("WorkerStarted")
    # Nobody's declaration goes while a process has it.
    await schedulers.has_fired(12)
    await schedulers.each_has_run_once()
    assert await schedulers.ids() == {"tick", "new"}
    assert crash.events("SchedulesSynced") == []
    older.kill()
    crash.kill()


async def test_what_the_code_declares_no_longer_goes_with_the_last_process_that_did(
    schedulers: Schedulers,
) -> None:
    older = schedulers.start("older", schedules=NEWER)
    await older.told("SchedulesSynced")
    schedulers.start("newer")
    await schedulers.has_fired(3)
    older.term()
    assert await older.wait() == 0

    async def is_gone() -> bool:
        return await schedulers.ids() == {"tick"}

    await until(is_gone, within=30, what="the schedule that is declared no longer goes")
    await schedulers.each_has_run_once()


async def test_an_operators_changes_outlast_a_deploy_and_a_roll_back_takes_the_code_along(
    schedulers: Schedulers,
) -> None:
    """Another app's schedules are left alone all the while."""
    schedulers.start("billing", app="billing", schedules={"theirs": 3600.0})
    first = schedulers.start("first", schedules={"tick": 30.0, "other": 60.0})
    await first.told("SchedulesSynced")
    await edit(schedulers.storage, "tick", timing=Every(20), set_by="operator")
    await edit(schedulers.storage, "other", is_paused=True, set_by="operator")
    second = schedulers.start("second", schedules={"tick": 30.0, "other": 60.0, "new": 90.0})
    await second.told("SchedulesSynced")
    assert await schedulers.intervals() == {"theirs": 3600, "tick": 20, "other": 60, "new": 90}
    third = schedulers.start("third", schedules={"tick": 31.0, "other": 61.0, "new": 90.0})
    await third.told("SchedulesSynced")
    assert await schedulers.intervals() == {"theirs": 3600, "tick": 31, "other": 61, "new": 90}
    other = await stored(schedulers.storage, "other")
    assert other is not None
    assert not other.is_paused
    third.term()
    assert await third.wait() == 0

    async def is_rolled_back() -> bool:
        wanted = {"theirs": 3600, "tick": 30, "other": 60, "new": 90}
        return await schedulers.intervals() == wanted

    await until(is_rolled_back, within=30, what="the second release takes over")
