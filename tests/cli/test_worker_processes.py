"""``headrace worker --processes N``: a real supervisor, and what may happen to its workers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from headrace import JobState
from headrace.cli.worker_options import process_count
from headrace.errors import InvalidOption
from headrace.supervisor.restarts import Restarts
from tests.apps.crew_app import QUEUE
from tests.cli.conftest import Cli
from tests.cli.crews import APP, Yard, members, nobody_is_left
from tests.cli.workers import log, logged, site_on
from tests.support.jobs import ended
from tests.support.processes import WorkerProcess
from tests.support.until import patience, until

END_S = 30.0


@pytest.fixture(params=["redis", "file"])
async def yard(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Yard]:
    async with site_on(request, tmp_path, Yard) as yard:
        yield yard


@pytest.fixture
async def redis_yard(redis_url: str, tmp_path: Path) -> AsyncIterator[Yard]:
    """Return a yard for what doesn't depend on the storage."""
    yard = Yard(redis_url, tmp_path)
    async with yard.app:
        yield yard


async def test_each_process_is_a_worker_and_the_parent_is_none(yard: Yard) -> None:
    with yard.crew(3) as supervisor:
        pids = await yard.workers(3)
        jobs = [await yard.enqueue("where") for _ in range(60)]
        assert {await job.result(timeout=patience(20)) for job in jobs} <= pids
        listing = WorkerProcess.module(
            "headrace", "workers", "-o", "json",
            directory=yard.directory, name="listing", env=yard.environment,
        )  # fmt: skip
        with listing:
            assert await listing.wait(END_S) == 0
            found = json.loads(listing.stdout)
        assert {worker["name"] for worker in found} == {
            f"{worker['host']}:{pid}" for worker in found for pid in pids
        }
        assert supervisor.pid not in pids | yard.imported()
        assert pids < yard.imported(), "one more has checked the app beforehand"
        supervisor.term()
        assert await supervisor.wait(END_S) == 0
        assert await yard.app.queue(QUEUE).workers() == []
        await nobody_is_left(yard)


async def test_a_killed_worker_is_replaced_and_its_job_runs_again(yard: Yard) -> None:
    """G3, G9."""
    with yard.crew(3) as supervisor:
        pids = await yard.workers(3)
        job, pid = await yard.started("hold")
        os.kill(pid, signal.SIGKILL)
        other = await yard.enqueue("where")
        assert await other.result(timeout=patience(20)) != pid, "the others go on"
        line = await log(supervisor, "worker.process_ended")
        assert (line["pid"], line["signal"], line["restarts"]) == (pid, "SIGKILL", True)
        assert line["pause_s"] <= 0.05
        yard.let_end()
        record = await ended(job, within=END_S)
        assert (record.state, record.failures, record.stalls) == (JobState.COMPLETED, 0, 1)
        after = await yard.workers(3)
        assert pids & after == pids - {pid}, "the others are who they were"
        assert len(logged(supervisor, "worker.process_ended")) == 1


async def test_no_worker_outlives_a_supervisor_that_is_killed(yard: Yard) -> None:
    """G14."""
    with yard.crew(2, "--concurrency", "1") as supervisor:
        jobs = [(await yard.started("hold", number))[0] for number in range(2)]
        supervisor.kill()
        await log(supervisor, "worker.stopping", count=2)
        for number in range(2):
            yard.let_end(number)
        await nobody_is_left(yard)
        for job in jobs:
            await job.result(timeout=1)
        assert len(logged(supervisor, "worker.stopped")) == 2, "they ended in order"


async def test_blocked_workers_end_too_when_their_supervisor_is_killed(redis_yard: Yard) -> None:
    """G14."""
    with redis_yard.crew(2, "-c", "1", "--shutdown-timeout", "0s") as supervisor:
        for number in range(2):
            await redis_yard.started("block", number)
        supervisor.kill()
        await nobody_is_left(redis_yard)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
async def test_the_first_signal_reaches_each_worker_once(
    yard: Yard, number: signal.Signals
) -> None:
    with yard.crew(2, "--concurrency", "1") as supervisor:
        jobs = [(await yard.started("hold", number))[0] for number in range(2)]
        # To the whole group, as a terminal sends it.
        os.killpg(supervisor.pid, number)
        await log(supervisor, "worker.stopping", count=2)
        yard.let_end(0)
        await log(supervisor, "worker.stopped")
        assert supervisor.returncode is None, "it waits for the other"
        yard.let_end(1)
        assert await supervisor.wait(END_S) == 0
        for job in jobs:
            await job.result(timeout=1)
        assert "Traceback" not in supervisor.stderr
        assert len(logged(supervisor, "worker.process_started")) == 2
        await nobody_is_left(yard)


async def test_the_second_signal_hands_all_jobs_back(yard: Yard) -> None:
    """G9, G14."""
    with yard.crew(2, "--concurrency", "1", "--shutdown-timeout", "5m") as supervisor:
        jobs = [(await yard.started("hold", number))[0] for number in range(2)]
        supervisor.term()
        await log(supervisor, "worker.stopping", count=2)
        supervisor.term()
        assert await supervisor.wait(END_S) == 0
        for job in jobs:
            record = await job.status()
            assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)
        await nobody_is_left(yard)


