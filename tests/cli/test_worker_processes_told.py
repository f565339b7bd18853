"""Several worker processes, and what their supervisor tells of them: probes and systemd."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from headrace.supervisor.children import OWN
from tests.cli.crews import Yard, members, nobody_is_left
from tests.cli.test_worker_health import ask, port_of, reach
from tests.cli.test_worker_systemd import Manager, manager
from tests.cli.workers import log, logged
from tests.support.until import until

END_S = 30.0


@pytest.fixture
async def yard(redis_url: str, tmp_path: Path) -> AsyncIterator[Yard]:
    yard = Yard(redis_url, tmp_path)
    async with yard.app:
        yield yard


async def test_probes_are_answered_for_all_workers_together(yard: Yard) -> None:
    shut = yard.notes / "shut"
    shut.touch()
    with yard.crew(2, "--health-port", "0", "-c", "1", "--max-loop-stall", "1s") as supervisor:
        port = await port_of(supervisor)
        await log(supervisor, "worker.connecting", count=2)
        await reach(port, (200, 503, 503))
        shut.unlink()
        await reach(port, (200, 200, 200))
        pids = await yard.workers(2)

        os.kill(min(pids), signal.SIGSTOP)
        await reach(port, (503, 503, 200))
        os.kill(min(pids), signal.SIGCONT)
        await reach(port, (200, 200, 200))

        shut.touch()
        os.kill(min(pids), signal.SIGKILL)
        await reach(port, (200, 503, 200))
        await log(supervisor, "worker.process_started", count=3)
        assert ask(port, "/readyz").json["ready"] is False, "one of them starts yet"
        shut.unlink()
        await reach(port, (200, 200, 200))

        for number in range(2):
            await yard.started("hold", number)
        await until(
            lambda: ask(port, "/livez").json["active"] == 2, within=20, what="it counts both"
        )
        assert ask(port, "/livez").json["concurrency"] == 2
        supervisor.term()
        await reach(port, (200, 503, 200))
        for number in range(2):
            yard.let_end(number)
        assert await supervisor.wait(END_S) == 0
        assert len(logged(supervisor, "health.listening")) == 1
        await nobody_is_left(yard)


async def test_a_blocked_worker_makes_the_whole_not_live(yard: Yard) -> None:
    with yard.crew(2, "--health-port", "0", "--max-loop-stall", "1s") as supervisor:
        port = await port_of(supervisor)
        await reach(port, (200, 200, 200))
        await yard.started("block")
        await reach(port, (503, 503, 200))
        yard.let_end()
        await reach(port, (200, 200, 200))


async def test_systemd_hears_the_supervisor_alone(yard: Yard) -> None:
    shut = yard.notes / "shut"
    shut.touch()
    address = str(yard.directory / "notify")
    told = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": ""}
    with manager(address) as systemd, yard.crew(2, "-c", "1", **told) as supervisor:
        await log(supervisor, "worker.connecting", count=2)
        for process in members(yard):
            if process.pid != supervisor.pid:
                assert not set(OWN) & set(process.environ())
        await systemd.hear("STATUS=Not ready, 0 running")
        assert "READY=1" not in systemd.heard
        shut.unlink()
        await systemd.hear("READY=1")
        for number in range(2):
            await yard.started("hold", number)
        await systemd.hear("STATUS=Ready, 2 running")
        supervisor.term()
        await systemd.hear("STOPPING=1")
        for number in range(2):
            yard.let_end(number)
        assert await supervisor.wait(END_S) == 0
        systemd.receive()
        assert systemd.heard.count("READY=1") == systemd.heard.count("STOPPING=1") == 1
        assert "WATCHDOG=1" not in systemd.heard


async def test_systemd_is_told_of_the_end_of_a_burst(yard: Yard) -> None:
    address = str(yard.directory / "notify")
    with (
        manager(address) as systemd,
        yard.crew(2, "--burst", NOTIFY_SOCKET=address, WATCHDOG_USEC="") as supervisor,
    ):
        assert await supervisor.wait(END_S) == 0
        systemd.receive()
        assert systemd.heard.count("STOPPING=1") == 1


class Watchdog:
    """How long no sign of life has come."""

    def __init__(self, systemd: Manager) -> None:
        self._systemd = systemd
        self._last_at = time.monotonic()

    @property
    def silent_s(self) -> float:
        if "WATCHDOG=1" in self._systemd.receive():
            self._last_at = time.monotonic()
        return time.monotonic() - self._last_at


async def test_signs_of_life_stop_while_one_of_the_workers_is_blocked(yard: Yard) -> None:
    address = str(yard.directory / "notify")
    # A sign of life each 0.1 seconds.
    told = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "200000"}
    with manager(address) as systemd, yard.crew(2, **told):
        await systemd.hear("READY=1")
        await systemd.hear("WATCHDOG=1")
        await yard.started("block")
        watchdog = Watchdog(systemd)
        await until(lambda: watchdog.silent_s > 2, within=20, what="the signs of life stop")
        yard.let_end()
        await until(lambda: watchdog.silent_s < 1, within=20, what="they go on")


async def test_a_worker_that_is_replaced_stops_no_signs_of_life(yard: Yard) -> None:
    address = str(yard.directory / "notify")
    told = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "200000"}
    with manager(address) as systemd, yard.crew(2, **told) as supervisor:
        await systemd.hear("READY=1")
        pids = await yard.workers(2)
        (yard.notes / "broken").touch()
        os.kill(min(pids), signal.SIGKILL)
        await log(supervisor, "worker.process_ended", count=4)
        systemd.receive()
        heard = len(systemd.heard)
        await log(supervisor, "worker.process_ended", count=5)
        systemd.receive()
        assert "WATCHDOG=1" in systemd.heard[heard:]
        assert psutil.pid_exists(max(pids))
