"""What a worker process does for its supervisor: it says how it is, and does not outlive it.

Both go over one end of a socket pair, whose number a variable tells.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Self

import anyio
import msgspec

from headrace.worker.vitals import Vitals

CHANNEL = "HEADRACE_SUPERVISOR"

TICK_S = 0.25
"""Time between two reports, if the event loop turns."""

LAST_S = 10.0
"""How much longer than its grace a worker may go on when its supervisor is gone."""


class VitalsReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker process is; each goes as one line of JSON. The fields are those of `Vitals`."""

    is_ready: bool
    active: int
    stuck: int
    lag_s: float


class Supervision:
    """The supervisor that started this process.

    Args:
        channel: to it; it is closed when the supervisor has ended.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    @classmethod
    def of_environment(cls, environ: MutableMapping[str, str] = os.environ) -> Self | None:
        """Return the one that the environment tells of, None if there is none.

        What this process starts hears nothing of it.
        """
        number = environ.pop(CHANNEL, None)
        if number is None:
            return None
        channel = socket.socket(fileno=int(number))
        channel.set_inheritable(False)
        return cls(channel)

    def end_with_it(self, grace_s: float) -> None:
        """Have this process stop when the supervisor is gone.

        A process whose handlers don't let it stop ends some time after its grace.
        """
        threading.Thread(
            target=self._wait_for_end, args=(grace_s,), name="headrace-supervisor", daemon=True
        ).start()

    def _wait_for_end(self, grace_s: float) -> None:
        with suppress(OSError):
            self._channel.recv(1)  # it sends nothing: this returns when the other end is closed
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(grace_s + LAST_S)
        os._exit(128 + signal.SIGTERM)

    async def attend(self, worker: Vitals) -> None:
        """VitalsReport for ever, from the event loop: while that stands still, nothing is said."""
        while True:
            report = VitalsReport(
                is_ready=worker.is_ready,
                active=worker.active,
                stuck=worker.stuck,
                lag_s=worker.loop_lag,
            )
            # A supervisor that is behind or gone must not hold the worker up.
            with suppress(OSError):
                self._channel.send(msgspec.json.encode(report) + b"\n", socket.MSG_DONTWAIT)
            await anyio.sleep(TICK_S)
