"""``--health-port``: what probes are told over HTTP, also while a handler blocks the event loop."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.workers import APP, Site, log, logged, site_on
from tests.support.ports import closed_port
from tests.support.processes import WorkerProcess
from tests.support.until import until

PROBES = ("/livez", "/readyz", "/startupz")


@pytest.fixture(params=["redis", "file"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


class Answer:
    """What a server answered."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> dict[str, Any]:
        """The body."""
        assert self.headers["content-type"] == "application/json"
        found: dict[str, Any] = json.loads(self.body)
        return found


def ask(port: int, path: str, method: str = "GET", *, host: str = "127.0.0.1") -> Answer:
    """Send one request."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request(method, path)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def statuses(port: int) -> tuple[int, ...]:
    """Ask every probe."""
    return tuple(ask(port, path).status for path in PROBES)


async def port_of(worker: WorkerProcess) -> int:
    """Wait until a worker listens and return where."""
    port: int = (await log(worker, "health.listening"))["port"]
    return port


async def reach(port: int, wanted: tuple[int, ...]) -> None:
    """Wait until the probes say what is wanted: live, ready, started."""
    await until(lambda: statuses(port) == wanted, within=20, what=f"probes say {wanted}")


async def test_a_worker_that_consumes_is_live_ready_and_started(site: Site) -> None:
    with site.start("--health-port", "0", "--concurrency", "7") as worker:
        port = await port_of(worker)
        await reach(port, (200, 200, 200))
        await site.begin("hold")
        found = await until(lambda: running(port), within=10, what="it counts the attempt")
        assert found is not None
        assert 0 <= found.pop("lag_ms") < 5_000
        assert found == {
            "ok": True, "live": True, "ready": True, "started": True,
            "active": 1, "stuck": 0, "concurrency": 7,
        }  # fmt: skip


def running(port: int) -> dict[str, Any] | None:
    found = ask(port, "/readyz").json
    return found if found["active"] else None


async def test_other_paths_and_methods_are_refused(site: Site) -> None:
    with site.start("--health-port", "0", "--health-host", "127.0.0.1") as worker:
        port = await port_of(worker)
        await reach(port, (200, 200, 200))
        head = ask(port, "/readyz", "HEAD")
        assert (head.status, head.body) == (200, b"")
        assert int(head.headers["content-length"]) == len(ask(port, "/readyz").body)
        assert ask(port, "/readyz?verbose").status == 200
        for path in ("/", "/metrics", "/readyz/", "/../readyz"):
            assert ask(port, path).status == 404
            assert ask(port, path).json["ok"] is False
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
            refused = ask(port, "/readyz", method)
            assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
        assert head.headers["server"] == "headrace"
        assert worker.stderr.count("\n") == len(logged_lines(worker)), "requests are not logged"


def logged_lines(worker: WorkerProcess) -> list[str]:
    return [line for line in worker.stderr.splitlines() if line.startswith("{")]


async def test_a_blocked_loop_is_not_live_until_it_turns_again(site: Site) -> None:
    with site.start("--health-port", "0", "--max-loop-stall", "500ms") as worker:
        port = await port_of(worker)
        await reach(port, (200, 200, 200))
        await site.begin("block")
        await reach(port, (503, 503, 200))
        assert ask(port, "/livez").json["live"] is False
        site.release()
        await reach(port, (200, 200, 200))
        assert site.said() == "done"


async def test_a_worker_that_stops_is_live_and_not_ready(site: Site) -> None:
    with site.start("--health-port", "0") as worker:
        port = await port_of(worker)
        await reach(port, (200, 200, 200))
        await site.begin("hold")
        worker.term()
        await reach(port, (200, 503, 200))
        site.release()
        assert await worker.wait(20) == 0
        assert site.said() == "done"


async def test_a_quiet_worker_is_not_ready(site: Site) -> None:
    with site.start("--health-port", "0") as worker:
        port = await port_of(worker)
        await reach(port, (200, 200, 200))
        os.kill(worker.pid, signal.SIGTSTP)
        await reach(port, (200, 503, 200))


async def test_a_worker_that_waits_for_its_storage_has_not_started(tmp_path: Path) -> None:
    site = Site(f"redis://:pa55word@127.0.0.1:{closed_port()}", tmp_path)
    with site.start("--health-port", "0") as worker:
        port = await port_of(worker)
        assert statuses(port) == (200, 503, 503)
        assert b"pa55word" not in ask(port, "/startupz").body


async def test_clients_that_say_nothing_hold_up_nobody(site: Site) -> None:
    with site.start("--health-port", "0") as worker:
        port = await port_of(worker)
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        silent[0].sendall(b"GET /live")
        silent[1].sendall(b"\0\xff\r\n\r\n")
        await reach(port, (200, 200, 200))
        worker.term()
        assert await worker.wait(20) == 0
        assert "Traceback" not in worker.stderr
        for connection in silent:
            connection.close()


async def test_every_address_is_listened_on_unless_one_is_said(site: Site) -> None:
    with site.start("--health-port", "0") as worker:
        port = await port_of(worker)
        assert ask(port, "/livez", host="127.0.0.2").status == 200
    with site.start("--health-port", "0", "--health-host", "127.0.0.1") as worker:
        port = await port_of(worker)
        assert ask(port, "/livez").status == 200
        with pytest.raises(ConnectionRefusedError):
            ask(port, "/livez", host="127.0.0.2")


def test_a_port_that_is_taken_is_said_before_the_worker_starts(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = cli("worker", APP, "--health-port", port, "--health-host", "127.0.0.1")
    assert ran.code == 2
    assert ran.err == (
        f"Error: the health port {port} can't be opened on 127.0.0.1: Address already in use: "
        "choose another, or another address\n"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--health-port", "65536"), "health_port=65536 is out of bounds: use 0 to 65,535"),
        (("--health-port", "-1"), "health_port=-1 is out of bounds"),
        (("--health-port", "http"), "'http' is not a valid integer"),
        (
            ("--health-port", "0", "--health-host", "no.such.host.invalid"),
            "can't be opened on no.su",
        ),
        (("--health-port", "0", "--health-host", "x" * 70), "can't be opened on xxx"),
        (("--health-port", "0", "--health-host", "192.0.2.1"), "can't be opened on 192.0.2.1"),
        (("--health-host", "127.0.0.1"), "--health-host goes with --health-port"),
    ],
)
def test_a_bad_port_or_address_is_wrong_usage(here: Cli, words: tuple[str, ...], told: str) -> None:
    ran = here("worker", APP, *words)
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran
    assert told in ran.err


async def test_no_port_is_opened_unless_asked_for(site: Site) -> None:
    with site.start() as worker:
        await log(worker, "worker.started")
        assert logged(worker, "health.listening") == []
