"""P19: an outage is told once for all queues of a worker, and so is its end."""

from __future__ import annotations

import secrets

from headrace import App, Worker
from headrace.events import QueueFenced, StorageLost, StorageRecovered
from headrace.testing import EventLog, running
from headrace.worker.outage import Outage
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.until import until

QUEUES = ["mail", "orders", "reports"]


async def test_p19_an_outage_is_told_once_and_so_is_its_end(
    redis_server: RedisServer,
) -> None:
    """P19: also one in which the worker was fenced, and began anew."""
    log = EventLog()
    async with Proxy(redis_server.port) as proxy:
        app = App(proxy.url, tenant=f"p19-{secrets.token_hex(6)}")

        @app.task(name="double", queue="mail")
        async def double(number: int) -> int:
            return 2 * number

        worker = Worker(app, QUEUES, lease=0.5, emit=log)
        async with app, running(worker):
            await until(lambda: worker.is_ready, within=10, what="the worker is ready")
            await proxy.refuse()

            def each_is_fenced() -> bool:
                proxy.reset_all()  # also what was being accepted when it began to refuse
                return {event.queue for event in log.of(QueueFenced)} == set(QUEUES)

            await until(each_is_fenced, within=20, what="each queue was fenced")
            await proxy.admit()
            await until(lambda: worker.is_ready, within=20, what="the worker is ready again")
            assert await double.enqueue_and_wait(4) == 8
            await until(lambda: bool(log.of(StorageRecovered)), within=10, what="it was told")
    assert [event.queue in QUEUES for event in log.of(StorageLost)] == [True]
    [recovered] = log.of(StorageRecovered)
    assert recovered.after_ms > 0


def test_p19_a_short_outage_of_one_queue_is_told() -> None:
    """P19: what is told is what claims have met."""
    log = EventLog()
    outage = Outage(log)
    outage.end("mail", "default")
    outage.begin("mail", "default", OSError("away"))
    outage.begin("mail", "process", OSError("away"))
    outage.begin("orders", "default", OSError("away"))
    outage.end("orders", "default")
    outage.end("mail", "default")
    assert (len(log.of(StorageLost)), len(log.of(StorageRecovered))) == (1, 0)
    outage.end("mail", "process")
    outage.end("mail", "process")
    assert (len(log.of(StorageLost)), len(log.of(StorageRecovered))) == (1, 1)
