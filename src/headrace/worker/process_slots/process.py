"""One process slot's child, seen from the worker: it runs one attempt at a time and can be killed.

The process is that of an executor of its own, whose only call lasts as long as the process. Plans
and replies go over a socket beside it: when a process dies while it writes a large result, the
executor would wait for the rest for ever (2 of 9 kills), and a call of it costs four times as much.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from ctypes import c_uint64
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.sharedctypes import RawValue
from typing import Any

import anyio

from headrace.context import Reporter
from headrace.errors import UsageError
from headrace.forks import keep, on_fork
from headrace.worker.plan import Plan
from headrace.worker.process_slots import child
from headrace.worker.process_slots.child import ChildSettings
from headrace.worker.process_slots.functions import Function
from headrace.worker.process_slots.messages import (
    STOP,
    ChildNotReady,
    ChildReady,
    Emitted,
    FrameReader,
    Message,
    Progressed,
    Reply,
    frame,
)
from headrace.worker.process_slots.parent import ArmedName

ASK_S = 0.25
"""How long a function may take to return once `Context.cancelled` is true; then comes SIGTERM."""

TERM_S = 0.25
"""How long what a handler has started may take to end after SIGTERM; then comes SIGKILL."""

READ_BYTES = 64 * 1024
EXIT_LOOKS = 100


class ChildDied(Exception):
    """The child ended, or could not begin.

    Attributes:
        had_begun: whether it had taken the job, so that its death is the job's.
    """

    def __init__(self, how: str, *, had_begun: bool = False) -> None:
        super().__init__(how)
        self.had_begun: bool = had_begun


LAST_WAIT_S = 1.0
"""How long the end of the program waits for the executors to see that their processes are gone."""

_running: dict[SpawnProcess, threading.Thread] = {}
"""The processes that run, and the threads in which their executors wait for them."""


def _kill_running() -> None:
    running = dict(_running)
    for process in running:
        process.kill()
    # Such a thread then closes a pipe into which the interpreter is about to write.
    give_up_at = time.monotonic() + LAST_WAIT_S
    for thread in running.values():
        thread.join(max(0.0, give_up_at - time.monotonic()))


# An executor registers in the same way that the interpreter waits for its calls to end. What comes
# later goes first, so that a program whose loop was just left does not hang at its end; `atexit`
# would come after both.
threading._register_atexit(_kill_running)  # type: ignore[attr-defined]  # noqa: SLF001
on_fork(in_child=_running.clear)


class Spawning(SpawnContext):
    """The way to start processes, which remembers the one that it started."""

    started: SpawnProcess | None = None

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]
        """Make a process; the executor calls this."""
        kwargs["name"] = ArmedName("headrace-slot")
        self.started = SpawnProcess(*args, **kwargs)
        return self.started


class SlotProcess:
    """A spawned process that runs one function at a time.

    Args:
        functions: by task name, where the child finds them.
        settings: for the child.

    Attributes:
        pid: its process id, 0 before `warm`.
        is_busy: the caller's note that it is not to be given another job.
        resident_bytes: its memory after the last of its jobs.
    """

    def __init__(self, functions: Mapping[str, Function], settings: ChildSettings) -> None:
        self.pid: int = 0
        self.is_busy: bool = False
        self.resident_bytes: int = 0
        self._functions = functions
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._retired: asyncio.Future[str] = self._loop.create_future()
        self._ended = asyncio.Event()
        self._how = "it has not begun"
        self._frames = FrameReader()
        self._unsent = bytearray()
        self._reporter: Reporter | None = None
        self._begun = c_uint64(0)
        self._begun_before = 0
        self._answer: ChildReady | ChildNotReady | Reply | None = None
        self._answered = asyncio.Event()  # or it has ended
        self._is_closing = False

    @property
    def jobs(self) -> int:
        """How many it has begun."""
        return self._begun.value

    @property
    def is_dead(self) -> bool:
        """Whether it has ended."""
        return self._ended.is_set()

    async def retired(self) -> str:
        """Wait until it has died or `retire` was called, and return why."""
        return await self._retired

    def retire(self, cause: str) -> None:
        """Have it replaced."""
        if not self._retired.done():
            self._retired.set_result(cause)

    async def warm(self) -> None:
        """Start the process and let it import what jobs will need; once.

        Linux kills the process when the thread that called this ends.

        Raises:
            ChildDied: it ended meanwhile, or an import failed.
            OSError: there is no room for another process.
            UsageError: this process is itself a child, and imports its program yet.
        """
        self._start()
        await self._answered.wait()
        if self._answer is None:
            raise ChildDied(self._how)
        if isinstance(self._answer, ChildNotReady):
            raise ChildDied(self._answer.error)

    def _start(self) -> None:
        self._begun = RawValue(c_uint64, 0)  # the child counts
        context = Spawning()
        ours, theirs = socket.socketpair()
        try:
            executor = ProcessPoolExecutor(
                1,
                mp_context=context,
                initializer=child.begin,
                initargs=(theirs, self._begun, self._settings, self._functions),
            )
            with _interrupts_held():
                executor.submit(child.serve)
            thread: Any = executor._executor_manager_thread  # noqa: SLF001 (nothing else names it)
            executor.shutdown(wait=False)  # when the one call is over
        except RuntimeError as error:
            ours.close()
            raise UsageError(
                "a process slot was to be started in a process that still imports its program: "
                'start the worker under `if __name__ == "__main__":`'
            ) from error
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        process = context.started
        assert process is not None, "submit started it"  # noqa: S101
        assert process.pid is not None, "as above"  # noqa: S101
        self.pid = process.pid
        self._process = process
        self._socket = ours
        keep(ours)
        ours.setblocking(False)  # noqa: FBT003 (its only parameter)
        self._life = _life_of(process)
        self._loop.add_reader(ours, self._read)
        self._loop.add_reader(self._life, self._died)
        _running[process] = thread

    async def run(self, plan: Plan, reporter: Reporter) -> Reply:
        """Run one attempt. Cancelling this ends the attempt before it returns, if need be by force.

        The function is asked to return first. If it does, its reply is returned; else the process
        is killed and the cancellation goes on. Cancel only once: a second one would not wait.

        Raises:
            ChildDied: the process ended.
        """
        self._expect_answer()
        order = frame(pickle.dumps(plan))
        self._reporter = reporter
        try:
            self._post(order)
            try:
                await self._answered.wait()
            except asyncio.CancelledError:
                await self._stop()
                if self._answer is None:
                    raise
        finally:
            self._reporter = None
        if not isinstance(self._answer, Reply):
            raise self._death()
        self.resident_bytes = self._answer.resident_bytes
        return self._answer

    def _expect_answer(self) -> None:
        self._begun_before = self.jobs
        self._answer = None
        if not self.is_dead:
            self._answered.clear()

    def _death(self) -> ChildDied:
        had_begun = self.jobs > self._begun_before
        return ChildDied(f"{self._how} while it ran the job", had_begun=had_begun)

    async def _stop(self) -> None:
        """Make `Context.cancelled` true in the child, and kill it if that does not help."""
        self._post(STOP)
        with anyio.move_on_after(ASK_S):
            await self._answered.wait()
        if self._answer is None:
            await self.kill()

    async def kill(self) -> None:
        """End the process: SIGTERM, and soon after SIGKILL. Returns when it is gone.

        What its handlers have started may tidy up at SIGTERM, which it does not mind itself.
        """
        self._signal(signal.SIGTERM)
        with anyio.move_on_after(TERM_S):
            await self._ended.wait()
        self._signal(signal.SIGKILL)
        await self._ended.wait()

    async def aclose(self) -> None:
        """End the process, gently if it is idle."""
        if not self.pid:
            return
        self._is_closing = True
        if self._reporter is None and not self.is_dead:
            with suppress(OSError):  # it has hung up itself
                self._socket.shutdown(socket.SHUT_WR)
            with anyio.move_on_after(TERM_S):
                await self._ended.wait()
        await self.kill()

    def _signal(self, number: signal.Signals) -> None:
        """Signal it and what its handlers have started."""
        if self.is_dead:
            return
        try:
            os.killpg(self.pid, number)
        except OSError:  # it has not made its group yet
            with suppress(OSError):
                os.kill(self.pid, number)

    def _post(self, data: bytes) -> None:
        if self.is_dead:
            return
        self._unsent += data
        if len(self._unsent) == len(data):
            self._write()
            if self._unsent:
                self._loop.add_writer(self._socket, self._write)

    def _write(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            sent = len(self._unsent)  # nobody will read it: it is dying
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _read(self) -> bool:
        """Take some of what the child has said; False: there was nothing."""
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._socket)
            if not self._is_closing:
                self._signal(signal.SIGKILL)  # of no use without its connection
            return False
        for message in self._frames.feed(data):
            self._take(message)
        return True

    def _take(self, message: Message) -> None:
        match message:
            case Progressed(fraction, text):
                if self._reporter is not None:
                    self._reporter.progress(fraction, text)
            case Emitted(chunk):
                if self._reporter is not None:
                    self._reporter.emit(chunk)
            case ChildReady() | ChildNotReady() | Reply():
                self._answer = message
                self._answered.set()

    def _died(self) -> None:
        self._loop.remove_reader(self._life)
        if self._life != self._process.sentinel:
            os.close(self._life)
        while self._read():
            pass  # it may have answered before
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._signal(signal.SIGKILL)  # to what its handlers have started
        self._how = _described(_exit_code(self._process))
        _running.pop(self._process, None)
        self._ended.set()
        self._answered.set()
        self.retire(self._how)


def _life_of(process: SpawnProcess) -> int:
    """Return a descriptor that can be read when the process has ended.

    Its sentinel is a pipe, which a process that a handler forked would hold open; so that is used
    only where there is nothing better.
    """
    pidfd_open: Callable[[int | None], int] | None = getattr(os, "pidfd_open", None)
    if pidfd_open is not None:
        with suppress(OSError):
            return pidfd_open(process.pid)
    return process.sentinel


def _exit_code(process: SpawnProcess) -> int | None:
    """Return the exit code of a process that has ended, None if it can't be told."""
    process.join()
    for _ in range(EXIT_LOOKS):
        if process.exitcode is not None:
            break
        time.sleep(0.001)  # the executor's thread has waited for it, and is about to note its code
    return process.exitcode


def _described(code: int | None) -> str:
    """Return what an exit code says."""
    if code is None:
        return "the process ended"
    if code >= 0:
        return f"the process ended with status {code}"
    try:
        return f"the process was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"the process was killed by signal {-code}"


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Start a process in which SIGINT waits until it has said what it does with it."""
    resource_tracker.ensure_running()  # starting it later would let SIGINT through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
