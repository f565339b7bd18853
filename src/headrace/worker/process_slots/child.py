"""What runs in the process of a slot: it takes attempts one at a time and returns their outcomes.

The process is the worker's child, and ends with it however that ends.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import resource
import signal
import socket
import threading
import traceback
from collections.abc import Awaitable, Mapping
from contextvars import copy_context
from ctypes import c_uint64
from types import FrameType
from typing import Any

import msgspec

from headrace.codec import Codec
from headrace.context import Context, Reporter, enter, has_heard_stop
from headrace.description import told, traceback_of
from headrace.forks import handle
from headrace.logs.setup import LogSetup, set_up
from headrace.outcome import Outcome
from headrace.signature import Signature
from headrace.task import is_awaitable
from headrace.worker.memory import resident_bytes
from headrace.worker.plan import Plan, undecodable
from headrace.worker.process_slots.functions import Function
from headrace.worker.process_slots.messages import (
    LENGTH,
    ChildNotReady,
    ChildReady,
    Emitted,
    Message,
    Progressed,
    Reply,
    framed,
)
from headrace.worker.process_slots.parent import watch_parent


class Handler(msgspec.Struct, frozen=True):
    """A function that was imported."""

    function: Any
    signature: Signature[Any]


class ChildSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is told at its start.

    Attributes:
        parent: the worker's process id.
        codec: the app's, pickled: to read it may import modules of the app.
        validating: tasks that hold results against their annotations.
        memory_limit_bytes: of its address space, 0 for none.
        logging: as the command line has set it up for the worker, None if it has not.
    """

    parent: int
    codec: bytes
    validating: frozenset[str] = frozenset()
    memory_limit_bytes: int = 0
    logging: LogSetup | None = None


class Line:
    """The child's end of the socket; `send` and `has_more` may be called in any thread."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._pid = os.getpid()

    @property
    def is_ours(self) -> bool:
        """Whether this is still the child, and not a process that a handler forked from it."""
        return os.getpid() == self._pid

    def receive(self) -> bytes | None:
        """Wait for the next attempt; None: the worker has hung up."""
        while (head := self._exactly(LENGTH.size)) is not None:
            size: int = LENGTH.unpack(head)[0]
            if size:
                return self._exactly(size)
            # Else it was to stop what had just ended by itself.
        return None

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            piece = self._channel.recv(size - len(data))
            if not piece:
                return None
            data += piece
        return bytes(data)

    def send(self, message: Message) -> None:
        """Tell the worker; waits while that is behind. A fork of the child stays silent."""
        data = framed(message)
        if self.is_ours:
            with self._lock:
                self._channel.sendall(data)

    def has_more(self) -> bool:
        """Whether the worker has sent something that was not received yet, or has hung up."""
        try:
            self._channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return True


class ChildReporter:
    """Speaks for one attempt, and is silent once that has ended: a thread of its may go on."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._has_ended = False

    def progress(self, fraction: float, text: str) -> None:
        """Tell it."""
        if not self._has_ended:
            self._line.send(Progressed(fraction, text))

    def emit(self, chunk: bytes) -> None:
        """Pass it on; waits while the worker is behind."""
        if not self._has_ended:
            self._line.send(Emitted(chunk))

    def is_stopping(self) -> bool:
        """Whether the worker has asked: while an attempt runs it sends nothing else."""
        return self._has_ended or self._line.has_more()

    def end(self) -> None:
        """Be silent from now on."""
        self._has_ended = True


_begin: tuple[socket.socket, c_uint64, ChildSettings, Mapping[str, Function]]


def begin(
    channel: socket.socket,
    begun: c_uint64,
    settings: ChildSettings,
    functions: Mapping[str, Function],
) -> None:
    """Take what the process needs, which can be passed on at its start only.

    Args:
        channel: to the worker.
        begun: counts attempts, in memory that the worker shares: it must know even of one that
            kills this process at once, and a message would cost each attempt a turn of its loop.
        settings: for this process.
        functions: by task name, where they can be imported.
    """
    global _begin
    _begin = channel, begun, settings, functions


def serve() -> None:
    """Run attempts until the worker hangs up: all that the process does."""
    channel, begun, settings, functions = _begin
    line = Line(channel)
    try:
        _prepare(settings)
        channel.set_inheritable(False)
        handlers = _load(functions, settings)
        if settings.logging is not None:
            set_up(settings.logging)
    except BaseException as error:  # whatever the app's modules raise
        line.send(ChildNotReady(told(error)))
        return
    line.send(ChildReady())
    while (order := line.receive()) is not None:
        begun.value += 1
        plan: Plan = pickle.loads(order)  # noqa: S301 (the worker sent it)
        # In a copy, so that no context variable that a job sets is seen by the next one.
        reply = copy_context().run(_run, handlers[plan.job.task], plan, line)
        if not line.is_ours:
            os._exit(0)  # a handler forked and returned in both processes
        line.send(reply)


def _prepare(settings: ChildSettings) -> None:
    watch_parent(settings.parent)
    # What a handler starts is in its group, and is ended with it.
    os.setpgid(0, 0)
    # Ctrl-C goes to every process of the terminal, and systemd's SIGTERM to every process of a
    # service; the worker decides what becomes of it. What handlers start does not inherit a
    # function, as it would inherit that a signal is ignored.
    handle(signal.SIGINT, _pass)
    handle(signal.SIGTERM, _pass)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handle(signal.SIGHUP, _pass)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if settings.memory_limit_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (settings.memory_limit_bytes,) * 2)


def _pass(_number: int, _frame: FrameType | None) -> None:
    """Do nothing."""


def _load(functions: Mapping[str, Function], settings: ChildSettings) -> dict[str, Handler]:
    codec: Codec = pickle.loads(settings.codec)  # noqa: S301 (the worker made it)
    found = {}
    for name, function in functions.items():
        call, validate = function.load(), name in settings.validating
        signature: Signature[Any] = Signature(call, codec, injected=(Context,), validate=validate)
        signature.resolve()
        found[name] = Handler(call, signature)
    return found


def _run(handler: Handler, plan: Plan, line: Line) -> Reply:
    """Run one attempt to its end."""
    reporter = ChildReporter(line)
    outcome = call_handler(handler, plan, reporter)
    reporter.end()
    return Reply(outcome, resident_bytes())


def call_handler(handler: Handler, plan: Plan, reporter: Reporter) -> Outcome | None:
    """Return what an attempt comes to, whatever its arguments are and its function does.

    None: the function returned after it had seen that it should stop, so it has not completed.
    """
    try:
        args, kwargs = plan.arguments(handler.signature)
    except BaseException as error:  # whatever is stored there, and the code of its types raises
        return undecodable(plan.job, error)
    context = plan.context(reporter, handler.signature.encode_plain)
    enter(context)
    if handler.signature.injected_name:
        args = (context, *args)
    try:
        result = handler.function(*args, **kwargs)
        if is_awaitable(result):  # of a plain decorator around a coroutine function
            result = asyncio.run(_awaited(result))
        if has_heard_stop(context):
            return None
        return plan.completed(result, handler.signature.encode_result)
    except MemoryError as error:
        # To tell of it takes memory, which the handler's variables may hold.
        trace = traceback_of(error)
        traceback.clear_frames(trace and trace.tb_next)
        return plan.raised(error)
    except BaseException as error:  # SystemExit of a handler must not end the process
        return plan.raised(error)


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result
