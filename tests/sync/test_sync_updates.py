"""Threads that wait for a job which follows another one of its id."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace import CancelOutcome, EnqueueOutcome, JobCancelled, SyncApp, SyncTask, WaitTimeout
from tests.support.threads import blocked_until, working
from tests.support.until import patience


class Gate:
    """Lets handlers end, and tells how many have begun."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.is_open: threading.Event = threading.Event()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def wait(app: SyncApp[None], gate: Gate) -> SyncTask[[int], int]:
    @app.task(name="wait")
    def wait(number: int) -> int:
        gate.begun.append(number)
        assert gate.is_open.wait(patience(10))
        return number

    return wait


def is_blocked(app: SyncApp[None]) -> bool:
    return app.queue("default").stats().blocked == 1


def test_who_waits_for_what_follows_gets_its_result(
    app: SyncApp[None], wait: SyncTask[[int], int], gate: Gate
) -> None:
    call = wait.options(id="x", on_conflict="update")
    with working(app), ThreadPoolExecutor(1) as threads:
        call.enqueue(1)
        blocked_until(lambda: gate.begun == [1])
        waiting = threads.submit(call.enqueue_and_wait, 2)
        blocked_until(lambda: is_blocked(app))
        gate.is_open.set()
        assert waiting.result(patience(10)) == 2


def test_a_word_of_the_active_job_is_not_taken_for_that_of_the_next(
    app: SyncApp[None], wait: SyncTask[[int], int], gate: Gate
) -> None:
    call = wait.options(id="x", on_conflict="update")
    with working(app):
        job = call.enqueue(1)
        blocked_until(lambda: gate.begun == [1])
        with pytest.raises(WaitTimeout):
            job.result(timeout=0)  # the storage will tell of an end that nobody waits for
        job = call.enqueue(2)
        assert job.outcome is EnqueueOutcome.UPDATED
        gate.is_open.set()
        assert job.result(timeout=patience(10)) == 2


def test_who_waits_for_what_is_cancelled_hears_of_it_and_nobody_else(
    app: SyncApp[None], wait: SyncTask[[int], int], gate: Gate
) -> None:
    call = wait.options(id="x", on_conflict="update")
    with working(app), ThreadPoolExecutor(2) as threads:
        first = threads.submit(call.enqueue_and_wait, 1)
        blocked_until(lambda: gate.begun == [1])
        second = threads.submit(call.enqueue_and_wait, 2)
        blocked_until(lambda: is_blocked(app))
        assert app.job("x").cancel(only_next=True) is CancelOutcome.CANCELLED
        with pytest.raises(JobCancelled):
            second.result(patience(10))
        gate.is_open.set()
        assert first.result(patience(10)) == 1
