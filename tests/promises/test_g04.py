"""G4: what survives is said by the server's settings, and what can't be kept refuses to start.

That a server which evicts is refused has tests of its own, with the other refusals.
"""

from __future__ import annotations

import asyncio

from headrace import App, Worker
from headrace.app import clients_of
from headrace.testing import running
from tests.support.redis_server import RedisServer
from tests.support.until import patience


async def test_with_fsync_always_nothing_accepted_is_lost_when_the_server_is_killed() -> None:
    with RedisServer("--appendfsync", "always", appendonly=True) as server:
        async with App(server.url) as app:

            @app.task
            async def work(number: int) -> int:
                return number

            handles = await app.enqueue_many(work.job(number) for number in range(300))
            handles += [await work.options(delay=0.5).enqueue(number) for number in range(300, 310)]
            server.kill()
            server.start()
            # The functions are there again too.
            async with running(Worker(app, lease=1.0, sweep_interval=0.2)):
                results = await asyncio.gather(
                    *(handle.result(timeout=patience(15)) for handle in handles)
                )
            assert results == list(range(310))


async def test_the_doctor_tells_what_a_crash_would_cost() -> None:
    for arguments, level, words in [
        ((), "warning", "none"),
        (("--appendonly", "yes", "--appendfsync", "everysec"), "ok", "1 to 2 seconds"),
        (("--appendonly", "yes", "--appendfsync", "always"), "ok", "no accepted job is lost"),
    ]:
        with RedisServer(*arguments) as server:
            async with App(server.url) as app:
                findings = {f.topic: f for f in await clients_of(app).current().storage.diagnose()}
                assert findings["persistence"].level == level
                assert words in findings["persistence"].detail
