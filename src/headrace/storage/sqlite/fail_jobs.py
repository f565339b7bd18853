"""What a dead letter brings: a job of the task that was named for that."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.job import ErrorInfo, new_job_id
from headrace.request import JobRequest
from headrace.storage.sqlite import intake, moves
from headrace.storage.sqlite.record import PAYLOAD, Record
from headrace.storage.sqlite.unit import UnitOfWork

NO_TASK = ""
"""Stands in the row of a fail job: it has none of its own, whatever the queue says."""

_PAYLOAD = f"SELECT {PAYLOAD} FROM jobs WHERE key = ?"  # noqa: S608


def coming_of(
    unit: UnitOfWork, record: Record, reason: str, error: ErrorInfo | None
) -> JobRequest | None:
    """Return what is to come of a job that is about to fail, None where nothing is.

    It is asked for before the record may be gone.
    """
    task = unit.settings.on_failed if record.on_failed is None else record.on_failed
    if not task:
        return None
    [payload] = unit.db.execute(_PAYLOAD, (record.key,)).fetchone()
    return JobRequest(
        id=new_job_id(),
        queue=unit.queue,
        task=task,
        payload=payload or b"",
        priority=record.tier,
        lane="",
        options=_options(record, reason, error),
    )


def enter(unit: UnitOfWork, coming: JobRequest, *, failed: str) -> None:
    """Store it, ready at once; ``failed`` is the id of the job that has failed."""
    born = intake.new(unit, coming)
    born.on_failed = NO_TASK
    moves.enter(unit, born, 0, detail=f"on_failed {failed}")
    intake.write(unit, [born])


def _options(record: Record, reason: str, error: ErrorInfo | None) -> bytes:
    failed: dict[str, Any] = {
        "id": record.id,
        "task": record.task,
        "reason": reason,
        "failures": record.failures,
        "stalls": record.stalls,
        "starts": record.epoch,
        "error": error,
    }
    return msgspec.json.encode({"failed": failed})
