"""Child processes that a test may kill, stop and end, and that never outlive the tests."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.support.until import until

ROOT = Path(__file__).parents[2]
PR_SET_PDEATHSIG = 1


def dying_with_parent() -> Callable[[], None] | None:
    """Return a ``preexec_fn`` that lets the kernel kill the child when its parent dies (Linux).

    The kernel's "parent" is the thread that started the child: start children in the main thread.
    """
    if sys.platform != "linux":
        return None
    # Loaded here, since what runs between fork and exec must do as little as it can.
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def arm() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return arm


def is_alive(process: psutil.Process | int) -> bool:
    """Whether a process runs: one that has ended, and that nobody has waited for yet, does not."""
    try:
        if isinstance(process, int):
            process = psutil.Process(process)
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Send SIGKILL to processes, of which some may be ending by themselves."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


class WorkerProcess:
    """A child in a session of its own, its output in files; leaving the ``with`` kills it.

    Args:
        argv: the program and its arguments.
        directory: where ``<name>.stdout`` and ``<name>.stderr`` are written, such as ``tmp_path``.
        name: the stem of these files.
        env: variables set besides those of the tests.
        cwd: its working directory.
    """

    def __init__(
        self,
        *argv: str,
        directory: Path,
        name: str = "worker",
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.argv = argv
        self._paths = directory / f"{name}.stdout", directory / f"{name}.stderr"
        with self._paths[0].open("wb") as stdout, self._paths[1].open("wb") as stderr:
            self._process = subprocess.Popen(
                argv,
                cwd=cwd,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=dying_with_parent(),
            )
        self.pid = self._process.pid

    @classmethod
    def module(
        cls,
        module: str,
        *args: str,
        directory: Path,
        name: str = "worker",
        env: Mapping[str, str] | None = None,
        python: str = sys.executable,
        cwd: Path = ROOT,
    ) -> Self:
        """Start ``python -m module args``, at the root of the checkout unless told otherwise.

        ``python`` is the interpreter of the tests unless another one is given.
        """
        argv = (python, "-m", module, *args)
        return cls(*argv, directory=directory, name=name, env=env, cwd=cwd)

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    @property
    def stdout(self) -> str:
        """What it has written to its standard output so far."""
        return self._paths[0].read_text(errors="replace")

    @property
    def stderr(self) -> str:
        """What it has written to its standard error so far."""
        return self._paths[1].read_text(errors="replace")

    def kill(self) -> None:
        """Send SIGKILL to the process alone, not to its children."""
        self._process.kill()

    def term(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def stop(self) -> None:
        """Send SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def cont(self) -> None:
        """Send SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    async def wait(self, timeout: float = 10.0) -> int:
        """Return the exit status once it has ended, within ``timeout`` seconds."""
        await until(
            lambda: self.returncode is not None, within=timeout, what=f"{self.argv} has ended"
        )
        return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # It leads its session, so this reaches the children that a killed worker left behind too.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        if exc_type is not None:
            sys.stderr.write(
                f"{self.argv} (pid {self.pid}) ended with {self._process.returncode}\n"
                f"--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}\n"
            )
