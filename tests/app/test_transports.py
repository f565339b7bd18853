"""TLS and Unix sockets, with a password: the same app, worker and beats over each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import App, StorageUnavailable, Worker
from headrace.events import QueueFenced
from headrace.testing import EventLog, running
from tests.support.redis_server import RedisServer
from tests.support.tls import tls_server
from tests.support.until import patience, until

PASSWORD = "open sesame"  # noqa: S105 (of the server that this test starts)


@pytest.fixture(params=["tls", "unix"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a server with a password, over TLS or a Unix socket."""
    if request.param == "unix":
        path = tmp_path / "redis.sock"
        with RedisServer("--unixsocket", str(path)) as server, server.client() as client:
            client.config_set("requirepass", PASSWORD)
            yield f"unix://:{PASSWORD.replace(' ', '%20')}@{path}"
        return
    with tls_server(tmp_path) as (server, address), server.client() as client:
        client.config_set("requirepass", PASSWORD)
        yield address.replace("//", f"//:{PASSWORD.replace(' ', '%20')}@")


async def test_jobs_beats_and_results_pass_over_every_transport(url: str) -> None:
    log = EventLog()
    async with App(url) as app:

        @app.task
        async def echo(text: str) -> str:
            return text

        lease = patience(0.6)
        async with running(Worker(app, lease=lease, emit=log)):
            assert await echo.enqueue_and_wait("a" * 100_000) == "a" * 100_000
            # Longer than the lease: the beat thread's own connection works too.
            job = await echo.options(delay=1.5 * lease).enqueue("late")
            assert await job.result(timeout=1.5 * lease + patience(10)) == "late"

            async def is_heard() -> bool:
                [worker] = await app.queue("default").workers()
                return worker.silent_s < lease

            await until(is_heard)
    assert not log.of(QueueFenced)


async def test_a_certificate_of_nobody_known_is_refused(tmp_path: Path) -> None:
    with tls_server(tmp_path) as (_, address):
        async with App(address.partition("?")[0]) as app:
            with pytest.raises(StorageUnavailable, match="certificate verify failed"):
                await app.connect()
