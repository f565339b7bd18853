"""F7: once an answer was lost nobody says that the jobs are not stored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headrace import App, EnqueueOutcome, ReplyLost
from headrace.storage.redis.library import library
from tests.support.answers import answer, answer_again, error
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.until import patience


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


REFUSALS = [
    "OOM command not allowed when used memory is over maxmemory",
    "NOPERM this user has no permissions",
    "STALECALL call 1 is older than 2",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "ERR user_script:1: attempt to index a nil value",
]


@pytest.mark.parametrize("words", REFUSALS, ids=lambda words: words.split()[0])
@pytest.mark.parametrize("is_bulk", [False, True])
async def test_a_refusal_after_a_lost_answer_is_a_lost_answer(
    server: RedisServer, words: str, *, is_bulk: bool
) -> None:
    with server.client() as client:
        client.flushall()
    async with Proxy(server.port) as proxy, App(proxy.url) as app:

        @app.task
        async def work() -> None: ...

        await app.queue("default").stats()
        # In which nothing is known of the queue yet, so that the first call is one of many.
        lost = proxy.drop_next_reply(after=library().function("enqueue").encode())
        job = work.options(id="mine").job()
        calling = asyncio.create_task(
            app.enqueue_many([job]) if is_bulk else work.options(id="mine").enqueue()
        )
        async with asyncio.timeout(patience(10)):
            await lost.wait()
            await proxy.refuse()
            answer(server, "enqueue", error(words))
            await proxy.admit()
            with pytest.raises(ReplyLost) as caught:
                await calling
        assert words.partition(" ")[2] in str(caught.value.__cause__)
        answer_again(server)
        assert (await app.queue("default").stats()).queued == 1
        again = await work.options(id="mine").enqueue()
        assert again.outcome is EnqueueOutcome.DUPLICATE
