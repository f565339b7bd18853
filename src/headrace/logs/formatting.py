"""How lines look: text for people, or one JSON object a line; ours and those of handlers alike."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

import structlog

from headrace.logs.jobs import add_job_fields
from headrace.logs.log import LogLine

Fields = structlog.typing.EventDict
Render = structlog.typing.Processor

_to_json = json.JSONEncoder(default=repr).encode


def has_colors(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether lines on a stream are coloured: on a terminal, but for what the user has asked for.

    ``NO_COLOR`` says never, ``FORCE_COLOR`` always; each counts unless it is empty.
    """
    if environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or stream.isatty()


class LineFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats all records of a process of ours.

    Args:
        is_json: one JSON object a line, that begins with timestamp, level and event.
        colors: of the text that there is otherwise.
    """

    def __init__(self, *, is_json: bool, colors: bool = False) -> None:
        self._finish: Render = _json_line if is_json else _Text(colors=colors)
        super().__init__(
            foreign_pre_chain=_FOREIGN,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *([structlog.processors.format_exc_info] if is_json else []),
                _in_order,
                self._finish,
            ],
        )

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without its line break."""
        line = record.msg
        if type(line) is not LogLine:
            return super().format(record)
        # The short way, since there is such a line for each job.
        fields = {
            "timestamp": _instant(record.created),
            "level": record.levelname.lower(),
            "event": line.event,
            **line.fields,
        }
        return str(self._finish(None, "", fields))


def _in_order(_logger: Any, _method: str, fields: Fields) -> Fields:
    first = {name: fields.pop(name) for name in ("timestamp", "level", "event") if name in fields}
    return {**first, **fields}


def _json_line(_logger: Any, _method: str, fields: Fields) -> str:
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


STRUCTURED: list[Render] = [
    structlog.contextvars.merge_contextvars,
    add_job_fields,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
]
"""What structlog does with a line before `LineFormatter` has it."""

_FOREIGN: list[Render] = [
    structlog.stdlib.ExtraAdder(),
    structlog.contextvars.merge_contextvars,
    add_job_fields,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    _add_instant,
]
