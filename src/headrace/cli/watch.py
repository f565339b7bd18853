"""``headrace worker --watch``: runs the worker as a child process and restarts it on a change.

The child is the same command with a variable that tells it so. It is in a session of its own, so
that Ctrl-C reaches it once, from here, and it holds one end of a pipe, which tells it when this
process is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import click
import structlog

from headrace.backoff import Backoff
from headrace.cli.options import run

PIPE = "HEADRACE_WATCH_PIPE"
CHECK = "HEADRACE_WORKER_CHECK"
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGTSTP)
ENDED_RIGHT = (0, 2, 4)
"""Exit codes that another start of the same code would not change: done, wrong usage, no app."""

LONG_LIFE_S = 10.0
"""A worker that crashes after a longer life starts again at once."""

LAST_S = 10.0
"""How much longer than its grace a worker may go on when its supervisor is gone."""


def supervise(folders: Sequence[str]) -> int:
    """Run this command's worker until a signal ends it; return the exit code.

    Raises:
        UsageError: the extra is not installed.
    """
    try:
        import watchfiles
    except ImportError:
        raise click.UsageError(
            "--watch: watchfiles is not installed: pip install 'headrace[watch]'"
        ) from None
    changes = watchfiles.awatch(
        *folders, watch_filter=watchfiles.PythonFilter(), raise_interrupt=False
    )
    return run(Supervisor(folders, changes).run())


class Supervisor:
    """Keeps one worker process, with the newest code that can be imported.

    Args:
        folders: what is watched.
        changes: yields what has changed there, once its files rest; paths are second.
    """

    def __init__(
        self, folders: Sequence[str], changes: AsyncIterator[set[tuple[Any, str]]]
    ) -> None:
        self._folders = [str(Path(name).resolve()) for name in folders]
        self._changes = changes
        self._command = [sys.executable, "-m", "headrace", *sys.argv[1:]]
        self._child: anyio.abc.Process | None = None
        self._is_ending = False
        self._changed = anyio.Event()
        self._log = structlog.get_logger("headrace")

    async def run(self) -> int:
        """Run until a signal ends the worker; return its exit code."""
        async with anyio.create_task_group() as group:
            await group.start(self._forward)
            await group.start(self._follow)
            code = await self._keep()
            group.cancel_scope.cancel()
        return code

    async def _forward(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Pass signals on to the worker, which knows what the second and third mean."""
        with anyio.open_signal_receiver(*FORWARDED) as signals:
            task_status.started()
            async for number in signals:
                if number != signal.SIGTSTP:
                    self._is_ending = True
                    self._changed.set()
                self._send(number)

    async def _follow(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Ask the worker to end on every change that leaves the code fit to be imported."""
        self._log.info("watch.started", folders=self._folders)
        # The watch begins before the worker reads the first file: nothing is awaited in between.
        task_status.started()
        async for changes in self._changes:
            self._log.info("watch.changed", files=sorted({_short(path) for _, path in changes}))
            if self._is_ending:
                return
            if not await self._can_start():
                self._log.error("watch.refused", kept=self._child is not None)
                continue
            if not self._changed.is_set():
                self._changed.set()
                self._send(signal.SIGTERM)

    async def _can_start(self) -> bool:
        """Let another process import the code and check the options; it prints what is wrong."""
        env = {**os.environ, CHECK: "1"}
        async with await anyio.open_process(
            self._command, stdin=None, stdout=None, stderr=None, env=env, start_new_session=True
        ) as process:
            return await process.wait() == 0

    async def _keep(self) -> int:
        """Run one worker after another; return the exit code of the last."""
        backoff = Backoff()
        while True:
            self._changed = anyio.Event()
            started_at = time.monotonic()
            code = await self._run_child()
            is_crash = code not in ENDED_RIGHT and not self._changed.is_set()
            if not is_crash or time.monotonic() - started_at > LONG_LIFE_S:
                backoff.reset()
            if not self._changed.is_set():
                self._log.warning("watch.ended", code=code, restarts=is_crash)
                with anyio.move_on_after(backoff.next_s() if is_crash else None):
                    await self._changed.wait()
            if self._is_ending:
                return 128 - code if code < 0 else code

    async def _run_child(self) -> int:
        """Start a worker and wait for its end."""
        theirs, ours = os.pipe()
        try:
            self._child = await anyio.open_process(
                self._command,
                stdin=None,
                stdout=None,
                stderr=None,
                env={**os.environ, PIPE: str(theirs)},
                pass_fds=[theirs],
                start_new_session=True,
            )
            if self._changed.is_set():
                self._send(signal.SIGTERM)  # asked for while it was being started
            return await self._child.wait()
        finally:
            os.close(theirs)
            os.close(ours)
            child, self._child = self._child, None
            if child is not None:
                with anyio.CancelScope(shield=True):
                    await child.wait()  # after an error in here, since the pipe has told it to end

    def _send(self, number: signal.Signals) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError):
                self._child.send_signal(number)


def _short(path: str) -> str:
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path


def end_with_supervisor(grace_s: float) -> bool:
    """Have this process stop when its supervisor is gone; return whether it has one.

    A process whose handlers don't let it stop ends some time after its grace.
    """
    pipe = os.environ.pop(PIPE, None)
    if pipe is None:
        return False
    # What handlers start must not inherit it.
    os.set_inheritable(int(pipe), False)  # noqa: FBT003 (it takes no keyword)
    threading.Thread(
        target=_wait_for_end, args=(int(pipe), grace_s), name="headrace-watch", daemon=True
    ).start()
    return True


def _wait_for_end(pipe: int, grace_s: float) -> None:
    os.read(pipe, 1)  # nobody writes: it returns when the other end is closed
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(grace_s + LAST_S)
    os._exit(128 + signal.SIGTERM)
