"""E6: an error that nobody waits for any more is not printed as one that was overlooked."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from headrace import App, Worker
from headrace.testing import running
from tests.support.redis_server import RedisServer
from tests.support.until import until


async def test_a_sign_of_life_that_is_refused_is_nobodys_error() -> None:
    overlooked: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: overlooked.append(context))
    with RedisServer() as server, server.client() as client:
        async with App(server.url) as app:

            @app.task
            async def work() -> int:
                return 5

            async with running(Worker(app)):
                assert await work.enqueue_and_wait() == 5
                client.execute_command("ACL", "SETUSER", "default", "-ping")

                def has_asked() -> bool:
                    return any(line["cmd"] == "ping" for line in client.client_list(_type="pubsub"))

                # It asks once nothing was heard for three seconds.
                await until(has_asked, within=15)
                assert await work.enqueue_and_wait() == 5
        gc.collect()
        await asyncio.sleep(0)
        assert overlooked == []
