"""The columns that may be written, and the check of a DataFrame's on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import types

from headrace.errors import InvalidRows
from headrace.nearest import nearest
from headrace.plain import shown
from headrace.spark.options import WriteOptions

_WHOLE = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)


class Kind(NamedTuple):
    """The type of a column: as it is spelt, as Spark has it, and as its values are read."""

    spelt: str
    types: tuple[type, ...]
    read_as: pa.DataType


TEXT = Kind("a string", (types.StringType,), pa.string())
_JSON = Kind("a string or binary", (types.StringType, types.BinaryType), pa.binary())
_COUNT = Kind("a whole number", _WHOLE, pa.int64())
_SECONDS = Kind(
    "a number of seconds",
    (*_WHOLE, types.FloatType, types.DoubleType, types.DecimalType),
    pa.float64(),
)
INSTANT = Kind("a timestamp with time zone", (types.TimestampType,), pa.int64())

ASKED = {
    "task": TEXT,
    "queue": TEXT,
    "priority": _COUNT,
    "lane": TEXT,
    "delay": _SECONDS,
    "run_at": INSTANT,
    "expires_in": _SECONDS,
    "expires_at": INSTANT,
    "keep": _SECONDS,
    "max_attempts": _COUNT,
    "max_stalls": _COUNT,
    "timeout": _SECONDS,
    "on_failed": TEXT,
    "slots": _COUNT,
    "limit_keys": TEXT,
    "fair_key": TEXT,
    "keep_ms": _COUNT,
    "options": TEXT,
}
"""What a column may ask of each job; null says nothing.

``options`` are those of another job as they are stored, in JSON, and ``keep_ms`` is its own; what
another column says goes before. ``lane`` is its kind of slot. ``limit_keys`` is a JSON object.
"""


def check_columns(schema: types.StructType, options: WriteOptions) -> None:
    """See that a DataFrame can be written, before any task runs.

    Raises:
        InvalidRows: a column is missing, not known, twice there, or of another type.
    """
    kinds = {**ASKED, options.id_column: TEXT, options.payload_column: _JSON}
    if len(kinds) != len(ASKED) + 2:
        raise InvalidRows(
            f"idColumn={shown(options.id_column)} and payloadColumn="
            f"{shown(options.payload_column)}: name two columns that are no options of jobs"
        )
    seen: set[str] = set()
    for field in schema.fields:
        _check_column(field, kinds)
        if field.name in seen:
            raise InvalidRows(f"there are two columns {shown(field.name)}: drop or rename one")
        seen.add(field.name)
    _check_present(seen, options)


def _check_column(field: types.StructField, kinds: Mapping[str, Kind]) -> None:
    name, kind = field.name, kinds.get(field.name)
    if kind is None:
        meant = nearest(name.lower(), kinds)
        perhaps = f" (did you mean {shown(meant)}?)" if meant else ""
        raise InvalidRows(
            f"the column {shown(name)} is none that a job has{perhaps}: drop it, or put it into "
            f"the payload, as prepare(..., payload=[{shown(name)}]) does; columns of jobs are "
            f"{', '.join(kinds)}"
        )
    if not isinstance(field.dataType, kind.types):
        raise InvalidRows(
            f"the column {shown(name)} is of type {field.dataType.simpleString()}, and has to be "
            f"{kind.spelt}: cast it, or let prepare(...) make it"
        )


def _check_present(names: set[str], options: WriteOptions) -> None:
    if options.payload_column not in names:
        raise InvalidRows(
            f"there is no column {shown(options.payload_column)} with the arguments of jobs as "
            "JSON: make it by prepare(df, ...), or name yours by payloadColumn"
        )
    if not options.task and "task" not in names:
        raise InvalidRows("no task is named: say the option task, or have a column 'task'")
    if "queue" in names and options.is_atomic:
        raise InvalidRows(
            "a column 'queue' is for commit=direct alone, since an atomic write has one queue: "
            "drop it, and write each queue by itself"
        )
    if options.id_column not in names and not (options.is_atomic or options.allows_random_ids):
        raise InvalidRows(
            f"there is no column {shown(options.id_column)}, and with random ids a task that Spark "
            "repeats brings its rows twice: make ids by prepare(df, id_from=[...]), name yours by "
            "idColumn, write with commit=atomic, or say allowRandomIds=true"
        )
