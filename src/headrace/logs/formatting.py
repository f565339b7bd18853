"""How lines look: text for people, or one JSON object a line; ours and those of handlers alike."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

import structlog

from headrace.logs.jobs import add_job_fields
from headrace.logs.log import NAME, LogFields

Fields = structlog.typing.EventDict
Render = structlog.typing.Processor

_to_json = json.JSONEncoder(default=repr).encode


def has_colors(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether text on a stream is coloured: on a terminal, but for what the user has asked for.

    ``NO_COLOR`` says never, ``FORCE_COLOR`` always; each counts unless it is empty, as no-color.org
    and force-color.org ask. A ``dumb`` terminal knows no colours.
    """
    if environment.get("NO_COLOR"):
        return False
    is_able = stream.isatty() and environment.get("TERM") != "dumb"
    return bool(environment.get("FORCE_COLOR")) or is_able


class LineFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats all records of a process of ours.

    Args:
        is_json: one JSON object a line, that begins with timestamp, level and event.
        colors: of the text that there is otherwise.
    """

    def __init__(self, *, is_json: bool, colors: bool = False) -> None:
        self._render: Render = _Json() if is_json else _Text(colors=colors)
        super().__init__(
            foreign_pre_chain=_STANDARD,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _in_order,
                self._render,
            ],
        )

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without its line break."""
        arguments = record.args
        if not arguments or type(arguments) is not tuple or type(arguments[0]) is not LogFields:
            return super().format(record)
        # The short way, since there is such a line for each job.
        first = {
            "timestamp": _instant(record.created),
            "level": record.levelname.lower(),
            "event": arguments[0].event,
        }
        if record.name == NAME:
            line = {**first, **arguments[0].values}
        else:
            line = {**first, **arguments[0].values, **first, "logger": record.name}
            if record.exc_info:
                line["exc_info"] = record.exc_info
        return str(self._render(None, "", line))


def to_record(_logger: Any, _method: str, fields: Fields) -> tuple[tuple[Any, ...], Fields]:
    """Return what structlog passes to `logging` of a line: as a record of ours, with attributes."""
    event = str(fields.pop("event"))
    exc_info = fields.pop("exc_info", None)
    attributes = {name: value for name, value in fields.items() if name not in _RESERVED}
    message = f"{event.replace('%', '%%')} %s"
    return (message, LogFields(event, fields)), {"exc_info": exc_info, "extra": attributes}


_OF_FORMATTERS = ("message", "asctime")
"""What the formatter of another handler leaves in a record."""

_RESERVED = {*vars(logging.makeLogRecord({})), *_OF_FORMATTERS}


def _in_order(_logger: Any, _method: str, fields: Fields) -> Fields:
    first = {name: fields.pop(name) for name in ("timestamp", "level", "event")}
    return {**first, **fields}


class _Json:
    """One JSON object."""

    def __call__(self, logger: Any, method: str, fields: Fields) -> str:
        if "exc_info" in fields:
            fields = structlog.processors.format_exc_info(logger, method, fields)
        return _to_json(fields)


class _Text:
    """Text for people: the traceback and the stack of a line stand below it."""

    def __init__(self, *, colors: bool) -> None:
        self._render = structlog.dev.ConsoleRenderer(
            colors=colors, exception_formatter=structlog.dev.plain_traceback
        )

    def __call__(self, logger: Any, method: str, fields: Fields) -> str:
        traceback = fields.pop("traceback", None)
        if traceback is not None:
            fields["exception"] = traceback.rstrip("\n")
        return self._render(logger, method, fields)


def _add_instant(_logger: Any, _method: str, fields: Fields) -> Fields:
    fields["timestamp"] = _instant(fields["_record"].created)
    return fields


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def _add_extra(logger: Any, method: str, fields: Fields) -> Fields:
    """Add what was passed by ``extra=``; the message stays what it is."""
    message = fields["event"]
    fields = _extra(logger, method, fields)
    for name in _OF_FORMATTERS:
        fields.pop(name, None)
    if fields["event"] is not message:
        fields["extra_event"], fields["event"] = fields["event"], message
    return fields


_extra = structlog.stdlib.ExtraAdder()

STRUCTURED: list[Render] = [
    structlog.contextvars.merge_contextvars,
    add_job_fields,
    structlog.processors.StackInfoRenderer(),
    to_record,
]
"""What structlog does with a line before `LineFormatter` has it."""

_STANDARD: list[Render] = [
    _add_extra,
    structlog.contextvars.merge_contextvars,
    add_job_fields,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    _add_instant,
]
