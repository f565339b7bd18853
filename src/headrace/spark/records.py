"""Ended jobs as columns."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headrace.fairness import fair_key_of
from headrace.frames import innermost_frame
from headrace.job import ErrorInfo, JobRecord, JobState
from headrace.limit import keys_of
from headrace.storage.exports import cursor_behind
from headrace.stored_options import as_one_object

_INSTANT = pa.timestamp("us", tz="UTC")
_US_A_MS = 1000

SCHEMA = pa.schema(
    [
        pa.field("tenant", pa.string(), nullable=False),
        pa.field("queue", pa.string(), nullable=False),
        pa.field("job_id", pa.string(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        ("reason", pa.string()),
        ("priority", pa.int32()),
        ("lane", pa.string()),
        ("max_stalls", pa.int32()),
        ("keep_ms", pa.int64()),
        ("on_failed", pa.string()),
        ("limit_keys", pa.string()),
        ("fair_key", pa.string()),
        ("slots", pa.int32()),
        ("failures", pa.int32()),
        ("stalls", pa.int32()),
        ("starts", pa.int32()),
        ("created_at", _INSTANT),
        ("ended_at", _INSTANT),
        ("run_ms", pa.int64()),
        ("payload", pa.binary()),
        ("options", pa.string()),
        ("result", pa.binary()),
        ("has_result", pa.bool_()),
        ("error", pa.string()),
        ("message", pa.string()),
        ("frame", pa.string()),
        ("traceback", pa.string()),
        ("errors", pa.string()),
        ("cursor", pa.string()),
    ]
)
"""The columns of ended jobs.

``error`` to ``traceback`` are of a dead letter's last error; ``errors`` is a JSON array of all that
are kept of any job, the newest first. ``limit_keys`` is a JSON object.
"""

_NO_ERROR = ErrorInfo(type="", message="")


def spark_schema() -> StructType:
    """Return the columns of ended jobs as Spark calls them."""
    return from_arrow_schema(SCHEMA)


def batch_of(tenant: str, records: Sequence[JobRecord]) -> pa.RecordBatch:
    """Return ended jobs of a tenant as a batch of rows, in their order."""
    rows = [_row(tenant, record) for record in records]
    columns = zip(*rows, strict=True) if rows else [[]] * len(SCHEMA)
    arrays = [
        pa.array(column, type=field.type) for column, field in zip(columns, SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _row(tenant: str, record: JobRecord) -> tuple[object, ...]:
    """Return a row: what there is of a job, in the order of the columns."""
    is_dead = record.state is JobState.FAILED and bool(record.errors)
    last = record.errors[0] if is_dead else _NO_ERROR
    return (
        tenant,
        record.queue,
        record.id,
        record.task,
        record.state.value,
        record.reason or None,
        record.priority,
        record.lane,
        record.max_stalls,
        record.keep_ms,
        record.on_failed or None,
        _limit_keys(record),
        fair_key_of(record.gates),
        record.slots,
        record.failures,
        record.stalls,
        record.starts,
        record.created_ms * _US_A_MS,
        record.changed_ms * _US_A_MS,
        record.run_ms if record.starts else None,
        record.payload,
        as_one_object(record.options).decode(errors="replace") or None,
        record.result,
        record.result is not None,
        last.type or None,
        last.message if is_dead else None,
        innermost_frame(last) or None,
        last.traceback or None,
        msgspec.json.encode(record.errors).decode(),
        cursor_behind(record),
    )


def _limit_keys(record: JobRecord) -> str | None:
    """Return the keys of the limits that a job met, as `JobRows` reads them."""
    keys = keys_of(record.gates)
    return msgspec.json.encode(keys).decode() if keys else None
