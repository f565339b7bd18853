"""A1, D7, D8: an attempt ends whatever the user's objects do, and its worker goes on."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace import App, AttemptOutcome, FailReason, JobHandle, JobState, Worker
from headrace.events import HandlerStuck, HookFailed, WorkerEvent
from headrace.testing import EventLog, Kit, running
from tests.apps import zoo_app
from tests.apps.zoo import EXCEPTIONS, RESULTS, RETRIES
from tests.support.jobs import ended
from tests.support.until import patience, until

PLACES = ["loop", "thread", "process"]
SLOTS = 2


@pytest.fixture
async def zoo() -> AsyncIterator[App[None]]:
    """An app for what no storage sees."""
    async with App(f"memory://test-{secrets.token_hex(6)}") as app:
        zoo_app.adopt(app)
        yield app


@asynccontextmanager
async def sound(app: App[None], place: str = "loop", **options: Any) -> AsyncIterator[Worker]:
    """Run a worker of few slots, and see at the end that each is free and all is well."""
    slots = 1 if place == "process" else 0
    worker = Worker(app, concurrency=SLOTS, process_slots=slots, sweep_interval=0.1, **options)
    async with running(worker):
        yield worker
        for place in PLACES if slots else PLACES[:2]:
            jobs = [well(app, place).job() for _ in range(SLOTS)]
            for handle in await app.enqueue_many(jobs):
                assert await handle.result(timeout=patience(15)) == "well"
        assert (worker.is_ready, worker.is_alive, worker.stuck) == (True, True, 0)


def well(app: App[None], place: str) -> Any:
    return app.tasks[f"well_in_{place}"]


async def enqueue(app: App[None], verb: str, place: str, names: Iterable[str]) -> Handles:
    task = app.tasks[f"{verb}_in_{place}"]
    names = list(names)
    handles = await app.enqueue_many(task.job(animal=name) for name in names)
    return dict(zip(names, handles, strict=True))


Handles = dict[str, JobHandle[Any]]


async def all_failed(handles: Handles, reason: FailReason, *, failures: int = 1) -> None:
    found = {}
    for name, handle in handles.items():
        record = await ended(handle, within=30)
        found[name] = (record.state, record.reason, record.failures, record.stalls, record.starts)
        assert record.errors[-1].type, name
    assert found == dict.fromkeys(handles, (JobState.FAILED, reason, failures, 0, 1))


@pytest.mark.parametrize("place", PLACES)
async def test_whatever_a_handler_raises_ends_its_attempt(app: App[None], place: str) -> None:
    zoo_app.adopt(app)
    async with sound(app, place):
        handles = await enqueue(app, "raise", place, EXCEPTIONS)
        await all_failed(handles, FailReason.EXHAUSTED)


@pytest.mark.parametrize("place", PLACES)
async def test_whatever_a_handler_returns_ends_its_attempt(zoo: App[None], place: str) -> None:
    async with sound(zoo, place):
        handles = await enqueue(zoo, "return", place, RESULTS)
        await all_failed(handles, FailReason.PERMANENT)


@pytest.mark.parametrize("place", PLACES)
async def test_whatever_an_argument_s_type_raises_ends_the_attempt(
    zoo: App[None], place: str
) -> None:
    task = zoo.tasks[f"take_in_{place}"]
    async with sound(zoo, place):
        handles = {
            name: await zoo.enqueue(task.name, queue=zoo_app.QUEUE, animal={"name": name})
            for name in EXCEPTIONS
        }
        await all_failed(handles, FailReason.UNDECODABLE, failures=0)


@pytest.mark.parametrize("place", PLACES)
async def test_whatever_a_retry_function_does_ends_the_attempt(zoo: App[None], place: str) -> None:
    async with sound(zoo, place):
        jobs = [zoo.tasks[f"fail_in_{place}:{name}"].job() for name in RETRIES]
        handles = dict(zip(RETRIES, await zoo.enqueue_many(jobs), strict=True))
        await all_failed(handles, FailReason.PERMANENT)


@pytest.mark.parametrize("place", PLACES)
async def test_whatever_middleware_raises_ends_the_attempt(zoo: App[None], place: str) -> None:
    task = well(zoo, place)
    async with sound(zoo, place):
        for when in ("before", "after"):
            jobs = [task.options(headers={when: name}, max_attempts=1).job() for name in EXCEPTIONS]
            handles = dict(zip(EXCEPTIONS, await zoo.enqueue_many(jobs), strict=True))
            await all_failed(handles, FailReason.EXHAUSTED)


@pytest.mark.parametrize("place", PLACES)
async def test_whatever_middleware_returns_ends_the_attempt(zoo: App[None], place: str) -> None:
    task = well(zoo, place)
    async with sound(zoo, place):
        jobs = [task.options(headers={"instead": name}).job() for name in RESULTS]
        handles = dict(zip(RESULTS, await zoo.enqueue_many(jobs), strict=True))
        await all_failed(handles, FailReason.PERMANENT)


@pytest.mark.parametrize("place", PLACES[:2])
async def test_whatever_a_hook_raises_or_returns_changes_no_outcome(
    zoo: App[None], place: str
) -> None:
    def bite(attempt: AttemptOutcome) -> Any:
        header = attempt.context.headers
        if "raise" in header:
            raise EXCEPTIONS[header["raise"]]()
        return RESULTS[header["return"]]() if "return" in header else None

    async def bite_in_loop(attempt: AttemptOutcome) -> Any:
        return bite(attempt)

    zoo.on_success(bite if place == "thread" else bite_in_loop)
    task, log = well(zoo, "loop"), EventLog()
    async with sound(zoo, emit=log):
        jobs = [
            *[task.options(headers={"raise": name}).job() for name in EXCEPTIONS],
            *[task.options(headers={"return": name}).job() for name in RESULTS],
        ]
        for handle in await zoo.enqueue_many(jobs):
            assert await handle.result(timeout=patience(15)) == "well"
    failures = log.of(HookFailed)
    assert {event.job_id for event in failures} >= {job.id for job in jobs[: len(EXCEPTIONS)]}
    assert {event.hook for event in failures} == {"on_success"}


@pytest.mark.parametrize("place", PLACES)
async def test_hooks_are_told_of_whatever_a_handler_raises(zoo: App[None], place: str) -> None:
    told: list[AttemptOutcome] = []
    zoo.on_failure(told.append)
    async with sound(zoo, place):
        handles = await enqueue(zoo, "raise", place, EXCEPTIONS)
        await all_failed(handles, FailReason.EXHAUSTED)
    assert sorted(attempt.context.job_id for attempt in told) == sorted(
        handle.id for handle in handles.values()
    )
    assert all(attempt.error is not None and attempt.error.type for attempt in told)


async def test_an_emit_that_raises_loses_its_events_and_nothing_else(
    zoo: App[None], caplog: pytest.LogCaptureFixture
) -> None:
    animals = itertools.cycle(EXCEPTIONS)
    lost: list[WorkerEvent] = []

    def emit(event: WorkerEvent) -> None:
        lost.append(event)
        raise EXCEPTIONS[next(animals)]()

    async with sound(zoo, emit=emit):
        handles = await zoo.enqueue_many(well(zoo, "loop").job() for _ in EXCEPTIONS)
        for handle in handles:
            assert await handle.result(timeout=patience(15)) == "well"
    names = {type(event).__name__ for event in lost}
    assert {
        "WorkerStarted",
        "AttemptStarted",
        "AttemptEnded",
        "WorkerStopping",
        "WorkerStopped",
    } <= names
    # Said once, so that a worker with such an emit does not fill its log.
    assert caplog.text.count("worker.emit_failed") == 1


async def test_an_emit_that_raises_for_a_stuck_handler_does_not_keep_its_attempt(
    zoo: App[None], tmp_path: Any
) -> None:
    def emit(event: WorkerEvent) -> None:
        if isinstance(event, HandlerStuck):
            raise SystemExit(7)

    begun, go = tmp_path / "begun", tmp_path / "go"
    task = zoo.tasks["wait_in_thread"].options(timeout=0.2, max_attempts=1)
    async with sound(zoo, emit=emit) as worker:
        try:
            record = await ended(await task.enqueue(str(begun), str(go)))
        finally:
            go.touch()
        assert (record.state, record.reason) == (JobState.FAILED, FailReason.EXHAUSTED)
        assert "could not be stopped" in record.errors[-1].message
        await until(lambda: worker.stuck == 0, within=10, what="the thread has ended")


@pytest.mark.parametrize("place", PLACES)
async def test_a_kit_runs_them_to_their_end_too(place: str) -> None:
    async with Kit(zoo_app.app) as kit:
        for name in EXCEPTIONS:
            await zoo_app.app.tasks[f"raise_in_{place}"].enqueue(animal=name)
        attempts = await kit.run_until_idle(limit=len(EXCEPTIONS))
    assert {(attempt.outcome, attempt.reason) for attempt in attempts} == {("failed", "exhausted")}
    assert len(attempts) == len(EXCEPTIONS)
