"""Which job a line was logged by, for lines of handlers.

Nothing is bound when a job starts: the attempt that runs is looked up when a line is written.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from headrace.context import running_job
from headrace.logs.log import NAME

JOB_FIELDS = ("job_id", "task", "queue", "start")


class JobLogFilter(logging.Filter):
    """Adds ``job_id``, ``task``, ``queue`` and ``start`` to the records that handlers log.

    Put it on a handler of `logging`, since filters of loggers don't see the records of their
    children. It lets every record through, and changes nothing that a record has already.

    Args:
        missing: what records have that no handler logs, for formats that name the fields; default
            None, which adds nothing to them.
    """

    def __init__(self, missing: str | None = None) -> None:
        super().__init__()
        self._missing = missing

    def filter(self, record: logging.LogRecord) -> bool:
        """Add what is not there yet."""
        fields = record.__dict__
        if record.name != NAME:  # those say themselves which job they are about, if any
            add_job_fields(None, "", fields)
        if self._missing is not None:
            for name in JOB_FIELDS:
                fields.setdefault(name, self._missing)
        return True


def add_job_fields(
    _logger: Any, _method: str, fields: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Add the job that logs to a line, as a processor of structlog; nothing outside of handlers.

    Args:
        fields: of the line. ``job_id``, ``task``, ``queue`` and ``start`` are added where they are
            not there yet.
    """
    context = running_job()
    if context is not None:
        fields.setdefault("job_id", context.job_id)
        fields.setdefault("task", context.task)
        fields.setdefault("queue", context.queue)
        fields.setdefault("start", context.start)
    return fields