async def test_the_third_signal_ends_workers_that_are_blocked_or_stopped(redis_yard: Yard) -> None:
    with redis_yard.crew(2, "--concurrency", "1") as supervisor:
        await redis_yard.started("block", 0)
        _, pid = await redis_yard.started("hold", 1)
        os.kill(pid, signal.SIGSTOP)
        for count in (1, 2):
            supervisor.term()
            await log(supervisor, "worker.signalled", count=count)
        os.kill(supervisor.pid, signal.SIGINT)
        assert await supervisor.wait(END_S) == 128 + signal.SIGINT
        await nobody_is_left(redis_yard)


async def test_a_signal_while_workers_start_is_no_failure(redis_yard: Yard) -> None:
    with redis_yard.crew(2) as supervisor:
        await log(supervisor, "worker.process_started")
        supervisor.term()
        assert await supervisor.wait(END_S) == 0
        await nobody_is_left(redis_yard)


async def test_a_signal_while_the_app_is_checked_starts_nothing(redis_yard: Yard) -> None:
    with redis_yard.crew(2, app="tests.apps.slow_import_app") as supervisor:
        await until(redis_yard.imported, within=END_S, what="the app is being imported")
        supervisor.term()
        assert await supervisor.wait(END_S) == 0
        assert supervisor.stderr.count("\n") == 1
        assert logged(supervisor, "worker.signalled")
        await nobody_is_left(redis_yard)


async def test_quiet_workers_are_followed_by_quiet_ones(yard: Yard) -> None:
    with yard.crew(2) as supervisor:
        pids = await yard.workers(2)
        os.kill(supervisor.pid, signal.SIGTSTP)
        await log(supervisor, "worker.quiet", count=2)
        job = await yard.enqueue("where")
        os.kill(min(pids), signal.SIGKILL)
        await log(supervisor, "worker.quiet", count=3)
        await yard.workers(2)
        supervisor.term()
        assert await supervisor.wait(END_S) == 0
        record = await job.status()
        assert (record.state, record.starts) == (JobState.QUEUED, 0)


def at(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["timestamp"]).timestamp()


async def test_workers_that_crash_at_their_start_back_off_until_it_is_repaired(yard: Yard) -> None:
    (yard.notes / "broken").touch()
    with yard.crew(2) as supervisor:
        await log(supervisor, "worker.process_ended", count=14)
        ends = logged(supervisor, "worker.process_ended")
        assert {(line["code"], line["restarts"]) for line in ends} == {(1, True)}
        assert max(line["pause_s"] for line in ends) > 0.1
        for number in (1, 2):
            mine = [line for line in ends if line["number"] == number]
            starts = [
                line
                for line in logged(supervisor, "worker.process_started")
                if line["number"] == number
            ]
            for end, start in zip(mine, starts[1:], strict=False):
                assert at(start) - at(end) >= end["pause_s"] - 0.05
        (yard.notes / "broken").unlink()
        await yard.workers(2)
        job = await yard.enqueue("where")
        await job.result(timeout=patience(20))
        supervisor.term()
        assert await supervisor.wait(END_S) == 0


async def test_a_burst_ends_when_all_workers_did_and_replaces_none(yard: Yard) -> None:
    jobs = [await yard.enqueue("where") for _ in range(80)]
    with yard.crew(2, "--burst") as supervisor:
        assert await supervisor.wait(END_S) == 0
        for job in jobs:
            await job.result(timeout=1)
        ends = logged(supervisor, "worker.process_ended")
        assert [(line["code"], line["restarts"]) for line in ends] == [(0, False)] * 2
        await nobody_is_left(yard)


async def test_a_burst_in_which_a_worker_was_killed_ends_with_its_code(redis_yard: Yard) -> None:
    with redis_yard.crew(2, "--burst") as supervisor:
        _, pid = await redis_yard.started("hold")
        os.kill(pid, signal.SIGKILL)
        redis_yard.let_end()
        assert await supervisor.wait(END_S) == 128 + signal.SIGKILL
        assert len(logged(supervisor, "worker.process_started")) == 2


async def test_a_worker_that_ends_by_its_limit_is_replaced_and_no_job_is_lost(yard: Yard) -> None:
    jobs = [await yard.enqueue("where") for _ in range(60)]
    with yard.crew(2, "--max-jobs", "10", "-c", "4") as supervisor:
        pids = {await job.result(timeout=patience(END_S)) for job in jobs}
        assert len(pids) >= 3, "more than were there at once"
        assert {(await job.status()).starts for job in jobs} == {1}
        ends = logged(supervisor, "worker.process_ended")
        assert {(line["code"], line["restarts"]) for line in ends} == {(0, True)}
        assert max(line["pause_s"] + line["lived_s"] for line in ends) < patience(END_S)


