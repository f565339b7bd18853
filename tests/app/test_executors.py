"""Handlers in the loop, in threads and in processes, with real workers on every storage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from headrace import App, FailReason, JobHandle, JobState, Worker
from headrace.events import ProcessEnded
from headrace.testing import EventLog, running
from tests.apps import slots_app
from tests.apps.slots_app import Point
from tests.support.jobs import ended, reached
from tests.support.processes import WorkerProcess
from tests.support.until import patience, until

START_S = 30.0
"""A process of a slot has started by then, on a busy machine too."""


@pytest.fixture
def crew(app: App[None]) -> Callable[..., Worker]:
    """Make workers of an app with handlers of every kind."""
    slots_app.adopt(app)

    def make(slots: int = 1, **options: Any) -> Worker:
        options.setdefault("emit", EventLog())
        return Worker(app, process_slots=slots, **options)

    return make


async def held(app: App[None], folder: Path, name: str) -> JobHandle[Any]:
    """Enqueue a process job that runs until `go` says otherwise."""
    return await app.enqueue("wait_for", str(folder / name), go=str(folder / "go"))


@pytest.mark.parametrize("name", ["mirror_in_loop", "mirror_in_thread", "mirror"])
async def test_arguments_and_results_keep_their_types_in_every_kind(
    app: App[None], crew: Callable[..., Worker], name: str
) -> None:
    async with running(crew()):
        job = await app.enqueue(name, Point(1, 2))
        assert await job.result(timeout=patience(START_S)) == Point(2, 1)


async def test_plain_functions_run_at_once_in_threads(app: App[None]) -> None:
    meeting = threading.Barrier(4, timeout=10)

    @app.task
    def meet() -> int:
        return meeting.wait()

    async with running(Worker(app)):
        jobs = [await meet.enqueue() for _ in range(4)]
        assert sorted([await job.result(timeout=patience(10)) for job in jobs]) == [0, 1, 2, 3]


async def test_an_error_in_a_process_is_kept_as_text_with_its_traceback(
    app: App[None], crew: Callable[..., Worker]
) -> None:
    # BC-78: an exception that can't be pickled harms nobody.
    async with running(crew()):
        job = await app.enqueue("fail", "no good")
        record = await ended(job, within=START_S)
        assert (record.reason, record.failures, record.stalls) == (FailReason.EXHAUSTED, 2, 0)
        assert record.errors[0].type == "tests.apps.slots_app.Awkward"
        assert record.errors[0].message == "no good"
        assert "raise Awkward(text)" in record.errors[0].traceback


async def test_a_job_by_name_goes_to_the_lane_that_workers_have_published(
    app: App[None], crew: Callable[..., Worker], storage_url: str
) -> None:
    async with running(crew()), App(storage_url, tenant=app.tenant) as stranger:
        job = await stranger.enqueue("mirror", queue="cpu", point={"x": 1, "y": 2})
        assert await job.result(timeout=patience(START_S)) == {"x": 2, "y": 1}
        assert (await job.status()).lane == "process"


async def test_a_hundred_process_jobs_never_sit_in_one_worker_nor_block_other_lanes(
    app: App[None], crew: Callable[..., Worker], tmp_path: Path
) -> None:
    """DESIGN §5.3: a worker claims no more of a lane than it has slots for."""
    first, second = crew(slots=2, name="first"), crew(slots=2, name="second")
    calls = [
        app.tasks["wait_for"].job(str(tmp_path / f"{n}"), go=str(tmp_path / "go"))
        for n in range(100)
    ]
    async with running(first):
        jobs = await app.enqueue_many(calls)
        await until(lambda: first.active == 2, within=START_S, what="the slots are full")
        async with running(second):
            await until(lambda: second.active == 2, within=START_S, what="the idle one helps")
            quick = await app.enqueue("mirror_in_loop", Point(1, 2))
            assert await quick.result(timeout=patience(10)) == Point(2, 1)
            assert (first.active, second.active) == (2, 2)
            (tmp_path / "go").touch()
            pids = {await job.result(timeout=patience(START_S)) for job in jobs}
    assert len(pids) == 4
    assert {(await job.status()).starts for job in jobs} == {1}


async def test_the_death_of_a_process_charges_one_stall_to_its_job_and_to_no_other(
    app: App[None], crew: Callable[..., Worker]
) -> None:
    """G9, BC-78."""
    log = EventLog()
    async with running(crew(slots=2, emit=log)):
        before = [await app.enqueue("mirror", Point(n, 0)) for n in range(10)]
        guilty = await app.enqueue("die")
        after = [await app.enqueue("mirror", Point(n, 0)) for n in range(10)]
        record = await ended(guilty, within=START_S)
        assert (record.state, record.reason) == (JobState.FAILED, FailReason.STALLED)
        assert (record.stalls, record.failures, record.starts) == (2, 0, 2)
        assert {error.type for error in record.errors} == {"ProcessDied"}
        assert "ended with status 3" in record.errors[0].message
        for job in [*before, *after]:
            other = await ended(job, within=START_S)
            assert (other.state, other.stalls, other.starts) == (JobState.COMPLETED, 0, 1)
    assert len([event for event in log.of(ProcessEnded) if "status 3" in event.cause]) == 2


async def test_a_process_that_takes_too_long_is_gone_and_its_slot_is_back(
    app: App[None], crew: Callable[..., Worker], tmp_path: Path
) -> None:
    """G12, BC-77."""
    async with running(crew()):
        job = await app.enqueue("spin", str(tmp_path / "here"))
        record = await ended(job, within=START_S)
        assert record.errors[0].type == "TimeoutError"
        assert record.run_s is not None
        assert record.run_s < patience(5)
        assert not psutil.pid_exists(int((tmp_path / "here").read_text()))
        again = await app.enqueue("mirror", Point(1, 2))
        assert await again.result(timeout=patience(START_S)) == Point(2, 1)


async def test_a_stop_puts_process_jobs_back_free_of_charge(
    app: App[None], crew: Callable[..., Worker], tmp_path: Path
) -> None:
    """G14, G9."""
    async with running(crew(shutdown_timeout=0.1)):
        job = await held(app, tmp_path, "here")
        await until((tmp_path / "here").exists, within=START_S)
    record = await job.status()
    assert record.state is JobState.QUEUED
    assert (record.starts, record.failures, record.stalls) == (1, 0, 0)
    assert not psutil.pid_exists(int((tmp_path / "here").read_text()))
    (tmp_path / "go").touch()
    async with running(crew()):
        assert (await ended(job, within=START_S)).starts == 2


@pytest.mark.parametrize("kind", ["redis", "file"])
async def test_a_worker_of_the_command_line_runs_process_tasks_and_leaves_no_child(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """G14."""
    url = request.getfixturevalue("redis_url") if kind == "redis" else f"file://{tmp_path}/data"
    command = ("worker", "tests.apps.slots_app:app", "--process-slots", "2")
    env = {"HEADRACE_REDIS_URL": url}
    async with App(url, tenant=slots_app.app.tenant) as app:
        slots_app.adopt(app)
        with WorkerProcess.module(
            "headrace", *command, "--shutdown-timeout", "0.1s", directory=tmp_path, env=env
        ) as worker:
            job = await app.enqueue("mirror", Point(1, 2))
            assert await job.result(timeout=patience(START_S)) == Point(2, 1)
            waiting = await held(app, tmp_path, "here")
            await until((tmp_path / "here").exists, within=START_S)
            children = psutil.Process(worker.pid).children(recursive=True)
            assert len(children) >= 2
            worker.term()
            assert await worker.wait(START_S) == 0
            await until(lambda: not any(child.is_running() for child in children), within=10)
        assert (await reached(waiting, JobState.QUEUED)).stalls == 0
