"""Where lines of ours go: to the logger ``headrace`` of the standard library.

A program that logs by structlog alone gets them there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import structlog

NAME = "headrace"
"""Of the logger. It is made late, since `logging.config` disables those that are there already."""

BELOW = {"traceback": "exc_text", "stack": "stack_info"}
"""Texts of several lines, and where formatters look for what they print below a line."""


class LogFields:
    """The one argument of a record's message ``EVENT %s``: as text only for who asks for that.

    Error trackers group by the message without its arguments, and so by the event.
    """

    __slots__ = ("event", "values")

    def __init__(self, event: str, values: Mapping[str, Any]) -> None:
        self.event: str = event
        self.values: Mapping[str, Any] = values

    def __str__(self) -> str:
        pairs = (f"{name}={_word(v)}" for name, v in self.values.items() if name not in BELOW)
        return " ".join(pairs)


def _word(value: object) -> str:
    text = str(value)
    return repr(text) if not text or " " in text else text


class Log(Protocol):
    """Takes lines; it never raises because of what becomes of them."""

    def is_on(self, level: int) -> bool:
        """Whether lines of this level go anywhere."""

    def write(self, level: int, event: str, fields: Mapping[str, Any]) -> None:
        """Write a line of a level that is on."""


class StandardLog:
    """To the standard library's logging: the fields are attributes of the record."""

    def __init__(self) -> None:
        self._logger = logging.getLogger(NAME)

    def is_on(self, level: int) -> bool:
        """Whether the logger ``headrace`` takes this level."""
        return self._logger.isEnabledFor(level)

    def write(self, level: int, event: str, fields: Mapping[str, Any]) -> None:
        """Hand a record to the logger's handlers."""
        arguments = (LogFields(event, fields),)
        record = self._logger.makeRecord(
            NAME, level, __file__, 0, f"{event} %s", arguments, exc_info=None
        )
        attributes = record.__dict__
        attributes["event"] = event
        attributes.update(fields)
        for name, where in BELOW.items():
            if name in fields:
                attributes[where] = fields[name].rstrip("\n")
        # A worker whose log is full or read by nobody goes on working.
        with suppress(OSError, ValueError):
            self._logger.handle(record)


class StructuredLog:
    """To structlog, as the program has configured it."""

    def is_on(self, _level: int) -> bool:
        """Structlog looks itself."""
        return True

    def write(self, level: int, event: str, fields: Mapping[str, Any]) -> None:
        """Log it."""
        with suppress(OSError, ValueError):
            structlog.get_logger(NAME).log(level, event, **fields)


def find_log() -> Log:
    """Return where this program's lines go, as its logging is set up by now."""
    return StructuredLog() if _logs_by_structlog_alone() else StandardLog()


def write_line(level: int, event: str, **fields: Any) -> None:
    """Write one line of a program of ours."""
    log = find_log()
    if log.is_on(level):
        log.write(level, event, fields)


def _logs_by_structlog_alone() -> bool:
    if not structlog.is_configured() or logging.getLogger(NAME).hasHandlers():
        return False
    # That would bring the line back here.
    factory = structlog.get_config()["logger_factory"]
    return not isinstance(factory, structlog.stdlib.LoggerFactory)
