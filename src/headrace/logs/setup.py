"""Sets up the logging of a process of ours, unless its app has done so; nothing else here does."""

from __future__ import annotations

import logging
import os
import sys
from io import StringIO
from typing import TextIO

import msgspec
import structlog

from headrace.errors import InvalidOption
from headrace.logs.formatting import STRUCTURED, LineFormatter, has_colors
from headrace.plain import shown

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FORMATS = ("console", "json")


class LogSetup(msgspec.Struct, frozen=True):
    """How a process is to log: ``console`` or ``json``, and from which level on."""

    format: str = "console"
    level: str = "info"

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise InvalidOption(
                f"log format {shown(self.format)} is not known: use {' or '.join(FORMATS)}"
            )
        if self.level not in LEVELS:
            raise InvalidOption(
                f"log level {shown(self.level)} is not known: use one of {', '.join(LEVELS)}"
            )


_done: LogSetup | None = None


def done() -> LogSetup | None:
    """Return what `set_up` has set up in this process, None if it has not."""
    return _done


def set_up(chosen: LogSetup) -> None:
    """Have `logging`, structlog and warnings write to standard error alike, each line with its job.

    Not where the app has set one of them up: the root logger has a handler, or structlog is
    configured. Call it after the app was imported; only the command line does.
    """
    global _done
    root = logging.getLogger()
    if root.handlers or structlog.is_configured():
        return
    _done = chosen
    stream = sys.stderr or _Nowhere()
    is_json = chosen.format == "json"
    handler = _StreamHandler(stream)
    handler.setFormatter(LineFormatter(is_json=is_json, colors=has_colors(stream, os.environ)))
    root.addHandler(handler)
    root.setLevel(LEVELS[chosen.level])
    logging.captureWarnings(True)  # noqa: FBT003 (its only parameter)
    structlog.configure(
        processors=STRUCTURED,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[chosen.level]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


class _StreamHandler(logging.StreamHandler[TextIO]):
    """Writes a line at once, since several processes may share the file."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Go on where the log is full or read by nobody; tell of lines that can't be formatted."""
        if not isinstance(sys.exception(), OSError) and not self.stream.closed:
            super().handleError(record)


class _Nowhere(StringIO):
    """Where logs go if standard error is closed."""

    def write(self, text: str) -> int:
        """Drop it."""
        return len(text)
