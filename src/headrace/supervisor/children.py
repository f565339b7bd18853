"""The processes that a supervisor starts, all of its own command line.

Each is in a session of its own, so that Ctrl-C reaches it once, from here. It holds one end of a
socket pair, by which it knows when this process is gone, and a worker says how it is.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

import anyio
import anyio.abc
import msgspec

from headrace.logs.log import write_line
from headrace.supervisor.supervised import CHANNEL, VitalsReport

CHECK = "HEADRACE_WORKER_CHECK"

OWN = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
"""What the service manager has told this process alone."""

READ_BYTES = 4096


async def start(env: Mapping[str, str]) -> tuple[anyio.abc.Process, socket.socket]:
    """Start this command once more, with some variables added; return it and our end of its pair.

    Raises:
        OSError: there is no room for another process.
    """
    kept = {name: value for name, value in os.environ.items() if name not in OWN}
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = await anyio.open_process(
                [sys.executable, "-m", "headrace", *sys.argv[1:]],
                stdin=None,
                stdout=None,
                stderr=None,
                env={**kept, **env, CHANNEL: str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    return process, ours


class SupervisedWorker:
    """One worker process after another.

    Args:
        number: to tell it from the others, from 1 on.

    Attributes:
        asked: set when its process was asked to end, and when one should follow that has ended.
        pid: of its last process, 0 if there was none.
        code: how that ended: its status, or minus the signal that killed it.
        report: what the running process has said last, None if it has said nothing yet.
    """

    def __init__(self, number: int) -> None:
        self.number: int = number
        self.asked: anyio.Event = anyio.Event()
        self.pid: int = 0
        self.code: int = 0
        self.report: VitalsReport | None = None
        self._reported_at = 0.0
        self._process: anyio.abc.Process | None = None
        self._is_quiet = False

    @property
    def is_running(self) -> bool:
        """Whether it has a process."""
        return self._process is not None

    @property
    def silent_s(self) -> float:
        """For how long a process that has reported once has not done so again."""
        return 0.0 if self.report is None else time.monotonic() - self._reported_at

    async def live(self) -> None:
        """Run a process to its end.

        Raises:
            OSError: it can't be started.
        """
        self.asked = anyio.Event()
        process, ours = await start({})
        with ours:
            self._process, self.pid = process, process.pid
            write_line(logging.INFO, "worker.process_started", number=self.number, pid=self.pid)
            try:
                if self.asked.is_set():
                    self._send(signal.SIGTERM)  # it was, while the process was being started
                async with anyio.create_task_group() as group:
                    group.start_soon(self._receive, ours)
                    self.code = await process.wait()
                    group.cancel_scope.cancel()
            finally:
                ours.close()  # after an error in here this tells the process to end
                with anyio.CancelScope(shield=True):
                    await process.wait()
                self._process = self.report = None

    async def _receive(self, channel: socket.socket) -> None:
        channel.setblocking(False)  # noqa: FBT003 (its only parameter)
        unread = b""
        with suppress(OSError):
            while True:
                await anyio.wait_readable(channel)
                data = channel.recv(READ_BYTES)
                if not data:
                    return
                *lines, unread = (unread + data).split(b"\n")
                if lines:
                    self._take(lines[-1])

    def _take(self, line: bytes) -> None:
        is_first = self.report is None
        # A process that was stopped in the middle of a line has left half of one.
        with suppress(msgspec.DecodeError):
            self.report = msgspec.json.decode(line, type=VitalsReport)
        self._reported_at = time.monotonic()
        if is_first and self._is_quiet:
            self._send(signal.SIGTSTP)

    def replace(self) -> None:
        """Ask the process to end, so that another one follows; once, to keep its grace."""
        if not self.asked.is_set():
            self.asked.set()
            self._send(signal.SIGTERM)

    def end(self, number: signal.Signals) -> None:
        """Pass on a signal that ends the process, and that has no other follow."""
        self.asked.set()
        self._send(number)

    def quiet(self) -> None:
        """Have this process claim no more, and those that follow."""
        self._is_quiet = True
        self._send(signal.SIGTSTP)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
