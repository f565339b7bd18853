"""Tells systemd how the worker is: the datagrams of a service with ``Type=notify``.

Of our own, since it is one socket: sdnotify has had no release since 2017, and cysystemd compiles
against libsystemd.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from typing import Self

import anyio

from headrace.errors import InvalidOption
from headrace.events import WorkerEvent, WorkerStopping
from headrace.worker.vitals import Vitals

TICK_S = 1.0
FIRST_TICK_S = 0.1


class Systemd:
    """The service manager that started this process.

    Args:
        address: of its socket, a path or, after ``@``, an abstract name.
        watchdog_s: time within which it wants a sign of life, 0 if it wants none.

    Raises:
        InvalidOption: the address is neither.
    """

    def __init__(self, address: str, *, watchdog_s: float = 0.0) -> None:
        if address[:1] not in ("/", "@"):
            raise InvalidOption(f"NOTIFY_SOCKET={address!r} is neither a path nor an @name")
        self._address = f"\0{address[1:]}" if address[0] == "@" else address
        self._tick_s = min(TICK_S, watchdog_s / 2) if watchdog_s else TICK_S
        self._wants_life = bool(watchdog_s)
        self._is_stopping = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0)

    @classmethod
    def of_environment(cls, environ: Mapping[str, str] = os.environ) -> Self | None:
        """Return the one that the environment names, None if there is none.

        Raises:
            InvalidOption: as above.
        """
        address = environ.get("NOTIFY_SOCKET")
        if not address:
            return None
        microseconds = environ.get("WATCHDOG_USEC", "")
        is_for_us = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        has_watchdog = is_for_us and microseconds.isdecimal()
        return cls(address, watchdog_s=int(microseconds) / 1e6 if has_watchdog else 0.0)

    def notify(self, event: WorkerEvent) -> None:
        """Pass on that the worker stops."""
        if isinstance(event, WorkerStopping):
            self.stopping(event.active)

    def stopping(self, active: int) -> None:
        """Tell that the worker stops, while so many attempts run."""
        self._is_stopping = True
        self._send("STOPPING=1", f"STATUS=Stopping, {active} running")

    async def attend(self, worker: Vitals, lives: Callable[[], bool] = lambda: True) -> None:
        """Tell that the worker is ready, then what it does and that its loop turns, for ever.

        It runs in the loop, so that a loop which stands still gives no sign of life.

        Args:
            worker: whose state is told.
            lives: whether there is a sign of life to give, where the loop is not the worker's own.
        """
        is_told = False
        status = ""
        while True:
            if self._wants_life and lives():
                self._send("WATCHDOG=1")
            if not is_told and worker.is_ready:
                is_told = self._send("READY=1")
            now = self._status(worker)
            if now != status and self._send(f"STATUS={now}"):
                status = now
            await anyio.sleep(self._tick_s if is_told else min(FIRST_TICK_S, self._tick_s))

    def _status(self, worker: Vitals) -> str:
        if self._is_stopping:
            return f"Stopping, {worker.active} running"
        return f"{'Ready' if worker.is_ready else 'Not ready'}, {worker.active} running"

    def _send(self, *lines: str) -> bool:
        """Send one message; False: it did not arrive, which must not hold the worker up."""
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
