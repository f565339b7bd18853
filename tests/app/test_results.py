"""Waiting for a job: what it brings, what it raises, and that it never hangs or leaks."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, cast

import psutil
import pytest

from headrace import (
    App,
    FailPermanently,
    JobCancelled,
    JobError,
    JobFailed,
    JobHandle,
    JobNotFound,
    JobState,
    ResultExpired,
    Retry,
    Task,
    WaitTimeout,
    Worker,
)
from headrace.testing import running
from tests.support.jobs import gone, reached
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


@dataclasses.dataclass
class Receipt:
    number: int
    lines: list[str]


@pytest.fixture
def echo(app: App[None]) -> Task[[int], int]:
    @app.task
    async def echo(number: int) -> int:
        return number

    return echo


async def test_a_result_comes_back_as_the_handler_s_type(app: App[None]) -> None:
    @app.task
    async def buy(number: int) -> Receipt:
        return Receipt(number, ["é", "😀"])

    async with running(Worker(app)):
        handle = await buy.enqueue(2**63 - 1)
        assert await handle.result() == Receipt(2**63 - 1, ["é", "😀"])
        assert await handle.result(timeout=patience(5)) == Receipt(2**63 - 1, ["é", "😀"])
        # Whoever doesn't know the task gets plain data.
        plain = await app.job(handle.id).result()
        assert plain == {"number": 2**63 - 1, "lines": ["é", "😀"]}
        typed = await app.job(handle.id, task=buy.name).result()
        assert typed == Receipt(2**63 - 1, ["é", "😀"])


@pytest.mark.parametrize("size", [0, 63, 64, 65, 65_536, 65_537, 1_000_000])
async def test_results_of_every_size_come_back(app: App[None], size: int) -> None:
    # Short ones lie in the record, long ones beside it, and very long ones don't fit a message.
    @app.task
    async def write() -> str:
        return "x" * size

    async with running(Worker(app)):
        assert await write.enqueue_and_wait() == "x" * size
        handle = await write.enqueue()
        assert await handle.result() == "x" * size


@pytest.mark.parametrize("options", [{"result_ttl": 0}, {"keep": 0}, {"result_ttl": 0, "keep": 0}])
@pytest.mark.parametrize("size", [10, 100_000])
async def test_a_result_that_is_waited_for_is_kept_for_that(
    app: App[None], options: dict[str, Any], size: int
) -> None:
    @app.task(**options)
    async def write() -> str:
        return "x" * size

    async with running(Worker(app)):
        assert await write.enqueue_and_wait() == "x" * size
        assert await write.options(priority=1).enqueue_and_wait() == "x" * size
        assert await write.options(**options).enqueue_and_wait() == "x" * size


async def test_a_failed_job_tells_type_message_and_traceback(app: App[None]) -> None:
    @app.task(max_attempts=1)
    async def fail() -> None:
        raise ValueError("no such address: <a@b.c>")

    async with running(Worker(app)):
        handle = await fail.options(id="x").enqueue()
        with pytest.raises(JobFailed) as caught:
            await handle.result()
    error = caught.value
    assert (error.job_id, error.queue, error.reason) == ("x", "default", "exhausted")
    assert (error.error_type, error.error_message) == ("ValueError", "no such address: <a@b.c>")
    assert 'raise ValueError("no such address: <a@b.c>")' in error.traceback
    assert str(error) == "job 'x' failed (exhausted): ValueError: no such address: <a@b.c>"
    assert isinstance(error, JobError)
    # Also later, from the record.
    with pytest.raises(JobFailed) as again:
        await app.job("x").result()
    assert again.value.traceback == error.traceback


async def test_enqueue_and_wait_raises_what_the_job_came_to(app: App[None]) -> None:
    @app.task
    async def refuse() -> None:
        raise FailPermanently("closed on Sundays")

    async with running(Worker(app)):
        with pytest.raises(JobFailed, match=r"permanent.*closed on Sundays"):
            await refuse.enqueue_and_wait()


async def test_a_result_of_another_type_than_declared_is_a_job_error(app: App[None]) -> None:
    @app.task
    async def lie() -> int:
        return cast(int, "five")

    async with running(Worker(app)):
        with pytest.raises(JobError, match="not of the type that its task declares"):
            await lie.enqueue_and_wait()


async def test_a_wait_ends_in_time_and_the_job_goes_on(
    echo: Task[[int], int], app: App[None]
) -> None:
    handle = await echo.enqueue(5)
    with pytest.raises(WaitTimeout, match=r"0\.05 s: it is queued") as caught:
        await handle.result(timeout=0.05)
    assert caught.value.job_id == handle.id
    with pytest.raises(TimeoutError):
        await handle.result(timeout=timedelta(milliseconds=1))
    async with running(Worker(app)):
        assert await handle.result() == 5


async def test_a_wait_can_be_cancelled_and_repeated(echo: Task[[int], int], app: App[None]) -> None:
    handle = await echo.enqueue(5)
    waits = [asyncio.create_task(handle.result()) for _ in range(10)]
    await asyncio.sleep(0)
    for wait in waits[::2]:
        wait.cancel()
    async with running(Worker(app)):
        assert await asyncio.gather(*waits[1::2]) == [5] * 5
        assert await handle.result() == 5


async def test_waiting_after_the_end_returns_at_once(
    echo: Task[[int], int], app: App[None]
) -> None:
    # BC-52.
    async with running(Worker(app)):
        handle = await echo.enqueue(5)
        await reached(handle, JobState.COMPLETED)
        assert await handle.result(timeout=patience(5)) == 5
        assert await app.job(handle.id).result(timeout=patience(5)) == 5


async def test_waits_survive_the_loss_of_their_channel(
    redis_server: RedisServer, echo: Task[[int], int], app: App[None]
) -> None:
    # BC-52 and G11: what the lost message said is read again.
    handles = [await echo.enqueue(number) for number in range(20)]
    waits = [asyncio.create_task(handle.result()) for handle in handles]
    with redis_server.client() as client:
        await until(lambda: client.pubsub_channels("*:channel:*"))
        client.client_kill_filter(_type="pubsub", skipme=True)
        async with running(Worker(app)):
            await until(lambda: app.queue("default").stats())
            client.client_kill_filter(_type="pubsub", skipme=True)
            async with asyncio.timeout(patience(10)):
                assert await asyncio.gather(*waits) == list(range(20))


async def cancel(_app: App[None], handle: JobHandle[int]) -> None:
    await handle.cancel()


async def purge(app: App[None], _handle: JobHandle[int]) -> None:
    assert await app.queue("default").purge("scheduled", all_jobs=True) == 1


async def purge_by_id(app: App[None], handle: JobHandle[int]) -> None:
    assert await app.queue("default").purge("scheduled", handle.id) == 1


@pytest.mark.parametrize(
    ("end", "error"), [(cancel, JobCancelled), (purge, JobNotFound), (purge_by_id, JobNotFound)]
)
async def test_a_waiter_hears_at_once_when_its_job_is_ended_by_others(
    app: App[None],
    echo: Task[[int], int],
    end: Callable[[App[None], JobHandle[int]], Awaitable[None]],
    error: type[Exception],
) -> None:
    # BC-51.
    handle = await echo.options(delay=60).enqueue(1)
    waiting = asyncio.create_task(handle.result())
    both = asyncio.create_task(echo.options(id=handle.id).enqueue_and_wait(1))
    with pytest.raises(WaitTimeout):
        await handle.result(timeout=0.1)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await end(app, handle)
    for wait in (waiting, both):
        with pytest.raises(error):
            await wait
    assert loop.time() - began < 2, "it came by the message and not by the slow poll"


async def test_a_waiter_of_an_expired_job_is_told_without_any_worker(
    echo: Task[[int], int],
) -> None:
    # BC-51, G11: no worker serves the queue, so nobody but the waiter can notice.
    handle = await echo.options(expires=0.2).enqueue(1)
    with pytest.raises(JobFailed, match="expired"):
        await handle.result(timeout=patience(10))


async def test_a_job_that_never_was_is_not_found(app: App[None]) -> None:
    handle = app.job("never was")
    with pytest.raises(JobNotFound, match="'never was' in queue 'default'"):
        await handle.result()
    with pytest.raises(JobNotFound):
        await handle.status()
    assert (await handle.cancel()).value == "not_found"
    # G10: an unknown id leaves no trace.
    with pytest.raises(JobNotFound):
        await handle.status()


async def test_a_result_that_was_kept_shorter_than_its_record_has_expired(
    app: App[None], echo: Task[[int], int]
) -> None:
    async with running(Worker(app)):
        none = await echo.options(result_ttl=0).enqueue(5)
        await reached(none, JobState.COMPLETED)
        with pytest.raises(ResultExpired, match="raise result_ttl"):
            await none.result()


async def test_one_short_lived_result_does_not_take_others_along(
    app: App[None], echo: Task[[int], int]
) -> None:
    # BC-53.
    async with running(Worker(app)):
        long = await echo.options(id="long").enqueue(1)
        short = await echo.options(id="short", result_ttl=0.3, keep=0.3).enqueue(2)
        assert await short.result() == 2
        await gone(short)
        assert await long.result() == 1


async def test_a_job_of_each_terminal_state_can_be_enqueued_again_or_says_why(
    app: App[None], echo: Task[[int], int]
) -> None:
    # BC-25 and 26: no id stays taken by a job that is no more.
    @app.task(max_attempts=1)
    async def fail() -> None:
        raise ValueError("no")

    queue = app.queue("default")

    async def is_accepted(job_id: str) -> bool:
        return (await echo.options(id=job_id, delay=60).enqueue(1)).outcome == "scheduled"

    await (await echo.options(id="cancelled").enqueue(1)).cancel()
    assert await is_accepted("cancelled")
    for state, delay in {"queued": 0, "scheduled": 60}.items():
        await echo.options(id=f"purged {state}", delay=delay).enqueue(1)
        assert await queue.purge(state, f"purged {state}") == 1
        assert await is_accepted(f"purged {state}")
    async with running(Worker(app)):
        await reached(await fail.options(id="failed").enqueue(), JobState.FAILED)
        assert await is_accepted("failed")
        await reached(await fail.options(id="dead").enqueue(), JobState.FAILED)
        assert await queue.purge("failed", "dead") == 1
        assert await is_accepted("dead")
        await reached(await echo.options(id="done").enqueue(1), JobState.COMPLETED)
        assert await queue.purge("completed", "done") == 1
        assert await is_accepted("done")
        await gone(await echo.options(id="unkept", keep=0).enqueue(1))
        assert await is_accepted("unkept")
        await gone(await echo.options(id="short", keep=0.2).enqueue(1))
        assert await is_accepted("short")
    await reached(await echo.options(id="expired", expires=0.1).enqueue(1), JobState.QUEUED)
    with pytest.raises(JobFailed):
        await app.job("expired").result(timeout=patience(10))
    assert await is_accepted("expired")


async def test_thousands_of_round_trips_leak_nothing(
    redis_server: RedisServer, app: App[None], echo: Task[[int], int]
) -> None:
    # BC-56, scaled down.
    process = psutil.Process()
    sleeping = echo.options(queue="nobody", keep=0)

    async def ask(number: int) -> None:
        assert await echo.enqueue_and_wait(number) == number

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await sleeping.enqueue_and_wait(1)

    async def round_trips(count: int) -> tuple[int, int, int]:
        for _ in range(0, count, 100):
            await asyncio.gather(*(ask(number) for number in range(50)))
            await asyncio.gather(*(give_up() for _ in range(50)))
        gc.collect()
        with redis_server.client() as client:
            channels = len(client.pubsub_channels())
            clients = int(client.info("clients")["connected_clients"])
        return channels, clients, process.num_fds()

    async with running(Worker(app, ["default"])):
        before = await round_trips(200)
        tasks = len(asyncio.all_tasks())
        assert await round_trips(3_000) == before
        assert len(asyncio.all_tasks()) <= tasks + 1
        assert before[0] == 2  # the app's, and the worker's own


async def test_finished_work_is_bounded_by_what_a_queue_keeps(
    redis_server: RedisServer, app: App[None], echo: Task[[int], int]
) -> None:
    # BC-57, scaled down.
    queue = app.queue("default")
    await queue.configure(history=100, dead_letters=10, events=100)

    @app.task(max_attempts=1, retry=Retry(min=0.001, max=0.001))
    async def fail() -> None:
        raise ValueError("no")

    async def work(count: int) -> int:
        await app.enqueue_many(echo.job(number) for number in range(count))
        await app.enqueue_many(fail.job() for _ in range(50))
        await until(lambda: _is_idle(app), within=15)
        with redis_server.client() as client:
            return int(client.dbsize())

    async with running(Worker(app, sweep_interval=0.05)):
        before = await work(1_000)
        after = await work(5_000)
        assert after <= before + 20
        stats = await queue.stats()
        assert (stats.history, stats.dead) == (100, 10)


async def _is_idle(app: App[None]) -> bool:
    stats = await app.queue("default").stats()
    return stats.queued == stats.active == stats.retrying == 0
