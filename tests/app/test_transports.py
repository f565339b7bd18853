"""TLS and Unix sockets, with a password: the same app, worker and beats over each."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from headrace import App, StorageUnavailable, Worker
from headrace.events import QueueFenced
from headrace.testing import EventLog, running
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

PASSWORD = "open sesame"  # noqa: S105 (of the server that this test starts)


def free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Certificates:
    """A certificate authority of the test's own, and what it signed for the server."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        server = authority.issue_cert("127.0.0.1")
        self.authority = folder / "ca.pem"
        self.certificate = folder / "server.pem"
        self.key = folder / "server.key"
        authority.cert_pem.write_to_path(self.authority)
        server.cert_chain_pems[0].write_to_path(self.certificate)
        server.private_key_pem.write_to_path(self.key)


@pytest.fixture(params=["tls", "unix"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a server with a password, over TLS or a Unix socket."""
    if request.param == "unix":
        path = tmp_path / "redis.sock"
        with RedisServer("--unixsocket", str(path)) as server, server.client() as client:
            client.config_set("requirepass", PASSWORD)
            yield f"unix://:{PASSWORD.replace(' ', '%20')}@{path}"
        return
    made = Certificates(tmp_path)
    port = free_port()
    # fmt: off
    with RedisServer(
        "--tls-port", str(port), "--tls-cert-file", str(made.certificate),
        "--tls-key-file", str(made.key), "--tls-ca-cert-file", str(made.authority),
        "--tls-auth-clients", "no",
    ) as server, server.client() as client:
        client.config_set("requirepass", PASSWORD)
        password = PASSWORD.replace(" ", "%20")
        yield f"rediss://:{password}@127.0.0.1:{port}?ssl_ca_certs={made.authority}"
    # fmt: on


async def test_jobs_beats_and_results_pass_over_every_transport(url: str) -> None:
    log = EventLog()
    async with App(url) as app:

        @app.task
        async def echo(text: str) -> str:
            return text

        async with running(Worker(app, lease=0.6, emit=log)):
            assert await echo.enqueue_and_wait("a" * 100_000) == "a" * 100_000
            # Longer than the lease: the beat thread's own connection works too.
            job = await echo.options(delay=0.9).enqueue("late")
            assert await job.result(timeout=patience(10)) == "late"
            workers = await app.queue("default").workers()
            await until(lambda: workers[0].silent_s < 0.6)
    assert not log.of(QueueFenced)


async def test_a_certificate_of_nobody_known_is_refused(tmp_path: Path) -> None:
    made = Certificates(tmp_path)
    port = free_port()
    # fmt: off
    with RedisServer(
        "--tls-port", str(port), "--tls-cert-file", str(made.certificate),
        "--tls-key-file", str(made.key), "--tls-ca-cert-file", str(made.authority),
        "--tls-auth-clients", "no",
    ):
        async with App(f"rediss://127.0.0.1:{port}") as app:
            with pytest.raises(StorageUnavailable, match="certificate verify failed"):
                await app.connect()
    # fmt: on
