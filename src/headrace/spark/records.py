"""Ended jobs as columns."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

_INSTANT = pa.timestamp("us", tz="UTC")

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
"""The columns of ended jobs. ``errors`` is a JSON array of all that are kept, the newest first."""


def spark_schema() -> StructType:
    """Return the columns of ended jobs as Spark calls them."""
    return from_arrow_schema(SCHEMA)
