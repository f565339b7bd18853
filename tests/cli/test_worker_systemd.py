"""A worker as a systemd service of ``Type=notify``, on a real socket of the test's own."""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.workers import APP, Site, log, site_on
from tests.support.ports import closed_port
from tests.support.until import until


@pytest.fixture(params=["redis", "file"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


class Manager:
    """The receiving end of the notifications."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._socket.settimeout(0)
        self.heard: list[str] = []

    def receive(self) -> list[str]:
        """Take the lines that have come, and return them."""
        came: list[str] = []
        while True:
            try:
                came += self._socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                self.heard += came
                return came

    async def hear(self, line: str) -> None:
        """Wait for a line."""
        await until(lambda: self.receive() and line in self.heard, within=20, what=line)


@contextmanager
def manager(address: str) -> Iterator[Manager]:
    """Listen on an address as ``NOTIFY_SOCKET`` has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        yield Manager(sock)


@pytest.mark.parametrize("kind", ["path", "abstract"])
async def test_systemd_is_told_of_the_life_of_a_worker(site: Site, kind: str) -> None:
    name = f"@headrace-{secrets.token_hex(6)}"
    address = name if kind == "abstract" else str(site.directory / "notify")
    with (
        manager(address) as systemd,
        site.start(NOTIFY_SOCKET=address, WATCHDOG_USEC="") as worker,
    ):
        await systemd.hear("READY=1")
        await site.begin("hold")
        await systemd.hear("STATUS=Ready, 1 running")
        worker.term()
        await systemd.hear("STOPPING=1")
        site.release()
        assert await worker.wait(20) == 0
        systemd.receive()
        assert systemd.heard.count("READY=1") == systemd.heard.count("STOPPING=1") == 1
        assert "STATUS=Stopping, 1 running" in systemd.heard
        assert "WATCHDOG=1" not in systemd.heard


async def test_a_worker_is_ready_only_once_its_storage_answers(tmp_path: Path) -> None:
    site = Site(f"redis://127.0.0.1:{closed_port()}", tmp_path)
    address = str(tmp_path / "notify")
    with (
        manager(address) as systemd,
        site.start(NOTIFY_SOCKET=address, WATCHDOG_USEC="500000") as worker,
    ):
        await systemd.hear("STATUS=Not ready, 0 running")
        await systemd.hear("WATCHDOG=1")
        worker.term()
        assert await worker.wait(20) == 0
        systemd.receive()
        assert "READY=1" not in systemd.heard


async def test_signs_of_life_stop_while_the_loop_is_blocked(site: Site) -> None:
    address = str(site.directory / "notify")
    with (
        manager(address) as systemd,
        site.start(NOTIFY_SOCKET=address, WATCHDOG_USEC="100000") as worker,
    ):
        await systemd.hear("WATCHDOG=1")
        await site.begin("block")
        systemd.receive()  # what was sent before
        await log(worker, "worker.loop_blocked")
        # Many more of its times have passed, and the handler still has the loop.
        assert systemd.receive() == []
        site.release()
        await systemd.hear("WATCHDOG=1")


async def test_a_watchdog_of_another_process_is_not_ours(site: Site) -> None:
    address = str(site.directory / "notify")
    with (
        manager(address) as systemd,
        site.start(NOTIFY_SOCKET=address, WATCHDOG_USEC="100000", WATCHDOG_PID="1") as worker,
    ):
        await systemd.hear("READY=1")
        worker.term()
        assert await worker.wait(20) == 0
        systemd.receive()
        assert "WATCHDOG=1" not in systemd.heard


async def test_a_manager_that_does_not_listen_is_no_error(site: Site) -> None:
    missing = str(site.directory / "missing")
    with site.start("--burst", NOTIFY_SOCKET=missing, WATCHDOG_USEC="100000") as worker:
        await log(worker, "worker.stopped")
        assert await worker.wait(20) == 0


def test_an_address_that_is_none_is_wrong_usage(here: Cli) -> None:
    ran = here("worker", APP, env={"NOTIFY_SOCKET": "vsock:2:1234"})
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran
    assert "NOTIFY_SOCKET='vsock:2:1234' is neither a path nor an @name" in ran.err