async def test_a_worker_that_somebody_ends_is_replaced(redis_yard: Yard) -> None:
    with redis_yard.crew(2) as supervisor:
        pids = await redis_yard.workers(2)
        os.kill(min(pids), signal.SIGTERM)
        line = await log(supervisor, "worker.process_ended")
        assert (line["pid"], line["code"], line["restarts"]) == (min(pids), 0, True)
        await log(supervisor, "worker.process_started", count=3)
        assert max(pids) in await redis_yard.workers(2)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("no.such.app", "--processes", "3"), 4, "there is no module 'no.such.app'"),
        ((APP, "--processes", "3", "--lease", "0s"), 2, "lease=0.0 is out of bounds"),
        ((APP, "--processes", "3", "--queues", "work=x"), 2, "'work=x' is not a queue"),
        ((APP, "--processes", "2", "--url", "memory://"), 2, "memory:// is the memory of one"),
        ((APP, "--processes", "0"), 2, "processes=0 is out of bounds: use a whole number, 1 to 64"),
        ((APP, "--processes", "65"), 2, "processes=65 is out of bounds"),
        ((APP, "--processes", "two"), 2, "'two' is no number of processes: use 1 to 64, or auto"),
        ((APP, "--processes", "2", "--health-port", "-1"), 2, "health_port=-1 is out of bounds"),
    ],
)
@pytest.mark.usefixtures("redis_url")
def test_what_no_worker_could_start_with_is_told_once(
    cli: Cli, words: tuple[str, ...], code: int, told: str
) -> None:
    ran = cli("worker", *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1), ran
    assert told in ran.err


async def test_workers_that_end_for_good_end_the_supervisor(redis_yard: Yard) -> None:
    (redis_yard.notes / "torn").touch()
    with redis_yard.crew(2) as supervisor:
        assert await supervisor.wait(END_S) == 4
        ends = logged(supervisor, "worker.process_ended")
        assert [(line["code"], line["restarts"]) for line in ends] == [(4, False)] * 2


def test_a_limit_below_what_a_worker_needs_starts_one_a_second_at_most() -> None:
    restarts = Restarts(replaces=True)
    assert restarts.pause_s(0, lived_s=0.25) == 0.75
    assert restarts.pause_s(0, lived_s=3) == 0


def test_pauses_after_crashes_grow_and_end_with_a_long_life() -> None:
    restarts = Restarts(replaces=True)
    pauses = [restarts.pause_s(1, lived_s=1) or 0 for _ in range(60)]
    assert all(0 < pause <= 5 for pause in pauses)
    assert all(pause <= 0.05 * 2**tries for tries, pause in enumerate(pauses))
    assert max(pauses) > 2
    assert (restarts.pause_s(-signal.SIGKILL, lived_s=11) or 1) <= 0.05
    assert (restarts.pause_s(3, lived_s=9) or 1) <= 0.1


@pytest.mark.parametrize(
    ("code", "replaces"), [(2, True), (4, True), (0, False), (1, False), (-9, False)]
)
def test_no_worker_follows_in_a_burst_or_where_it_would_end_the_same_way(
    *, code: int, replaces: bool
) -> None:
    assert Restarts(replaces=replaces).pause_s(code, lived_s=100) is None


def test_auto_is_one_a_processor_that_may_be_used() -> None:
    assert process_count("auto") == min(64, len(psutil.Process().cpu_affinity() or []))
    assert process_count("64") == 64
    with pytest.raises(InvalidOption):
        process_count("65")


@pytest.mark.parametrize(
    ("words", "slots"), [((), None), (("--process-slots", "2"), 2)], ids=["default", "said"]
)
async def test_process_slots_are_those_of_each_worker(
    redis_yard: Yard, words: tuple[str, ...], slots: int | None
) -> None:
    cores = len(psutil.Process().cpu_affinity() or [])
    share = -(-cores // 2)
    yard = redis_yard
    with yard.crew(2, *words, app="tests.apps.slots_app") as supervisor:
        await yard.workers(2, queue="cpu")
        lines = logged(supervisor, "worker.started")
        assert [line["process_slots"] for line in lines] == [share if slots is None else slots] * 2
        expected = 1 + 2 + 2 * (share if slots is None else slots)
        await until(lambda: len(members(yard)) >= expected, within=END_S, what="slots are there")
        supervisor.kill()
        await nobody_is_left(yard)


async def test_a_machine_that_is_full_ends_no_supervisor(redis_yard: Yard) -> None:
    with redis_yard.crew(2) as supervisor:
        pids = await redis_yard.workers(2)
        limits = psutil.Process(supervisor.pid)
        _, most = limits.rlimit(psutil.RLIMIT_NOFILE)
        limits.rlimit(psutil.RLIMIT_NOFILE, (3, most))
        os.kill(min(pids), signal.SIGKILL)
        line = await log(supervisor, "worker.process_failed", count=3)
        assert "Too many open files" in line["error"]
        job = await redis_yard.enqueue("where")
        assert await job.result(timeout=patience(20)) == max(pids)
        limits.rlimit(psutil.RLIMIT_NOFILE, (most, most))
        await log(supervisor, "worker.process_started", count=3)
        await redis_yard.workers(2)
