"""What can't be written is refused on the driver by its schema, with the column's name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headrace import InvalidRows
from headrace.spark.columns import check_columns
from headrace.spark.options import WriteOptions

OPTIONS = WriteOptions(task="load")
TEXT = StringType()
WRITTEN = {"id": TEXT, "payload": TEXT}


def check(columns: dict[str, DataType], **said: Any) -> None:
    schema = StructType([StructField(name, kind) for name, kind in columns.items()])
    check_columns(schema, msgspec.structs.replace(OPTIONS, **said))


def test_what_may_be_written() -> None:
    asked = {
        "task": TEXT,
        "queue": TEXT,
        "priority": IntegerType(),
        "lane": TEXT,
        "delay": DecimalType(10, 3),
        "run_at": TimestampType(),
        "expires_in": DoubleType(),
        "expires_at": TimestampType(),
        "keep": LongType(),
        "max_attempts": LongType(),
        "timeout": DoubleType(),
        "options": TEXT,
    }
    check({"id": TEXT, "payload": BinaryType(), **asked})
    check({"order": TEXT, "body": TEXT}, id_column="order", payload_column="body")
    check({"payload": TEXT}, is_atomic=True)
    check({"payload": TEXT}, allows_random_ids=True)


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (
            {**WRITTEN, "prioryty": IntegerType()},
            {},
            r"'prioryty' is none that a job has \(did you mean 'priority'\?\): drop it, or put it",
        ),
        (
            {**WRITTEN, "colour": IntegerType()},
            {},
            r"'colour' is none that a job has: drop it, or .* prepare\(\.\.\., payload=\['colour'",
        ),
        ({"Id": TEXT, "payload": TEXT}, {}, r"'Id' is none .*did you mean 'id'"),
        ({"id": LongType(), "payload": TEXT}, {}, r"'id' is of type bigint, .* a string: cast it"),
        (
            {"id": TEXT, "payload": StructType()},
            {},
            r"'payload' is of type struct<>, and has to be a string or binary: cast it, or let pre",
        ),
        ({**WRITTEN, "priority": TEXT}, {}, r"'priority' is of type string, .* a whole number"),
        ({**WRITTEN, "delay": TEXT}, {}, r"'delay' is of type string, .* a number of seconds"),
        (
            {**WRITTEN, "run_at": TimestampNTZType()},
            {},
            r"'run_at' is of type timestamp_ntz, .* a timestamp with time zone",
        ),
        ({"id": TEXT}, {}, r"no column 'payload' with the arguments .* prepare\(df, \.\.\.\)"),
        ({"payload": TEXT}, {}, r"no column 'id', and with random ids .* allowRandomIds=true"),
        (WRITTEN, {"task": ""}, r"no task is named: say the option task, or have a column 'task'"),
        (
            {**WRITTEN, "queue": TEXT},
            {"is_atomic": True},
            r"a column 'queue' is for commit=direct alone",
        ),
        (WRITTEN, {"id_column": "payload"}, r"idColumn='payload' and payloadColumn='payload'"),
        (WRITTEN, {"id_column": "queue"}, r"idColumn='queue' and .* no options of jobs"),
    ],
    ids=[
        "misspelt",
        "unknown",
        "case",
        "id",
        "payload",
        "priority",
        "delay",
        "run_at",
        "no payload",
        "no id",
        "no task",
        "atomic queue",
        "one for both",
        "an option",
    ],
)
def test_what_may_not(columns: dict[str, DataType], options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRows, match=said):
        check(columns, **options)


def test_two_columns_of_one_name() -> None:
    schema = StructType([StructField(name, TEXT) for name in ("id", "payload", "id")])
    with pytest.raises(InvalidRows, match="there are two columns 'id': drop or rename one"):
        check_columns(schema, OPTIONS)
