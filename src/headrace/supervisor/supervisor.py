"""Keeps the worker processes of ``headrace worker --processes N`` and ``--watch``.

It imports nothing of the app, so that it stays small and nothing in there can end it.
"""

from __future__ import annotations

import logging
import signal
import time
from contextlib import suppress

import anyio
import anyio.abc

from headrace.logs.log import write_line
from headrace.supervisor.children import CHECK, SupervisedWorker, start
from headrace.supervisor.crew import Crew
from headrace.supervisor.restarts import Restarts
from headrace.worker.notify import Systemd
from headrace.worker.signals import stopping

FAILED = 1

AFTER_FIRST = "puts back what still runs"
"""What the second signal does to a worker, told with the first."""

AFTER_SECOND = "kills the processes"

ENDED_EARLY = (-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP, 128 + signal.SIGINT)
"""How a process ends by the first signal while it starts, when it has no jobs yet."""


class Supervisor:
    """Keeps the processes of a crew.

    Args:
        crew: the workers.
        replaces: whether another process follows one that has ended by itself.
        waits: whether a worker that is not to start again waits for `Crew.replace`.
        systemd: told when this stops.
    """

    def __init__(
        self, crew: Crew, *, replaces: bool, waits: bool, systemd: Systemd | None = None
    ) -> None:
        self._crew = crew
        self._replaces = replaces
        self._waits = waits
        self._systemd = systemd
        self._last_signal = 0

    async def run(self) -> int:
        """Keep the processes until a signal or their own work ends them; return the worst code."""
        async with anyio.create_task_group() as group:
            await group.start(self._handle_signals)
            code = await self._keep_all()
            group.cancel_scope.cancel()
        if self._systemd is not None and not self._crew.is_ending:
            self._systemd.stopping(0)
        return code

    async def _handle_signals(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        with anyio.open_signal_receiver(*stopping(), signal.SIGTSTP) as signals:
            task_status.started()
            async for number in signals:
                if number == signal.SIGTSTP:
                    self._crew.quiet()
                    continue
                if self._systemd is not None and not self._crew.is_ending:
                    self._systemd.stopping(self._crew.active)
                self._last_signal = number
                self._crew.end(number)
                write_line(
                    logging.INFO,
                    "worker.signalled",
                    signal=number.name,
                    count=self._crew.signals,
                    next_signal=AFTER_FIRST if self._crew.signals == 1 else AFTER_SECOND,
                )

    async def check(self) -> int:
        """Let another process import the app and check the options; it prints what is wrong.

        Returns:
            Its exit code, 0 if all is well; the end, when it is asked for, is not waited for.
        """
        try:
            process, channel = await start({CHECK: "1"})
        except OSError as error:
            write_line(logging.ERROR, "worker.process_failed", error=str(error))
            return FAILED
        with channel:
            async with process, anyio.create_task_group() as group:
                group.start_soon(self._kill_at_end, process)
                code = await process.wait()
                group.cancel_scope.cancel()
        return code

    async def _kill_at_end(self, process: anyio.abc.Process) -> None:
        await self._crew.ending.wait()
        with suppress(ProcessLookupError):
            process.kill()

    async def _keep_all(self) -> int:
        code = await self.check()
        if self._crew.is_ending:
            return 0
        if code:
            if not self._waits:
                return code
            write_line(logging.ERROR, "watch.refused", kept=False)
            await self._wait_for_repair(code)
        async with anyio.create_task_group() as group:
            for child in self._crew.children:
                group.start_soon(self._keep, child)
        return self._worst()

    async def _wait_for_repair(self, code: int) -> None:
        for child in self._crew.children:
            child.code = code  # what this ends with if nobody repairs it
            await child.asked.wait()

    async def _keep(self, child: SupervisedWorker) -> None:
        """Run one worker process after another."""
        restarts = Restarts(replaces=self._replaces)
        while not self._crew.is_ending:
            pause_s = await self._run_once(child, restarts)
            if pause_s is None and (self._crew.is_ending or not self._waits):
                return
            with anyio.move_on_after(pause_s):
                await child.asked.wait()

    async def _run_once(self, child: SupervisedWorker, restarts: Restarts) -> float | None:
        """Run a process to its end; return the pause before another, None: there is to be none."""
        started_at = time.monotonic()
        try:
            await child.live()
        except OSError as error:
            pause_s = restarts.failed_s()
            child.code = FAILED
            write_line(
                logging.ERROR,
                "worker.process_failed",
                error=str(error),
                pause_s=round(pause_s, 2),
            )
            return pause_s
        lived_s = time.monotonic() - started_at
        pause: float | None
        if self._crew.is_ending:
            pause = None
        elif child.asked.is_set():
            restarts.reset()
            pause = 0.0
        else:
            pause = restarts.pause_s(child.code, lived_s=lived_s)
        self._report(child, lived_s, pause)
        return pause

    def _report(self, child: SupervisedWorker, lived_s: float, pause_s: float | None) -> None:
        is_crash = child.code != 0 and not child.asked.is_set()
        write_line(
            logging.WARNING if is_crash else logging.INFO,
            "worker.process_ended",
            number=child.number,
            pid=child.pid,
            lived_s=round(lived_s, 2),
            restarts=pause_s is not None,
            **_how(child.code),
            **({} if pause_s is None else {"pause_s": round(pause_s, 2)}),
        )

    def _worst(self) -> int:
        if self._crew.signals > 2:
            return 128 + self._last_signal
        return max(self._status(child.code) for child in self._crew.children)

    def _status(self, code: int) -> int:
        if self._crew.is_ending and code in ENDED_EARLY:
            return 0
        return 128 - code if code < 0 else code


def _how(code: int) -> dict[str, int | str]:
    """Return what an exit code says, for a log."""
    if code >= 0:
        return {"code": code}
    try:
        return {"signal": signal.Signals(-code).name}
    except ValueError:  # a real-time signal
        return {"signal": str(-code)}
