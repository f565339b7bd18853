"""Threads wait for the ends of jobs, read their results and output, and cancel them."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import (
    App,
    BulkWrite,
    CancelOutcome,
    Context,
    Cron,
    Every,
    InvalidOption,
    JobCancelled,
    JobFailed,
    JobHandle,
    JobNotFound,
    JobState,
    Queue,
    ResultExpired,
    RetryLater,
    ScheduleNotFound,
    Schedules,
    SyncApp,
    SyncBulkWrite,
    SyncJobHandle,
    SyncQueue,
    SyncSchedules,
    SyncTask,
    SyncTaskRef,
    Task,
    TaskRef,
    WaitTimeout,
)
from headrace.queue_events import QueueEvents
from tests.support.threads import at_a_time, blocked_until, working
from tests.support.until import patience


@pytest.fixture
def add(app: SyncApp[None]) -> SyncTask[[int, int], int]:
    @app.task(name="add")
    async def add(left: int, right: int) -> int:
        return left + right

    return add


def test_a_result_comes_from_a_worker(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    @app.task(name="path")
    def path(name: str) -> Path:
        return Path(name)

    early = add.enqueue(1, 2)
    with working(app):
        assert early.result(timeout=patience(10)) == 3
        assert early.result() == 3
        assert add.enqueue(3, 4).result(timeout=timedelta(seconds=patience(10))) == 7
        assert add.enqueue_and_wait(5, 6) == 11
        assert path.enqueue("b/c").result(timeout=patience(10)) == Path("b/c")
        assert app.job(early.id).result() == 3
        assert app.enqueue("path", "a").result(timeout=patience(10)) == Path("a")
        assert app.task_ref("add").enqueue_and_wait(1, 1) == 2


def test_a_request_may_be_repeated_under_its_id(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    with working(app):
        for _ in range(3):
            assert add.options(id="w:1").enqueue_and_wait(1, 2) == 3


@pytest.mark.parametrize("size", [70_000, 900_000])
def test_a_large_result_is_read(app: SyncApp[None], size: int) -> None:
    @app.task(name="large")
    def large(size: int) -> str:
        return "x" * size

    with working(app):
        assert large.enqueue_and_wait(size) == "x" * size
        assert large.enqueue(size).result(timeout=patience(10)) == "x" * size


def test_how_a_job_failed_is_raised(app: SyncApp[None]) -> None:
    @app.task(name="fail", max_attempts=1)
    async def fail() -> None:
        raise LookupError("nothing there")

    with working(app):
        with pytest.raises(JobFailed, match="LookupError: nothing there"):
            fail.enqueue_and_wait()
        job = fail.enqueue()
        with pytest.raises(JobFailed, match="nothing there") as caught:
            job.result(timeout=patience(10))
    assert caught.value.error_type == "LookupError"
    assert job.status().state is JobState.FAILED


def test_what_is_not_there_any_more_is_told(app: SyncApp[None]) -> None:
    @app.task(name="brief", result_ttl=0, keep=60)
    async def brief() -> int:
        return 1

    with pytest.raises(JobNotFound, match="no such"):
        app.job("no such").result()
    waiting = brief.options(delay=60).enqueue()
    assert waiting.cancel() is CancelOutcome.CANCELLED
    with pytest.raises(JobCancelled):
        waiting.result()
    job = brief.enqueue()
    with working(app), pytest.raises(ResultExpired):
        job.result(timeout=patience(10))


def test_a_wait_that_is_too_short_has_the_handle(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    job = add.enqueue(1, 2)
    with pytest.raises(WaitTimeout, match="no worker serves queue 'default'") as caught:
        job.result(timeout=0.05)
    assert caught.value.handle is job
    assert caught.value.is_served is False
    with pytest.raises(WaitTimeout) as caught:
        add.options(id="late", wait_timeout=0.05).enqueue_and_wait(1, 2)
    late = caught.value.handle
    assert isinstance(late, SyncJobHandle)
    with working(app):
        assert late.result(timeout=patience(10)) == 3
    assert job.result(timeout=0) == 3
    with pytest.raises(InvalidOption, match="timeout"):
        job.result(timeout=-1)


def test_a_word_of_an_earlier_job_of_the_id_is_not_believed(app: SyncApp[None]) -> None:
    runs: list[int] = []

    @app.task(name="count")
    def count() -> int:
        runs.append(1)
        return len(runs)

    for turn in range(1, 4):
        job = count.options(id="same").enqueue()
        with pytest.raises(WaitTimeout):
            job.result(timeout=0)  # the storage will tell of an end that nobody waits for
        with working(app):
            assert count.options(id="same").enqueue_and_wait() == turn
        assert app.queue("default").purge("completed", "same") == 1


def test_threads_wait_at_once(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    def ask(number: int) -> list[int]:
        found = [add.enqueue_and_wait(number, n) for n in range(5)]
        return found + [add.enqueue(number, n).result() for n in range(5)]

    with working(app):
        found = at_a_time(12, ask)
    assert found == [[number + n for n in [*range(5), *range(5)]] for number in range(12)]


def test_several_threads_wait_for_one_job(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    job = add.enqueue(1, 2)
    waiting = threading.Semaphore(0)

    def wait(_number: int) -> int:
        waiting.release()
        return job.result()

    def work(_number: int) -> int:
        for _ in range(3):
            waiting.acquire()
        with working(app):
            return job.result()

    assert at_a_time(4, lambda number: work(0) if number == 0 else wait(number)) == [3] * 4


def test_a_job_may_be_waited_for_over_a_retry(app: SyncApp[None]) -> None:
    @app.task(name="twice")
    async def twice(context: Context[None]) -> int:
        if context.start == 1:
            raise RetryLater(0.05)
        return context.start

    with working(app):
        assert twice.enqueue_and_wait() == 2


def test_output_is_a_plain_iterator(app: SyncApp[None]) -> None:
    @app.task(name="speak")
    async def speak(context: Context[None], words: list[str]) -> int:
        for word in words:
            context.emit(word)
        return len(words)

    with working(app):
        job = speak.enqueue(["a", "b", "c"])
        assert list(job.stream()) == ["a", "b", "c"]
        assert job.result() == 3
        with pytest.raises(JobNotFound):
            list(app.job("no such").stream())


def test_a_running_job_is_cancelled(app: SyncApp[None]) -> None:
    started, pause = threading.Event(), threading.Event()

    @app.task(name="long")
    def long(context: Context[None]) -> None:
        started.set()
        while not context.cancelled():
            pause.wait(0.01)

    with working(app):
        job = long.enqueue()
        assert started.wait(timeout=patience(10))
        assert job.cancel() is CancelOutcome.REQUESTED
        with pytest.raises(JobCancelled):
            job.result(timeout=patience(10))
    assert job.cancel() in (CancelOutcome.CANCELLED, CancelOutcome.FINISHED)


def test_ended_jobs_are_read_back(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    jobs = [add.enqueue(n, n) for n in range(3)]
    with working(app):
        assert [job.result() for job in jobs] == [0, 2, 4]
    queue = app.queue("default")
    assert [found.result for found in queue.outcomes(*(job.id for job in jobs))] == [0, 2, 4]
    exported = list(queue.export("completed"))
    assert {found.id for found in exported} == {job.id for job in jobs}
    assert list(queue.export("completed", after=exported[-1].cursor)) == []


def test_a_reader_goes_on_behind_what_it_has_acknowledged(
    app: SyncApp[None], add: SyncTask[[int, int], int]
) -> None:
    queue = app.queue("default")
    queue.acknowledge("archive", "0")
    app.enqueue_many(add.job(n, n) for n in range(30))
    seen = []
    for event in queue.events(reader="archive"):
        seen.append(event.number)
        if event.number == 7:
            queue.acknowledge("archive", event)
            break
    [archive] = queue.readers()
    assert (archive.name, archive.number, archive.behind) == ("archive", 7, 23)
    seen += [event.number for event in queue.events(reader="archive")]
    assert seen == list(range(1, 31))
    assert queue.forget_reader("archive")
    assert queue.readers() == []


def test_every_method_of_the_async_side_has_its_twin() -> None:
    for twin, other in (
        (SyncQueue, Queue),
        (SyncQueue, QueueEvents),
        (SyncSchedules, Schedules),
        (SyncJobHandle, JobHandle),
        (SyncTask, Task),
        (SyncTaskRef, TaskRef),
        (SyncBulkWrite, BulkWrite),
    ):
        named = {name for name in vars(other) if not name.startswith("_")}
        assert named - {"place"} <= set(dir(twin)), other
    renamed = {"aclose": "close"}
    named = {renamed.get(name, name) for name in dir(App) if not name.startswith("_")}
    assert named - set(dir(SyncApp)) == {"codec"}


def test_hooks_and_schedules_are_declared_on_it(app: SyncApp[None]) -> None:
    ends: list[str] = []
    app.on_success(lambda attempt: ends.append(attempt.context.task))

    @app.every(3600, id="hourly")
    @app.cron("0 9 * * 1", id="weekly")
    @app.task(name="report")
    async def report(region: str = "eu") -> str:
        return region

    app.schedule("yearly", report.job("us"), Every(365 * 86_400))
    assert isinstance(report, SyncTask)
    with working(app):
        assert report.enqueue_and_wait("asia") == "asia"
        declared = {"hourly", "weekly", "yearly"}
        blocked_until(lambda: {stored.id for stored in app.schedules.list()} == declared)
    assert "report" in ends


def test_stored_schedules_are_steered(app: SyncApp[None], add: SyncTask[[int, int], int]) -> None:
    schedules = app.schedules
    stored = schedules.put("nightly", add.job(1, 2), Cron("0 3 * * *"))
    assert (stored.id, stored.task) == ("nightly", "add")
    assert schedules.pause("nightly").is_paused
    assert not schedules.resume("nightly").is_paused
    job = schedules.trigger("nightly")
    assert [event.outcome for event in schedules.history("nightly")] == ["triggered"]
    with working(app, scheduler=False):
        assert job.result(timeout=patience(10)) == 3
    assert [schedule.id for schedule in schedules.list()] == ["nightly"]
    assert schedules.delete("nightly")
    assert schedules.get("nightly") is None
    with pytest.raises(ScheduleNotFound):
        schedules.trigger("nightly")
