"""C2: what a lost record left beside it never shows as a new job's of the same id."""

from __future__ import annotations

import pytest

from headrace import App, Context, JobFailed, JobState, ResultExpired, RetryLater, Worker
from headrace.storage.redis import keys
from headrace.testing import running
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

OLD = "." * 100


def lose_record(server: RedisServer, app: App[None]) -> None:
    """Delete the record of job x, as an operator or an eviction may."""
    with server.client() as client:
        assert client.delete(f"{keys.root(app.tenant, 'default')}:job:x") == 1


async def test_the_result_of_a_lost_record_is_not_the_next_ones(
    app: App[None], storage_url: str, redis_server: RedisServer
) -> None:
    @app.task(result_ttl=60, keep=60)
    async def work(value: str) -> str:
        return value

    async with running(Worker(app)):
        await (await work.options(id="x").enqueue(OLD)).result(timeout=patience(10))
        lose_record(redis_server, app)
        job = await work.options(id="x", result_ttl=0).enqueue("new")
        waiting = await job.status()
        assert waiting.result is None

        async def has_ended() -> bool:
            return (await job.status()).state is JobState.COMPLETED

        await until(has_ended, within=10)
        assert (await job.status()).result is None
        with pytest.raises(ResultExpired):
            await job.result(timeout=patience(10))


async def test_the_errors_of_a_lost_record_are_not_the_next_ones(
    app: App[None], storage_url: str, redis_server: RedisServer
) -> None:
    fails = True

    @app.task(max_attempts=1)
    async def work(message: str) -> None:
        if fails:
            raise RetryLater(3600)
        raise ValueError(message)

    old = await work.options(id="x", max_attempts=9).enqueue("old")

    async def is_retrying() -> bool:
        return (await old.status()).state is JobState.RETRYING

    async with running(Worker(app)):
        await until(is_retrying, within=10)
    lose_record(redis_server, app)
    job = await work.options(id="x").enqueue("new")
    assert (await job.status()).errors == ()
    fails = False
    async with running(Worker(app)):
        with pytest.raises(JobFailed, match="new"):
            await job.result(timeout=patience(10))
    assert [error.message for error in (await job.status()).errors] == ["new"]


async def test_an_expired_job_shows_no_error_of_a_lost_record(
    app: App[None], storage_url: str, redis_server: RedisServer
) -> None:
    @app.task
    async def work() -> None:
        raise RetryLater(3600)

    old = await work.options(id="x", max_attempts=9).enqueue()

    async def is_retrying() -> bool:
        return (await old.status()).state is JobState.RETRYING

    async with running(Worker(app)):
        await until(is_retrying, within=10)
    lose_record(redis_server, app)
    job = await work.options(id="x", expires=0.001).enqueue()
    with pytest.raises(JobFailed) as caught:
        await job.result(timeout=patience(10))
    assert (caught.value.reason, caught.value.error_message) == ("expired", "")
    assert (await job.status()).errors == ()


async def test_the_output_of_a_lost_record_is_not_the_next_ones(
    app: App[None], storage_url: str, redis_server: RedisServer
) -> None:
    @app.task
    async def work(context: Context, pieces: list[str]) -> None:
        for piece in pieces:
            await context.emit(piece)

    async with running(Worker(app)):
        old = await work.options(id="x").enqueue(["old 1", "old 2", "old 3"])
        assert [piece async for piece in old.stream()] == ["old 1", "old 2", "old 3"]
        lose_record(redis_server, app)
        job = await work.options(id="x").enqueue(["new"])
        assert [piece async for piece in job.stream()] == ["new"]


async def test_the_arguments_of_a_lost_record_are_not_the_next_ones(
    app: App[None], storage_url: str, redis_server: RedisServer
) -> None:
    seen: list[str] = []

    @app.task
    async def work(value: str) -> None:
        seen.append(value)

    await work.options(id="x").enqueue(OLD)
    lose_record(redis_server, app)
    job = await work.options(id="x").enqueue("new")
    async with running(Worker(app)):
        await job.result(timeout=patience(10))
    assert seen == ["new"]
