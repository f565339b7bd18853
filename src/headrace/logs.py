"""Worker events to structured logs: fixed names and fields, never arguments, results or secrets."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from io import StringIO
from typing import Any, TextIO

import msgspec
import structlog

from headrace.description import told
from headrace.errors import InvalidOption
from headrace.events import (
    AttemptEnded,
    AttemptStarted,
    ClaimLost,
    Emit,
    HandlerStuck,
    HookFailed,
    JobsReconciled,
    LifespanOverdue,
    LoopBlocked,
    LoopFailed,
    LoopStalled,
    MessageDropped,
    ProcessEnded,
    ProcessFailed,
    QueueFenced,
    QueueNotServed,
    QueueRepaired,
    QueueWithoutTasks,
    StorageLost,
    StorageRecovered,
    WorkerEnding,
    WorkerEvent,
    WorkerQuiet,
    WorkerReaped,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from headrace.plain import one_line, printable, shown

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

NAMES: dict[type[msgspec.Struct], tuple[str, int]] = {
    WorkerStarted: ("worker.started", logging.INFO),
    QueueWithoutTasks: ("queue.without_tasks", logging.WARNING),
    QueueNotServed: ("queue.not_served", logging.WARNING),
    WorkerStopping: ("worker.stopping", logging.INFO),
    WorkerEnding: ("worker.ending", logging.INFO),
    WorkerQuiet: ("worker.quiet", logging.INFO),
    WorkerStopped: ("worker.stopped", logging.INFO),
    AttemptStarted: ("job.started", logging.DEBUG),
    AttemptEnded: ("job.finished", logging.INFO),
    ClaimLost: ("job.claim_lost", logging.WARNING),
    QueueFenced: ("queue.fenced", logging.WARNING),
    WorkerReaped: ("worker.reaped", logging.WARNING),
    JobsReconciled: ("queue.reconciled", logging.WARNING),
    QueueRepaired: ("queue.repaired", logging.WARNING),
    StorageLost: ("storage.lost", logging.WARNING),
    StorageRecovered: ("storage.recovered", logging.WARNING),
    LoopStalled: ("worker.loop_stalled", logging.ERROR),
    LoopFailed: ("worker.loop_failed", logging.ERROR),
    MessageDropped: ("channel.message_dropped", logging.WARNING),
    LoopBlocked: ("worker.loop_blocked", logging.WARNING),
    ProcessEnded: ("process.ended", logging.INFO),
    ProcessFailed: ("process.failed", logging.ERROR),
    HandlerStuck: ("handler.stuck", logging.ERROR),
    HookFailed: ("hook.failed", logging.ERROR),
    LifespanOverdue: ("lifespan.overdue", logging.ERROR),
}
"""The name and level of each event; a retry is logged as a warning, a dead letter as an error."""


def log_events(level: str) -> Emit:
    """Return what logs events of ``level`` (debug, info, warning, error) and above."""
    least = check_level(level)
    logger = _logger()

    def emit(event: WorkerEvent) -> None:
        name, event_level = NAMES[type(event)]
        if isinstance(event, AttemptEnded):
            event_level = _severity(event)
        if event_level >= least:
            # A worker whose log is full or read by nobody goes on working.
            with suppress(OSError, ValueError):
                logger.log(event_level, name, **_fields(event))

    return emit


def _logger() -> Any:
    # Unconfigured, structlog would print among the program's own output. A line is one write, since
    # several processes may share the file.
    if structlog.is_configured():
        return structlog.get_logger("headrace")
    return structlog.wrap_logger(structlog.WriteLogger(_standard_error()))


def unfailing(emit: Emit) -> Emit:
    """Return ``emit`` as a worker calls it: what it raises loses that event, and nothing else.

    The first time it is logged as ``worker.emit_failed``.
    """
    first = threading.Lock()  # taken by the first failure, in whichever thread, and kept

    def emit_safely(event: WorkerEvent) -> None:
        try:
            emit(event)
        except BaseException as error:  # a user's code, where an attempt or the worker must end
            if first.acquire(blocking=False):
                with suppress(BaseException):
                    _logger().error(
                        "worker.emit_failed", lost=type(event).__name__, error=told(error)
                    )

    return emit_safely


def _severity(event: AttemptEnded) -> int:
    if event.outcome == "failed":
        return logging.ERROR
    is_well = event.outcome in ("completed", "cancelled", "snoozed")
    return logging.INFO if is_well else logging.WARNING


def _fields(event: WorkerEvent) -> dict[str, Any]:
    fields = {
        name: _clean(name, value) if isinstance(value, str) else value
        for name, value in msgspec.structs.asdict(event).items()
        if value != ""
    }
    if fields.get("retry_in_ms") == 0:
        del fields["retry_in_ms"]
    return fields


def _clean(name: str, text: str) -> str:
    """Return a field that no terminal obeys, and that is no line of its own but for a stack."""
    return printable(text) if name == "stack" else one_line(text)


def check_level(level: str) -> int:
    """Return the number of a level's name, or raise `InvalidOption`."""
    if level not in LEVELS:
        raise InvalidOption(
            f"log level {shown(level)} is not known: use one of {', '.join(LEVELS)}"
        )
    return LEVELS[level]


def _standard_error() -> TextIO:
    """Return where logs go: nowhere, if the stream is closed."""
    return sys.stderr or _Nowhere()


class _Nowhere(StringIO):
    def write(self, text: str) -> int:
        return len(text)


_configured: tuple[str, str] | None = None


def configured() -> tuple[str, str] | None:
    """Return what `configure` was called with in this process."""
    return _configured


def configure(log_format: str, level: str) -> None:
    """Set structlog up for a process of ours: to standard error, ``console`` or ``json``.

    Only the command line calls this; a library leaves logging to its program.
    """
    if log_format not in ("console", "json"):
        raise InvalidOption(f"log format {shown(log_format)} is not known: use console or json")
    global _configured
    _configured = (log_format, level)
    stream = _standard_error()
    renderer: Any
    if log_format == "json":
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=stream.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(check_level(level)),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
