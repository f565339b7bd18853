"""A whole worker on a real server: lifespan, retries, cancels, weights, and what goes wrong."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace import (
    App,
    Context,
    FailReason,
    JobFailed,
    JobState,
    Retry,
    RetryLater,
    Worker,
)
from headrace.app import clients_of
from headrace.events import AttemptEnded, AttemptStarted, WorkerStarted, WorkerStopped
from headrace.request import JobRequest
from headrace.storage.values import CallId
from headrace.testing import EventLog, running
from tests.support.jobs import ended, reached
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

FAST = Retry(min=0.001, max=0.01)


# Lifespan


async def test_the_lifespan_is_entered_before_the_first_job_and_left_after_the_last(
    redis_url: str,
) -> None:
    order: list[str] = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[dict[str, str]]:
        order.append("in")
        yield {"pool": "open"}
        order.append("out")

    async with App(redis_url, tenant="lifespan", lifespan=lifespan) as app:
        may_end = asyncio.Event()

        @app.task
        async def work(context: Context[dict[str, str]]) -> None:
            order.append(context.state["pool"])
            await may_end.wait()
            order.append("done")

        await work.enqueue()
        async with running(Worker(app)):
            await until(lambda: "open" in order)
            asyncio.get_running_loop().call_later(0.05, may_end.set)
    assert order == ["in", "open", "done", "out"]


async def test_a_lifespan_can_enqueue_at_both_ends(redis_url: str) -> None:
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        await app.enqueue("elsewhere", queue="begin")
        yield
        await app.enqueue("elsewhere", queue="end")

    app = App(redis_url, tenant="lifespan", lifespan=lifespan)

    @app.task
    async def work() -> None: ...

    async with running(Worker(app)):
        pass
    async with app:
        assert await app.queues() == ["begin", "default", "end"]


async def test_a_lifespan_that_can_not_begin_ends_the_worker_with_its_error(redis_url: str) -> None:
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        await app.enqueue("elsewhere", queue="begin")
        if not has_database:
            raise ConnectionError("no database")
        yield

    has_database = bool(redis_url.startswith("postgres"))

    app = App(redis_url, tenant="lifespan", lifespan=lifespan)
    with pytest.raises(ConnectionError, match="no database"):
        await Worker(app, ["default"]).run()


# Retries and history


async def test_the_history_keeps_the_last_ten_errors_with_attempt_and_time(app: App[None]) -> None:
    @app.task(max_attempts=13, retry=FAST)
    async def fail(context: Context[None]) -> None:
        raise ValueError(f"number {context.start}")

    async with running(Worker(app)):
        handle = await fail.enqueue()
        record = await ended(handle)
    assert (record.failures, record.starts, record.stalls) == (13, 13, 0)
    assert record.reason == FailReason.EXHAUSTED
    assert [error.message for error in record.errors] == [f"number {n}" for n in range(13, 3, -1)]
    assert [error.start for error in record.errors] == list(range(13, 3, -1))
    times = [error.at for error in record.errors if error.at]
    assert times == sorted(times, reverse=True)
    assert len(times) == 10
    assert record.created_at <= min(times) <= max(times) <= record.changed_at
    assert all("raise ValueError" in error.traceback for error in record.errors)


async def test_a_job_succeeds_after_errors_and_keeps_their_history(app: App[None]) -> None:
    @app.task(max_attempts=3, retry=FAST)
    async def flaky(context: Context[None]) -> str:
        if context.failures < 2:
            raise ValueError(f"error {context.failures}")
        return f"after {context.failures}"

    async with running(Worker(app)):
        handle = await flaky.enqueue()
        assert await handle.result() == "after 2"
        record = await handle.status()
    assert (record.state, record.failures, record.starts) == (JobState.COMPLETED, 2, 3)
    assert [error.message for error in record.errors] == ["error 1", "error 0"]


async def test_retry_later_counts_as_an_attempt(app: App[None]) -> None:
    @app.task(max_attempts=3)
    async def busy() -> None:
        raise RetryLater(0, "busy")

    async with running(Worker(app)):
        record = await ended(await busy.enqueue())
    assert (record.state, record.failures, record.starts) == (JobState.FAILED, 3, 3)
    assert {error.message for error in record.errors} == {"busy"}


async def test_a_retry_waits_as_long_as_its_strategy_says(app: App[None]) -> None:
    def strategy(errors: int, _error: BaseException) -> float:
        return 0.0 if errors == 1 else 60.0

    @app.task(retry=strategy)
    async def fail() -> None:
        raise ValueError("no")

    log = EventLog()
    async with running(Worker(app, emit=log)):
        handle = await fail.enqueue()
        await until(lambda: len(log.finished(handle.id)) == 2)
        record = await reached(handle, JobState.RETRYING)
    assert [event.retry_in_ms for event in log.finished(handle.id)] == [0, 60_000]
    assert record.due_at is not None
    assert abs((record.due_at - record.changed_at).total_seconds() - 60) < 1


async def test_a_bad_strategy_makes_a_dead_letter_that_tells_both_errors(app: App[None]) -> None:
    @app.task(retry=lambda errors, _error: 1 / (errors - 1))
    async def fail() -> None:
        raise ValueError("the handler's own")

    async with running(Worker(app)):
        record = await ended(await fail.enqueue())
    assert record.reason == FailReason.PERMANENT
    assert record.errors[0].type == "ZeroDivisionError"
    assert "the handler's own" in record.errors[0].traceback


# What must not end a worker


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


async def test_errors_of_any_kind_leave_the_worker_running(app: App[None]) -> None:
    errors = {
        "exit": SystemExit(1),
        "interrupt": KeyboardInterrupt(),
        "unspeakable": Unspeakable(),
        "cancelled": asyncio.CancelledError(),
        "surrogate": ValueError("\ud800\x00\x1b[31m\n"),
        "group": BaseExceptionGroup("g", [SystemExit(1)]),
    }

    @app.task(max_attempts=1)
    async def fail(kind: str) -> None:
        raise errors[kind]

    @app.task
    async def work() -> int:
        return 5

    async with running(Worker(app)):
        for kind, error in errors.items():
            with pytest.raises(JobFailed) as caught:
                await fail.enqueue_and_wait(kind)
            assert type(error).__name__ in caught.value.error_type
            assert await work.enqueue_and_wait() == 5


async def plant(app: App[Any], job_id: str, task: str, payload: bytes) -> None:
    """Store a job as no client of ours would."""
    job = JobRequest(id=job_id, queue="default", task=task, payload=payload)
    await (
        clients_of(app)
        .current()
        .storage.enqueue("default", [job], call=CallId(f"planted {job_id}", 1))
    )


async def test_jobs_that_can_not_be_read_become_dead_letters_at_once(app: App[None]) -> None:
    # RELIABILITY §5 36 to 44 and §6.18: no crash loop, and the raw bytes are kept.
    payloads = {
        "nesting": b"[" * 100_000,
        "nan": b'{"text":NaN}',
        "infinite": b'{"text":1e999}',
        "digits": b"9" * 5_000,
        "surrogate": b'{"text":"\\ud800"}',
        "pickle": b"\x80\x04\x95\x00cos\nsystem\n.",
        "msgpack": b"\xdd\xff\xff\xff\xff",
        "gzip": b"\x1f\x8b\x08\x00" + bytes(1_000),
        "extra": b'{"text":"a","__proto__":{}}',
        "nothing": b"",
    }

    @app.task(skew_grace=0)  # "extra" could wait for a release that takes it
    async def take(text: str) -> str:
        return text

    for name, payload in payloads.items():
        await plant(app, name, take.name, payload)
    async with running(Worker(app)):
        for name, payload in payloads.items():
            record = await ended(app.job(name))
            assert (record.state, record.reason) == (JobState.FAILED, FailReason.UNDECODABLE), name
            assert (record.failures, record.starts) == (0, 1)
            stored = await clients_of(app).current().storage.get("default", name)
            assert stored is not None
            assert stored.payload == payload
        assert await take.enqueue_and_wait("fine") == "fine"
    assert (await app.queue("default").stats()).dead == len(payloads)


async def test_a_task_that_no_worker_knows_waits_free_of_charge(app: App[None]) -> None:
    # BC-48: an old worker must not drop what a newer one knows.
    @app.task
    async def known() -> None: ...

    handle = await app.enqueue("os.system", command="ls", queue="default")
    log = EventLog()
    async with running(Worker(app, emit=log)):
        record = await reached(handle, JobState.SCHEDULED)
        assert record.due_at is not None
        assert 4 < (record.due_at - record.changed_at).total_seconds() <= 30
        assert (record.failures, record.stalls, record.starts) == (0, 0, 1)
        assert (await log.wait(AttemptEnded))[0].outcome == "put_back"


async def test_results_that_can_not_be_kept_make_dead_letters(app: App[None]) -> None:
    @app.task
    async def give(what: str) -> Any:
        return {"large": "x" * 2**21, "object": object(), "nan": [float("nan")]}[what]

    async with running(Worker(app)):
        reasons = {}
        for what in ("large", "object", "nan"):
            with pytest.raises(JobFailed) as caught:
                await give.enqueue_and_wait(what)
            reasons[what] = caught.value.reason
    permanent = FailReason.PERMANENT
    assert reasons == {"large": FailReason.RESULT_TOO_LARGE, "object": permanent, "nan": permanent}


async def test_collecting_garbage_all_the_time_takes_no_loop_and_no_job(app: App[None]) -> None:
    # BC-82.
    @app.task
    async def work(number: int) -> int:
        gc.collect()
        await asyncio.sleep(0)
        return number

    async with running(Worker(app, lease=1.0, sweep_interval=0.05)):
        delayed = await work.options(delay=0.2).enqueue(1)
        for number in range(5):
            gc.collect()
            assert await work.enqueue_and_wait(number) == number
        assert await delayed.result(timeout=patience(10)) == 1


# Events, slots and weights


async def test_events_tell_the_life_of_a_worker_and_its_jobs(app: App[None]) -> None:
    @app.task(max_attempts=2, retry=FAST)
    async def flaky(context: Context[None]) -> None:
        if context.failures == 0:
            raise ValueError("no")

    log = EventLog()
    async with running(Worker(app, emit=log, name="w1", concurrency=7)):
        handle = await flaky.options(id="x").enqueue()
        await handle.result()
    started = log.of(WorkerStarted)[0]
    assert (started.worker, started.queues, started.concurrency) == ("w1", {"default": 1}, 7)
    assert [(e.job_id, e.start) for e in log.of(AttemptStarted)] == [("x", 1), ("x", 2)]
    outcomes = [(event.start, event.outcome, event.error_type) for event in log.finished("x")]
    assert outcomes == [(1, "retrying", "ValueError"), (2, "completed", "")]
    assert isinstance(log.events[-1], WorkerStopped)


@pytest.mark.parametrize("is_quiet", [False, True])
async def test_a_worker_that_is_stopped_while_it_starts_ends(
    app: App[None], *, is_quiet: bool
) -> None:
    for turns in range(40):
        log = EventLog()
        worker = Worker(app, ["default"], emit=log)
        async with asyncio.timeout(patience(15)), asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            await log.wait(WorkerStarted)
            if is_quiet:
                worker.quiet()
            for _ in range(turns):
                await asyncio.sleep(0)
            worker.stop()
        assert log.of(WorkerStopped)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_no_more_attempts_run_at_once_than_there_are_slots(
    app: App[None], concurrency: int
) -> None:
    active = most = 0
    is_full = asyncio.Event()

    @app.task
    async def work() -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        if active == concurrency:
            is_full.set()
        await is_full.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        active -= 1

    handles = await app.enqueue_many(work.options(queue=q).job() for q in "abab" * 20)
    worker = Worker(app, ["a", "b"], concurrency=concurrency)
    async with running(worker):
        await asyncio.gather(*(handle.result() for handle in handles))
        assert worker.active == 0
    assert most == concurrency


async def test_a_worker_claims_no_more_than_it_has_slots_for(app: App[None]) -> None:
    go_on = asyncio.Event()

    @app.task
    async def work() -> None:
        await go_on.wait()

    handles = await app.enqueue_many(work.job() for _ in range(10))
    async with running(Worker(app, concurrency=4)):
        await until(lambda: _active(app, 4))
        assert (await app.queue("default").stats()).queued == 6
        go_on.set()
        await asyncio.gather(*(handle.result() for handle in handles))


async def _active(app: App[None], count: int) -> bool:
    return (await app.queue("default").stats()).active == count


async def test_queues_share_the_slots_by_their_weights(app: App[None]) -> None:
    # BC-89: 10 to 3 to 1, counted while all three have jobs.
    weights = {"high": 10, "middle": 3, "low": 1}
    order: list[str] = []

    @app.task
    async def work(context: Context[None]) -> None:
        order.append(context.queue)
        await asyncio.sleep(0)

    await app.enqueue_many(work.options(queue=name).job() for name in weights for _ in range(1_500))
    async with running(Worker(app, weights, concurrency=14)):
        await until(lambda: len(order) >= 4_500, within=15)
    # The start may give one queue all slots once; what follows is shared.
    counted = order[50:1_450]
    counts = Counter(counted)
    for name, weight in weights.items():
        share = counts[name] / len(counted)
        assert abs(share - weight / 14) < 0.15 * weight / 14 + 0.01, counts


async def test_many_queues_are_drained_with_few_calls(
    app: App[None], redis_server: RedisServer
) -> None:
    @app.task
    async def work() -> None: ...

    names = [f"queue-{number}" for number in range(8)]
    await app.enqueue_many(work.options(queue=name).job() for name in names for _ in range(500))
    log = EventLog()
    with redis_server.client() as client:
        client.config_resetstat()
        async with running(Worker(app, names, emit=log)):
            await until(lambda: len(log.of(AttemptEnded)) == 4_000, within=15)
        calls = client.info("commandstats")["cmdstat_fcall"]["calls"]
    # Some 380: a claim and a settlement for 25 jobs, and the little else that a worker does. With
    # slots that are dealt out one at a time they are 1,200.
    assert calls < 800


async def test_a_queue_of_low_weight_gets_all_slots_when_the_others_are_empty(
    app: App[None],
) -> None:
    go_on = asyncio.Event()

    @app.task(queue="low")
    async def work() -> None:
        await go_on.wait()

    handles = await app.enqueue_many(work.job() for _ in range(10))
    worker = Worker(app, {"high": 100, "low": 1}, concurrency=10)
    async with running(worker):
        await until(lambda: worker.active == 10)
        go_on.set()
        await asyncio.gather(*(handle.result() for handle in handles))


async def test_a_paused_queue_starts_nothing_until_it_is_resumed(app: App[None]) -> None:
    @app.task
    async def work() -> int:
        return 5

    queue = app.queue("default")
    async with running(Worker(app)):
        await queue.pause()
        handle = await work.enqueue()
        with pytest.raises(TimeoutError):
            await handle.result(timeout=0.2)
        assert (await handle.status()).state is JobState.QUEUED
        await queue.resume()
        assert await handle.result(timeout=patience(10)) == 5
